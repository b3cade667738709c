"""The service under verification: calls at a limited rate, and the clean-up of created orders."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from payment_sandbox.client.receiver import ReceivedWebhook, WebhookReceiver
from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, anonymize, parse_json
from payment_sandbox_verify.checks import CannotTell, NotVerified
from payment_sandbox_verify.created import CreatedOrders
from payment_sandbox_verify.fetching import (
    ANSWER_SECONDS,
    CallFailed,
    FetchedAnswer,
    UnusableAnswer,
    fetch_answer,
)
from payment_sandbox_verify.samples import (
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    line_quantity,
    lines_worth,
    transaction_with,
)

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


ORDERS_PATH: Final = "/v1/orders/"
ORDERS_PATTERN: Final = re.compile(r"(/v\d+)?/orders/?")
CREATING_METHODS: Final = ("POST", "PUT", "PATCH")
CODES_PATH: Final = "/v1/bankqr/"
NOT_FOUND: Final = 404
REFUNDED_OR_VOIDED: Final = "refunded, or voided"
SKIPPED_IN_LIVE_MODE: Final = "the probe would create invoices or move money, so live mode skips it"
FINAL_STATUSES: Final = ("cancelled", "expired", "error")
JSON_TYPE: Final = "application/json"
IGNORED_FIELDS_HEADER: Final = "Sandbox-Ignored-Fields"
MARKER: Final = "payment-sandbox verify"
"""The description of created orders, to identify them in the account's order list."""


ATTEMPTS_MAX: Final = 5
BUSY_STATUSES: Final = (429, 502, 503, 504)  # statuses that prove nothing about rules
PAUSE_SECONDS: Final = 0.5
WEBHOOK_SECONDS: Final = 10.0
PAUSE_SECONDS_MAX: Final = 30.0
FAILED_CALLS_MAX: Final = 10
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


class Payer(Protocol):
    """A payer: a program that submits forms, or a person."""

    def visit(self, url: str) -> Any:
        """Open a payment page.

        Raises:
            CannotTell: the page cannot be opened.
        """
        ...

    def pay(self, url: str, payment: str) -> str | None:
        """Pay on a page; return the URL to which the customer returned, or None if it is unknown.

        Raises:
            CannotTell: the page does not allow a payment.
        """
        ...

    def cancel(self, url: str, payment: str) -> str | None:
        """Cancel on a page; return and raise the same as ``pay``."""
        ...

    def pay_in_steps(self, url: str, name: str, value: str) -> Iterator[None]:
        """Make a choice and pay, page by page; yield after each page.

        Raises:
            CannotTell: the page has no such choice, or a person pays.
        """
        ...

    def choose(self, url: str, method: str) -> None:
        """Choose a method on a hosted page.

        Raises:
            CannotTell: the page does not offer the method.
        """
        ...


class Service:
    """A server that implements this API, called with an API key."""

    def __init__(
        self,
        url: str,
        key: str,
        session: "requests.Session",
        payer: Payer,
        wait: Callable[[], None],
        pause: Callable[[float], None],
        receiver: WebhookReceiver | None = None,
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
        self.answers: list[ServiceAnswer] = []
        self._session = session
        self.pause = pause
        self.receiver = receiver
        self.names = names or {}
        self._wait = wait
        self.created_orders = CreatedOrders(self.url)
        self.is_patient = False  # whether probes may take half an hour
        self.is_live = False  # whether to skip calls that would cost money if accepted
        self.is_interrupted = False  # a signal arrived, so the next call raises KeyboardInterrupt
        self.is_creating = False  # whether a call is in flight that may create an order
        self.code_count = 0  # QR requests, which cannot be cancelled
        self._probe = ""
        self._call_counts: Counter[tuple[Any, ...]] = Counter()
        self._origins: dict[str, int] = {}  # hashes of the requests that created and changed each order
        self.retry_count = 0
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
            CannotTell: the call got no answer.
            NotVerified: the service has stopped responding.
        """
        sent = rename_values(body, self.names)
        data = content if content is not None or body is None else json.dumps(sent).encode()
        request_headers = {**({"Content-Type": JSON_TYPE} if data is not None else {}), **(headers or {})}
        auth: Any = _no_auth if key == "" else (key or self.key, password)
        url = f"{self.url}{rename_path(path, self.names)}"
        self._begin_call(method, path)
        reply, content = self._call_with_retries(
            lambda: fetch_answer(
                self._session, method, url, data, request_headers, auth, self._answer_seconds
            ),
            method,
            path,
        )
        parsed = rename_values(parse_json(content), reverse(self.names))
        call_key = self._call_key(method, path, body, request_headers, data, key)
        answer = ServiceAnswer(
            method, path, body, reply.status_code, reply.headers, parsed, content, call_key
        )
        self.answers.append(answer)
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
                self._origins[str(answer.at("id"))] = hash(answer.call_key)
            else:
                self.created_orders.record_refusal()
        elif answer.method != "GET":
            for order_id in set(answer.path.split("/")) & self._origins.keys():
                self._origins[order_id] = hash((answer.call_key, answer.is_success))
        self.is_creating = False
        self.code_count += answer.is_success and (answer.method, answer.path) == ("POST", CODES_PATH)

    def begin_probe(self, probe: str) -> None:
        """Start a probe; the following calls belong to it."""
        self._probe = probe
        self._call_counts.clear()

    def _call_key(
        self,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str],
        data: bytes | None,
        key: str | None,
    ) -> tuple[Any, ...]:
        """Return the key of a call: caller, request without the service's identifiers, and number of repeats.

        Orders in the path count as equal if equal requests created and changed them.
        """
        path = UUID.sub(lambda match: str(self._origins.get(match[0], "")), path)
        content = "" if body is None and data is None else repr(body) if body is not None else repr(data)
        call_key = (self._probe, method, *(anonymize(text) for text in (path, content)), tuple(headers), key)
        self._call_counts[call_key] += 1
        return (*call_key, self._call_counts[call_key])

    def _call_with_retries(self, fetch: Callable[[], FetchedAnswer], method: str, path: str) -> FetchedAnswer:
        """Make a call, and retry while the service is busy or does not answer.

        Raises:
            CannotTell: all retries failed.
            NotVerified: the service has stopped responding.
        """
        attempts, problem = self._attempts_per_call, "it has been unresponsive for too long"
        for number in range(attempts):
            self._wait()
            seconds, started = 0.0, monotonic_seconds()
            try:
                reply, content = fetch()
                self._hung_seconds = 0.0
                if reply.status_code not in BUSY_STATUSES:
                    self._failed_calls = 0
                    return reply, content
                problem, seconds = f"it returned {reply.status_code}", _retry_after(reply.headers)
            except CallFailed as failed:
                self._hung_seconds += monotonic_seconds() - started
                problem = str(failed)
                if isinstance(failed, UnusableAnswer) or self._has_hung:
                    break
            if number + 1 < attempts:
                self.retry_count += 1
                self.pause(min(max(seconds, PAUSE_SECONDS * 2**number), PAUSE_SECONDS_MAX))
        self._failed_calls += 1
        if self._failed_calls >= FAILED_CALLS_MAX or self._has_hung:
            raise NotVerified(f"{self.url} has stopped responding: {method} {path}: {problem}")
        raise CannotTell(f"{method} {path} was not answered: {problem}")

    @property
    def _attempts_per_call(self) -> int:
        """The number of attempts per call: 1 after many failed calls, and 0 if the service hangs."""
        if self._has_hung:
            return 0
        return 1 if self._failed_calls >= FAILED_CALLS_MAX else ATTEMPTS_MAX

    @property
    def _has_hung(self) -> bool:
        """Whether the service has not answered for too long."""
        return self._hung_seconds >= HUNG_SECONDS_MAX

    # Orders

    def create(self, *transactions: Any, **fields: Any) -> ServiceAnswer:
        """Attempt to create an order; fields with the value ``...`` are omitted.

        Raises:
            CannotTell: the order could become an invoice in live mode.
        """
        if self.is_live and INVOICE in (
            *(transaction.get("payment_method") for transaction in transactions),
            *(fields.get("payment_methods") or ()),
        ):
            raise CannotTell(SKIPPED_IN_LIVE_MODE)
        body: dict[str, Any] = {"currency": "EUR", "amount": 1000, "description": MARKER, **fields}
        if transactions:
            body["transactions"] = list(transactions)
        return self.call("POST", ORDERS_PATH, {key: value for key, value in body.items() if value is not ...})

    def new_order(self, *transactions: Any, **fields: Any) -> ServiceAnswer:
        """Create an order that a probe needs.

        Raises:
            CannotTell: the service refuses it.
        """
        answer = self.create(*transactions, **fields)
        if not answer.is_success or answer.at("id") is MISSING:
            method = transactions[0]["payment_method"] if transactions else "no transaction"
            raise CannotTell(
                f"an order with {method} is refused: {answer.summary}: {answer.at('error.value')}"
            )
        return answer

    def new_order_with_lines(self, method: str, **transaction: Any) -> ServiceAnswer:
        """Create an order with lines and a customer, which methods with a screening require."""
        return self.new_order(
            transaction_with(method, **transaction), amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER
        )

    def read(self, order: ServiceAnswer, *blocks: str) -> ServiceAnswer:
        """Read the current state of an order."""
        query = "&".join(f"fields[]={block}" for block in blocks)
        return self.call("GET", f"{ORDERS_PATH}{order.at('id')}/" + (f"?{query}" if query else ""))

    def capture_or_void(
        self, order: ServiceAnswer, suffix: str, body: Any = None, **options: Any
    ) -> ServiceAnswer:
        """Capture or void money; ``suffix`` is the end of the path, such as ``captures/amount/``."""
        path = f"{ORDERS_PATH}{order.at('id')}/transactions/{order.at('transactions[0].id')}/{suffix}"
        return self.call("POST", path, body, **options)

    def refund(self, order: ServiceAnswer, body: Any) -> ServiceAnswer:
        """Refund an order."""
        return self.call("POST", f"{ORDERS_PATH}{order.at('id')}/refunds/", body)

    @cached_property
    def issuer(self) -> str:
        """The first bank in the list of issuers.

        Raises:
            CannotTell: the list is empty or malformed.
        """
        issuer = self.call("GET", "/v1/bank-redirect-nl/issuers/").at("[0].id")
        if not isinstance(issuer, str):
            raise CannotTell("the issuers list names no bank")
        return issuer

    @property
    def _webhook_receiver(self) -> WebhookReceiver:
        if self.receiver is None:
            raise CannotTell("needs a URL for the service's webhooks: try --webhook-url")
        return self.receiver

    @property
    def webhook_url(self) -> str:
        """The URL at which webhooks reach this machine.

        Raises:
            CannotTell: webhooks do not reach this machine.
        """
        return self._webhook_receiver.url

    def answer_webhooks(self, *statuses: int, delay_seconds: float = 0.0) -> None:
        """Set the statuses that answer the next webhooks; the last one also answers all later webhooks.

        Raises:
            CannotTell: webhooks do not reach this machine.
        """
        self._webhook_receiver.clear()
        self._webhook_receiver.answer_with(*statuses, delay=delay_seconds)

    def wait_for_webhook(
        self, order_id: str, *, nth: int = 1, within_seconds: float = WEBHOOK_SECONDS
    ) -> ReceivedWebhook | None:
        """Wait for the first or ``nth`` webhook of an order; return None if it does not arrive in time."""
        try:
            return self._webhook_receiver.wait_for(order_id, within_seconds, nth=nth)
        except TimeoutError:
            return None

    # The customer

    def payment_page_url(self, order: ServiceAnswer) -> str:
        """Return the URL of the payment page, with the service's scheme if it has none.

        Raises:
            CannotTell: the order has no payment page.
        """
        address = order.at("transactions[0].payment_url")
        address = order.at("order_url") if address in (MISSING, None) else address
        if not isinstance(address, str):
            raise CannotTell("the order has no payment page URL")
        return self.absolute_url(address)

    def absolute_url(self, address: str) -> str:
        """Add the service's scheme to a URL that has none."""
        return address if "://" in address else f"{self.url.partition('://')[0]}://{address}"

    def visit(self, order: ServiceAnswer) -> Any:
        """Open the payment page, as the customer's browser does."""
        return self.payer.visit(self.payment_page_url(order))

    def new_paid_order(self, *transactions: Any, **fields: Any) -> tuple[ServiceAnswer, str | None]:
        """Create and pay an order; return the order, and the URL to which the customer returned."""
        order = self.new_order(*transactions, **fields)
        method = order.at("transactions[0].payment_method")
        amount = fields.get("amount", 1000)
        return_url = self.payer.pay(self.payment_page_url(order), f"{amount / 100:.2f} EUR with {method}")
        return self.read(order), return_url

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
        """Void the remaining authorization and refund the captures; return what remains or the problem."""
        remaining, captured = (
            _parse_cents(order.at(f"amount_details.{name}")) for name in ("remaining", "captured")
        )
        problems = []
        if remaining:
            voided = self.capture_or_void(
                order, "voids/amount/", {"description": MARKER, "amount": remaining}
            )
            if not voided.is_success and voided.at("error.type") != AUTHORIZATION_EXPIRED:
                problems.append(f"{remaining} cents are reserved")
        if captured and not self._refund_remainder(order, captured):
            is_refunded = "has-refunds" in flags_of(order)
            note = ", and the service refuses another refund" if is_refunded else ""
            problems.append(f"{captured} cents were paid{note}")
        return ", ".join(problems) or REFUNDED_OR_VOIDED

    def _refund_remainder(self, order: ServiceAnswer, captured: int) -> bool:
        """Refund the rest of the payment: in one refund, or line by line if lines were refunded before."""
        for portion in ({}, {"amount": captured}, {"order_lines": lines_worth(captured)}):
            answer = self.refund(order, {"description": MARKER, **portion})
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
            answer = self.refund(order, body)
            if not answer.is_success:
                break
        return answer


def flags_of(order: ServiceAnswer) -> list[Any]:
    """Return the flags of an order, or an empty list if they are malformed."""
    flags = order.at("flags")
    return flags if isinstance(flags, list) else []


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
