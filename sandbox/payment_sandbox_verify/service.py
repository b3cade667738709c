"""The service under verification: calls at a limited rate, and the clean-up of created orders."""

import json
import re
from collections.abc import Callable, Mapping
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox_verify.answer import (
    MISSING,
    CannotTell,
    NotAnswered,
    NotVerified,
    ServiceAnswer,
    parse_json,
)
from payment_sandbox_verify.created import CreatedOrders
from payment_sandbox_verify.fetching import (
    ANSWER_SECONDS,
    CallFailed,
    FetchedAnswer,
    UnusableAnswer,
    fetch_answer,
)
from payment_sandbox_verify.payers import FormPayer
from payment_sandbox_verify.samples import LINES, MARKER, line_quantity, lines_worth
from payment_sandbox_verify.steps import CODES_PATH, ORDERS_PATH

if TYPE_CHECKING:
    import requests

MethodNames = Mapping[str, str]
"""The account's names for payment methods, by the names in the ledger."""


def rename_values(value: Any, names: MethodNames) -> Any:
    """Replace names in a JSON document where a name is a whole value or a key."""
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): rename_values(inner, names) for key, inner in value.items()}
    return [rename_values(item, names) for item in value] if isinstance(value, list) else value


def rename_path(path: str, names: MethodNames) -> str:
    """Replace names in the segments of a path."""
    return "/".join(names.get(part, part) for part in path.split("/")) if names else path


def reverse(names: MethodNames) -> dict[str, str]:
    """Map the account's names to the ledger's names."""
    return {theirs: name for name, theirs in names.items()}


ORDERS_PATTERN: Final = re.compile(r"/*(/v\d+)?/orders/?")
CREATING_METHODS: Final = ("POST", "PUT", "PATCH")
NOT_FOUND: Final = 404
REFUNDED_OR_VOIDED: Final = "refunded, or voided"
FINAL_STATUSES: Final = ("cancelled", "expired", "error")
JSON_TYPE: Final = "application/json"
ATTEMPTS_MAX: Final = 5
BUSY_STATUSES: Final = (429, 502, 503, 504)  # statuses that prove nothing
PAUSE_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 30.0
FAILED_CALLS_MAX: Final = 40
PATIENT_CALLS_MAX: Final = 10  # after as many, a call is not retried
HUNG_SECONDS_MAX: Final = 45.0  # total wait without an answer, in one or more consecutive calls
NOTHING_TO_REFUND: Final = "NothingToRefund"
REFUND_EXCEEDS_CAPTURED: Final = "RefundExceedsCaptured"
AUTHORIZATION_EXPIRED: Final = "AuthorizationExpired"


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the delay that a busy service requests, in seconds; 0 if it is missing or a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _is_creation(method: str, path: str) -> bool:
    """Whether a call creates an order, or would if the server failed to refuse it."""
    return method in CREATING_METHODS and ORDERS_PATTERN.fullmatch(path) is not None


class Service:
    """A server that implements this API, called with an API key."""

    def __init__(
        self,
        url: str,
        key: str,
        session: "requests.Session",
        payer: FormPayer,
        wait: Callable[[], None],
        pause: Callable[[float], None],
        names: MethodNames | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """``wait`` limits the rate of calls; ``pause`` waits for some seconds of the service's time.

        An answer may take ``answer_seconds``.

        ``names`` are the account's own names for payment methods, by the names in the ledger.
        """
        self.url = url.rstrip("/")
        self.key = key
        self.payer = payer
        self._session = session
        self.pause = pause
        self.names = names or {}
        self.ours = reverse(self.names)
        self._wait = wait
        self.created_orders = CreatedOrders(self.url)
        self.is_live = False  # whether to skip calls that would cost money if accepted
        self.is_interrupted = False  # a signal arrived, so the next call raises KeyboardInterrupt
        self.is_creating = False  # whether a call is in flight that may create an order
        self.code_count = 0  # QR requests, which cannot be cancelled
        self.call_count = 0
        self.retry_count = 0
        self.retry_seconds = 0.0  # the total of the pauses before retries
        self._answer_seconds = answer_seconds
        self._failed_calls = 0  # consecutive unanswered calls
        self._hung_seconds = 0.0  # the time spent on consecutive unanswered calls

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        content: bytes | None = None,
        password: str = "",
    ) -> ServiceAnswer:
        """Make a call; ``content`` is the raw body, ``key`` replaces the merchant's key ("" sends none).

        Raises:
            NotAnswered: the call got no answer.
            NotVerified: the service has stopped responding.
        """
        sent = rename_values(body, self.names)
        data = content if content is not None or body is None else json.dumps(sent).encode()
        request_headers = {**({"Content-Type": JSON_TYPE} if data is not None else {}), **(headers or {})}
        auth: Any = _no_auth if key == "" else (key or self.key, password)
        url = f"{self.url}{rename_path(path, self.names)}"
        self._begin_call(method, path)
        reply, content, is_repeated = self._call_with_retries(
            lambda: fetch_answer(
                self._session, method, url, data, request_headers, auth, self._answer_seconds
            ),
            method,
            path,
        )
        parsed = rename_values(parse_json(content), self.ours)
        answer = ServiceAnswer(
            method, path, body, reply.status_code, reply.headers, parsed, content, is_repeated
        )
        self._record_answer(answer)
        return answer

    def _begin_call(self, method: str, path: str) -> None:
        """Record a call that may create an order; an interrupt between two calls loses no order."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_creating = _is_creation(method, path)
        if self.is_creating:
            self.created_orders.begin_request()

    def _record_answer(self, answer: ServiceAnswer) -> None:
        if _is_creation(answer.method, answer.path):
            if answer.is_success and answer.at("id") is not MISSING:
                self.created_orders.add(str(answer.at("id")))
            else:
                self.created_orders.record_refusal()
        self.is_creating = False
        self.code_count += answer.is_success and (answer.method, answer.path) == ("POST", CODES_PATH)

    def _call_with_retries(
        self, fetch: Callable[[], FetchedAnswer], method: str, path: str
    ) -> tuple["requests.Response", bytes, bool]:
        """Make a call, and retry while the service is busy or does not answer.

        Return the answer, its body, and whether an earlier attempt may have been carried out.

        Raises:
            NotAnswered: all retries failed.
            NotVerified: the service has stopped responding.
        """
        attempts, problem = self._attempts_per_call, "it has been unresponsive for too long"
        is_repeated = False
        for number in range(attempts):
            self._wait()
            self.call_count += 1
            seconds, started = 0.0, monotonic_seconds()
            try:
                reply, content = fetch()
                self._hung_seconds = 0.0
                if reply.status_code not in BUSY_STATUSES:
                    self._failed_calls = 0
                    return reply, content, is_repeated
                problem, seconds = f"it returned {reply.status_code}", _retry_after(reply.headers)
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
            raise NotVerified(f"{self.url} has stopped responding: {method} {path}: {problem}")
        raise NotAnswered(f"{method} {self.url}{path} was not answered: {problem}")

    @property
    def _attempts_per_call(self) -> int:
        """The number of attempts per call: 1 after many failed calls, and 0 if the service hangs."""
        if self._has_hung:
            return 0
        return 1 if self._failed_calls >= PATIENT_CALLS_MAX else ATTEMPTS_MAX

    @property
    def _has_hung(self) -> bool:
        """Whether the service has not answered for too long."""
        return self._hung_seconds >= HUNG_SECONDS_MAX

    def absolute_url(self, address: str) -> str:
        """Add the service's scheme to a URL that has none."""
        return address if "://" in address else f"{self.url.partition('://')[0]}://{address}"

    def clean_up(self) -> dict[str, str]:
        """Cancel or refund all created orders; return what remains of each, or its problem, by order id."""
        remaining: dict[str, str] = {}
        self.is_interrupted = False
        for order_id in list(self.created_orders.orders):
            remainder = self._clean_up_order(order_id)
            if remainder is not None:
                remaining[order_id] = remainder
            if remainder in (None, REFUNDED_OR_VOIDED):
                self.created_orders.remove(order_id)
        return remaining

    def _clean_up_order(self, order_id: str) -> str | None:
        """Cancel or refund an order; return what remains or the problem, or None if the order has ended."""
        path = f"{ORDERS_PATH}{order_id}/"
        try:
            is_deleted = self.call("DELETE", path).is_success
            order = self.call("GET", f"{path}?fields[]=amount_details")
            if order.at("status") in FINAL_STATUSES or order.status == NOT_FOUND:
                return None
            if is_deleted:
                return f"the service answered the DELETE, but the status is {order.at('status')!r}"
            return self._return_money(order)
        except (CannotTell, NotVerified) as error:
            return str(error)

    def _return_money(self, order: ServiceAnswer) -> str:
        """Void the remaining authorization and refund the captures; return what remains or the problem.

        What the order shows afterwards counts, not the answers to the void and the refund.
        """
        remaining, captured = _amounts(order)
        problems = [
            self._void(order, remaining) if remaining else "",
            self._refund(order, captured) if captured else "",
        ]
        return ", ".join(filter(None, problems)) or REFUNDED_OR_VOIDED

    def _void(self, order: ServiceAnswer, remaining: int) -> str:
        path = f"transactions/{order.at('transactions[-1].id')}/voids/amount/"
        voided = self._post(order, path, {"description": MARKER, "amount": remaining})
        still, _ = _amounts(self.call("GET", order.path))
        if not still or voided.at("error.type") == AUTHORIZATION_EXPIRED:
            return ""
        note = "the service answered the void, but " if voided.is_success else ""
        return f"{note}{still} cents are reserved"

    def _refund(self, order: ServiceAnswer, captured: int) -> str:
        is_refunded = self._refund_remainder(order, captured)
        has_refunds = "has-refunds" in self.call("GET", order.path).list_at("flags")
        if is_refunded and has_refunds:
            return ""
        note = ", and the service refuses another refund" if has_refunds else ""
        note = ", and the refund that the service answered is not on the order" if is_refunded else note
        return f"{captured} cents were paid{note}"

    def _post(self, order: ServiceAnswer, suffix: str, body: Any) -> ServiceAnswer:
        return self.call("POST", f"{ORDERS_PATH}{order.at('id')}/{suffix}", body)

    def _refund_remainder(self, order: ServiceAnswer, captured: int) -> bool:
        """Refund the rest of the payment: in one refund, or line by line if lines were refunded before."""
        for portion in ({}, {"amount": captured}, {"order_lines": lines_worth(captured)}):
            answer = self._post(order, "refunds/", {"description": MARKER, **portion})
            if answer.is_success or answer.at("error.type") == NOTHING_TO_REFUND:
                return True
        answers = [self._refund_line(order, line) for line in LINES]
        return all(
            answer.is_success or answer.at("error.type") in (REFUND_EXCEEDS_CAPTURED, NOTHING_TO_REFUND)
            for answer in answers
        )

    def _refund_line(self, order: ServiceAnswer, line: Mapping[str, Any]) -> ServiceAnswer:
        """Refund a line item by item; return the last answer, which shows whether any items remain."""
        body = {"description": MARKER, "order_lines": line_quantity(1, line["merchant_order_line_id"])}
        for _ in range(line["quantity"]):
            answer = self._post(order, "refunds/", body)
            if not answer.is_success:
                break
        return answer


def _amounts(order: ServiceAnswer) -> tuple[int, int]:
    """Return the remaining and the captured amount of an order, in cents."""
    remaining, captured = (
        _parse_cents(order.at(f"amount_details.{name}")) for name in ("remaining", "captured")
    )
    return remaining, captured


def _parse_cents(amount: Any) -> int:
    """Parse an amount in cents, a number or a string; return 0 if it is malformed."""
    text = str(amount)
    return int(text) if text.isascii() and text.isdigit() else 0


def _no_auth(request: Any) -> Any:
    """Prevent ``requests`` from adding credentials, such as those in a .netrc file."""
    return request


UNLIMITED: Final = 0.0


class Pace:
    """A limit on calls per second; 0 means no limit."""

    def __init__(self, per_second: float) -> None:
        self._gap_seconds = 1 / per_second if per_second else 0.0
        self._next_seconds = 0.0
        self._lock = Lock()

    def __call__(self) -> None:
        """Wait for the next turn."""
        if not self._gap_seconds:
            return
        with self._lock:
            now = monotonic_seconds()
            at = max(now, self._next_seconds)
            self._next_seconds = at + self._gap_seconds
        pause(at - now)


def pause(seconds: float) -> None:
    """Wait in real time, because the clock of another server cannot be advanced."""
    if seconds > 0:
        Event().wait(seconds)
