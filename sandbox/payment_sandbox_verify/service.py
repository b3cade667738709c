"""The client of the service under verification: bounded and retried calls at a limited rate."""

import json
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import requests

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import describe_failure
from payment_sandbox_verify.answer import MISSING, NotAnswered, NotVerified, ServiceAnswer, parse_json
from payment_sandbox_verify.created import CreatedOrders, is_creation
from payment_sandbox_verify.payers import FormPayer
from payment_sandbox_verify.steps import CODES_PATH

if TYPE_CHECKING:
    from payment_sandbox_verify.payers import FetchedAnswer

MethodNames: TypeAlias = Mapping[str, str]
"""The account's names for payment methods, by the names in the ledger."""

TIMEOUT_SECONDS: Final = 30.0  # longest wait without receiving a byte
ANSWER_SECONDS: Final = 40.0
ANSWER_BYTES_MAX: Final = 8 << 20
PIECE_BYTES: Final = 1 << 16
JSON_TYPE: Final = "application/json"
ATTEMPTS_MAX: Final = 5
BUSY_STATUSES: Final = (429, 502, 503, 504)  # statuses that prove nothing
PAUSE_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 30.0
FAILED_CALLS_MAX: Final = 40
PATIENT_CALLS_MAX: Final = 10  # after as many, a call is not retried
HUNG_SECONDS_MAX: Final = 45.0  # total wait without an answer, in one or more consecutive calls
UNLIMITED: Final = 0.0


class CallFailed(Exception):
    """A call got no usable answer; the message is the reason."""


class UnusableAnswer(CallFailed):
    """A call got an endless or unreadable answer, so a retry would be pointless."""


def rename_values(value: Any, names: MethodNames) -> Any:
    """Replace names in a JSON document where a name is a whole value or a key."""
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): rename_values(inner, names) for key, inner in value.items()}
    return [rename_values(item, names) for item in value] if isinstance(value, list) else value


class Service:
    """A server that implements this API, called with an API key."""

    def __init__(
        self,
        url: str,
        key: str,
        session: requests.Session,
        *,
        pause: Callable[[float], Any],
        per_second: float = UNLIMITED,
    ) -> None:
        """``pause`` waits for some seconds of the service's time."""
        self.url = url.rstrip("/")
        self.key = key
        self._session = session
        self.pause = pause
        self.payer = FormPayer(self.fetch_page)
        self.names: MethodNames = {}  # the account's own names for payment methods
        self.created_orders = CreatedOrders(self.url)
        self.is_live = False  # whether to skip calls that would cost money if accepted
        self.is_interrupted = False  # a signal arrived, so the next call raises KeyboardInterrupt
        self.is_creating = False  # whether a call is in flight that may create an order
        self.code_count = 0  # QR requests, which cannot be cancelled
        self.call_count = 0
        self.retry_count = 0
        self.retry_seconds = 0.0  # the total of the pauses before retries
        self.answer_seconds = ANSWER_SECONDS
        self._gap_seconds = 1 / per_second if per_second else 0.0  # between two calls
        self._next_seconds = 0.0  # the time of the next call
        self._failed_calls = 0  # consecutive unanswered calls
        self._hung_seconds = 0.0  # the time spent on consecutive unanswered calls

    @property
    def ours(self) -> dict[str, str]:
        """The names in the ledger, by the account's own."""
        return {theirs: name for name, theirs in self.names.items()}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str | None, str] = (None, ""),
        content: bytes | None = None,
    ) -> ServiceAnswer:
        """Make a call; ``content`` is the raw body, and ``auth`` a key and a password, as those of a step.

        Raises:
            NotAnswered: the call got no answer.
            NotVerified: the service has stopped responding.
        """
        data = content if body is None else json.dumps(rename_values(body, self.names)).encode()
        sent = {**({"Content-Type": JSON_TYPE} if data is not None else {}), **(headers or {})}
        key, password = auth
        credentials: Any = _no_auth if key == "" else (key or self.key, password)
        url = self.url + "/".join(self.names.get(part, part) for part in path.split("/"))
        if self.is_interrupted:  # an interrupt between two calls loses no order
            raise KeyboardInterrupt
        self.is_creating = is_creation(method, path)
        (reply, received), is_repeated = self._call_with_retries(
            lambda: self._fetch(method, url, data=data, headers=sent, auth=credentials), f"{method} {url}"
        )
        parsed = rename_values(parse_json(received), self.ours)
        answer = ServiceAnswer(method, path, reply.status_code, reply.headers, parsed, received, is_repeated)
        if self.is_creating and answer.is_success and answer.at("id") is not MISSING:
            self.created_orders.add(str(answer.at("id")))
        self.is_creating = False
        self.code_count += answer.is_success and (method, path) == ("POST", CODES_PATH)
        return answer

    def fetch_page(self, method: str, url: str, data: Any, headers: Mapping[str, str]) -> "FetchedAnswer":
        """Request a page of the service, which needs no key.

        Raises:
            NotAnswered: there is no usable answer.
        """
        try:
            return self._fetch(method, url, data=data, headers=headers)
        except CallFailed as failed:
            raise NotAnswered(f"the payment page cannot be opened: {failed}") from None

    def _fetch(self, method: str, url: str, **options: Any) -> "FetchedAnswer":
        """Make one attempt of a call, and read the answer up to a limit of time and size.

        Raises:
            CallFailed: the answer is missing, late or too large.
        """
        if self._gap_seconds:
            now = monotonic_seconds()
            at = max(now, self._next_seconds)
            self._next_seconds = at + self._gap_seconds
            pause(at - now)
        self.call_count += 1
        session, result = self._session, SimpleQueue[Any]()

        def fetch() -> None:
            try:
                reply = session.request(
                    method, url, allow_redirects=False, timeout=TIMEOUT_SECONDS, stream=True, **options
                )
                with reply:
                    result.put((reply, _read(reply)))
            except CallFailed as failed:
                result.put(failed)
            except requests.RequestException as error:
                result.put(CallFailed(describe_failure(error, url)))
            except Exception as error:  # libraries raise any exception on unusual answers
                result.put(UnusableAnswer(f"its answer cannot be read: {type(error).__name__}: {error}"))

        Thread(target=fetch, name="verify", daemon=True).start()
        try:
            answer = result.get(timeout=self.answer_seconds)
        except Empty:
            raise UnusableAnswer(f"its answer took more than {self.answer_seconds:g} s") from None
        if isinstance(answer, CallFailed):
            raise answer
        return answer  # type: ignore[no-any-return]

    def _call_with_retries(
        self, fetch: Callable[[], "FetchedAnswer"], shown: str
    ) -> tuple["FetchedAnswer", bool]:
        """Make a call, and retry while the service is busy or does not answer.

        Return the answer, and whether an earlier attempt may have been carried out.

        Raises:
            NotAnswered: all retries failed.
            NotVerified: the service has stopped responding.
        """
        attempts = 1 if self._failed_calls >= PATIENT_CALLS_MAX else ATTEMPTS_MAX
        problem, is_repeated = "it has been unresponsive for too long", False
        for number in range(0 if self._has_hung else attempts):
            seconds, started = 0.0, monotonic_seconds()
            try:
                answer = fetch()
                self._hung_seconds = 0.0
                if answer[0].status_code not in BUSY_STATUSES:
                    self._failed_calls = 0
                    return answer, is_repeated
                problem, seconds = f"it returned {answer[0].status_code}", _retry_after(answer[0].headers)
            except CallFailed as failed:
                self._hung_seconds += monotonic_seconds() - started
                problem, is_repeated = str(failed), True
                if isinstance(failed, UnusableAnswer) or self._has_hung:
                    break
            if number + 1 < attempts:
                self.retry_count += 1
                seconds = min(max(seconds, PAUSE_SECONDS * 2**number), PAUSE_SECONDS_MAX)
                self.retry_seconds += seconds
                self.pause(seconds)
        self._failed_calls += 1
        if self._failed_calls >= FAILED_CALLS_MAX or self._has_hung:
            raise NotVerified(f"{self.url} has stopped responding: {shown}: {problem}")
        raise NotAnswered(f"{shown} was not answered: {problem}")

    @property
    def _has_hung(self) -> bool:
        """Whether the service has not answered for too long."""
        return self._hung_seconds >= HUNG_SECONDS_MAX

    def absolute_url(self, address: str) -> str:
        """Add the service's scheme to a URL that has none."""
        return address if "://" in address else f"{self.url.partition('://')[0]}://{address}"


def _read(reply: requests.Response) -> bytes:
    body = bytearray()
    for piece in reply.iter_content(PIECE_BYTES):
        body += piece
        if len(body) > ANSWER_BYTES_MAX:
            raise UnusableAnswer(f"its answer has more than {ANSWER_BYTES_MAX >> 20} MiB")
    return bytes(body)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the delay that a busy service requests, in seconds; 0 if it is missing or a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _no_auth(request: Any) -> Any:
    """Prevent ``requests`` from adding credentials, such as those in a .netrc file."""
    return request


def pause(seconds: float) -> None:
    """Wait in real time, because the clock of another server cannot be advanced."""
    if seconds > 0:
        Event().wait(seconds)
