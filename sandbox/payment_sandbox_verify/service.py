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
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, anonymous, parse_json
from payment_sandbox_verify.checks import CannotTell, NotVerified
from payment_sandbox_verify.created import CreatedOrders
from payment_sandbox_verify.fetching import ANSWER_SECONDS, Fetched, Unanswered, Unusable, fetch_answer
from payment_sandbox_verify.samples import (
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    line_quantity,
    lines_worth,
    transaction_by,
)

if TYPE_CHECKING:
    import requests

Names = Mapping[str, str]
"""The account's names of payment methods, by the names in the ledger."""


def rename_values(value: Any, names: Names) -> Any:
    """Replace names in a JSON value where they are a whole value or a key."""
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): rename_values(inner, names) for key, inner in value.items()}
    return [rename_values(item, names) for item in value] if isinstance(value, list) else value


def rename_path(path: str, names: Names) -> str:
    """Replace names in the segments of a path."""
    return "/".join(names.get(part, part) for part in path.split("/")) if names else path


def reverse(names: Names) -> dict[str, str]:
    """Return the ledger's names by the account's names."""
    return {theirs: name for name, theirs in names.items()}


ORDERS: Final = "/v1/orders/"
COLLECTION: Final = re.compile(r"(/v\d+)?/orders/?")
CREATING: Final = ("POST", "PUT", "PATCH")
CODES: Final = "/v1/bankqr/"
UNKNOWN: Final = 404
REFUNDED: Final = "refunded, or voided"
NOT_LIVE: Final = "the probe would create invoices or move money, so live mode skips it"
ENDED: Final = ("cancelled", "expired", "error")
JSON: Final = "application/json"
IGNORED: Final = "Sandbox-Ignored-Fields"
MARK: Final = "payment-sandbox verify"
"""The description of the created orders, which explains them in the account's order list."""


ATTEMPTS_MAX: Final = 5
BUSY: Final = (429, 502, 503, 504)  # statuses that prove nothing about rules
PAUSE_SECONDS: Final = 0.5
WEBHOOK_SECONDS: Final = 10.0
PAUSE_SECONDS_MAX: Final = 30.0
FAILED_MAX: Final = 10
HUNG_SECONDS_MAX: Final = 45.0  # without an answer, in one or more calls in a row
NOTHING_LEFT: Final = "NothingToRefund"
TOO_MUCH: Final = "RefundExceedsCaptured"
EXPIRED: Final = "AuthorizationExpired"


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the delay that a busy service requests, in seconds; 0 if it is missing or a date."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _creates(method: str, path: str) -> bool:
    """Whether a call creates an order, or would if the server failed to refuse it."""
    return method in CREATING and COLLECTION.fullmatch(path) is not None


class Payer(Protocol):
    """A payer: a program that submits forms, or a person."""

    def visit(self, url: str) -> Any:
        """Open a payment page.

        Raises:
            CannotTell: the page cannot be opened.
        """
        ...

    def pay(self, url: str, what: str) -> str | None:
        """Pay on a page; return the URL to which the customer returned, or None if it is unknown.

        Raises:
            CannotTell: the page cannot be paid on.
        """
        ...

    def cancel(self, url: str, what: str) -> str | None:
        """Cancel on a page; the result and errors are those of ``pay``."""
        ...

    def steps(self, url: str, name: str, value: str) -> Iterator[None]:
        """Pay with a choice, page by page, and yield after each page.

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
    """A server of this API, called with an API key."""

    def __init__(
        self,
        url: str,
        key: str,
        session: "requests.Session",
        payer: Payer,
        wait: Callable[[], None],
        pause: Callable[[float], None],
        receiver: WebhookReceiver | None = None,
        names: Names | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """``wait`` limits the rate before each call; ``pause`` waits for some seconds of the service's time.

        An answer may take ``answer_seconds``.

        ``names`` are the account's own names of payment methods, by the names in the ledger.
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
        self.is_interrupted = False  # by a signal: the next call raises KeyboardInterrupt
        self.is_creating = False  # whether a call is in flight that may create an order
        self.codes = 0  # QR requests, which cannot be cancelled
        self._probe = ""
        self._call_counts: Counter[tuple[Any, ...]] = Counter()
        self._origins: dict[str, int] = {}  # by order id: a hash of the requests that created and changed it
        self.repeated = 0  # retries of calls
        self._answer_seconds = answer_seconds
        self._failed = 0  # unanswered calls in a row
        self._hung_seconds = 0.0  # the time that they took

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
            NotVerified: the calls before it got no answer either.
        """
        sent = rename_values(body, self.names)
        data = content if content is not None or body is None else json.dumps(sent).encode()
        given = {**({"Content-Type": JSON} if data is not None else {}), **(headers or {})}
        auth: Any = _no_auth if key == "" else (key or self.key, password)
        url = f"{self.url}{rename_path(path, self.names)}"
        self._begin_call(method, path)
        reply, content = self._call_with_retries(
            lambda: fetch_answer(self._session, method, url, data, given, auth, self._answer_seconds),
            method,
            path,
        )
        shown = rename_values(parse_json(content), reverse(self.names))
        asked = self._call_key(method, path, body, given, data, key)
        answer = ServiceAnswer(method, path, body, reply.status_code, reply.headers, shown, content, asked)
        self.answers.append(answer)
        self._remember(answer)
        return answer

    def _begin_call(self, method: str, path: str) -> None:
        """Record a call that may create an order; an interrupt between two calls loses no order."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_creating = _creates(method, path)
        if self.is_creating:
            self.created_orders.begin_request()

    def _remember(self, answer: ServiceAnswer) -> None:
        if _creates(answer.method, answer.path):
            if answer.is_success and answer.at("id") is not MISSING:
                self.created_orders.add(str(answer.at("id")))
                self._origins[str(answer.at("id"))] = hash(answer.asked)
            else:
                self.created_orders.refused()
        elif answer.method != "GET":
            for order_id in set(answer.path.split("/")) & self._origins.keys():
                self._origins[order_id] = hash((answer.asked, answer.is_success))
        self.is_creating = False
        self.codes += answer.is_success and (answer.method, answer.path) == ("POST", CODES)

    def begin(self, probe: str) -> None:
        """Start the calls of a probe."""
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
        """Return the key of a call: caller and request without the service's identifiers, and its count.

        Orders in the path are equal if they were created by equal requests and had the same calls since.
        """
        path = UUID.sub(lambda found: str(self._origins.get(found[0], "")), path)
        what = "" if body is None and data is None else repr(body) if body is not None else repr(data)
        asked = (self._probe, method, *(anonymous(text) for text in (path, what)), tuple(headers), key)
        self._call_counts[asked] += 1
        return (*asked, self._call_counts[asked])

    def _call_with_retries(self, fetch: Callable[[], Fetched], method: str, path: str) -> Fetched:
        """Make a call, and retry while the service is busy or does not answer.

        Raises:
            CannotTell: all retries failed.
            NotVerified: the calls before it got no answer either.
        """
        attempts, problem = self._attempts_per_call, "it has been unresponsive for too long"
        for number in range(attempts):
            self._wait()
            seconds, started = 0.0, monotonic_seconds()
            try:
                reply, content = fetch()
                self._hung_seconds = 0.0
                if reply.status_code not in BUSY:
                    self._failed = 0
                    return reply, content
                problem, seconds = f"it returned {reply.status_code}", _retry_after(reply.headers)
            except Unanswered as failed:
                self._hung_seconds += monotonic_seconds() - started
                problem = str(failed)
                if isinstance(failed, Unusable) or self._has_hung:
                    break
            if number + 1 < attempts:
                self.repeated += 1
                self.pause(min(max(seconds, PAUSE_SECONDS * 2**number), PAUSE_SECONDS_MAX))
        self._failed += 1
        if self._failed >= FAILED_MAX or self._has_hung:
            raise NotVerified(f"{self.url} has stopped responding: {method} {path}: {problem}")
        raise CannotTell(f"{method} {path} was not answered: {problem}")

    @property
    def _attempts_per_call(self) -> int:
        """The number of attempts per call: 1 after many failed calls, and 0 if the service hangs."""
        if self._has_hung:
            return 0
        return 1 if self._failed >= FAILED_MAX else ATTEMPTS_MAX

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
            raise CannotTell(NOT_LIVE)
        body: dict[str, Any] = {"currency": "EUR", "amount": 1000, "description": MARK, **fields}
        if transactions:
            body["transactions"] = list(transactions)
        return self.call("POST", ORDERS, {key: value for key, value in body.items() if value is not ...})

    def order(self, *transactions: Any, **fields: Any) -> ServiceAnswer:
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

    def with_lines(self, method: str, **transaction: Any) -> ServiceAnswer:
        """Create an order with lines and a customer, which methods with a screening require."""
        return self.order(
            transaction_by(method, **transaction), amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER
        )

    def read(self, order: ServiceAnswer, *blocks: str) -> ServiceAnswer:
        """Read the current state of an order."""
        query = "&".join(f"fields[]={block}" for block in blocks)
        return self.call("GET", f"{ORDERS}{order.at('id')}/" + (f"?{query}" if query else ""))

    def take(self, order: ServiceAnswer, what: str, body: Any = None, **options: Any) -> ServiceAnswer:
        """Capture or void: ``what`` is the end of the path, such as ``captures/amount/``."""
        place = f"{ORDERS}{order.at('id')}/transactions/{order.at('transactions[0].id')}/{what}"
        return self.call("POST", place, body, **options)

    def refund(self, order: ServiceAnswer, body: Any) -> ServiceAnswer:
        """Refund an order."""
        return self.call("POST", f"{ORDERS}{order.at('id')}/refunds/", body)

    @cached_property
    def issuer(self) -> str:
        """The first bank of the issuers list.

        Raises:
            CannotTell: the list is empty or malformed.
        """
        issuer = self.call("GET", "/v1/bank-redirect-nl/issuers/").at("[0].id")
        if not isinstance(issuer, str):
            raise CannotTell("the issuers list names no bank")
        return issuer

    @property
    def _reached(self) -> WebhookReceiver:
        if self.receiver is None:
            raise CannotTell("needs a URL for the service's webhooks: try --webhook-url")
        return self.receiver

    @property
    def webhook_url(self) -> str:
        """The URL at which webhooks reach this machine.

        Raises:
            CannotTell: webhooks do not reach this machine.
        """
        return self._reached.url

    def answer_webhooks(self, *statuses: int, delay_seconds: float = 0.0) -> None:
        """Set the statuses of the answers to the next webhooks; the last status also answers all later ones.

        Raises:
            CannotTell: webhooks do not reach this machine.
        """
        self._reached.clear()
        self._reached.answer_with(*statuses, delay=delay_seconds)

    def webhook_of(
        self, order_id: str, *, nth: int = 1, within_seconds: float = WEBHOOK_SECONDS
    ) -> ReceivedWebhook | None:
        """Wait for the first or ``nth`` webhook of an order; return None if it does not come in time."""
        try:
            return self._reached.wait_for(order_id, within_seconds, nth=nth)
        except TimeoutError:
            return None

    # The customer

    def page_of(self, order: ServiceAnswer) -> str:
        """Return the URL of the payment page; the service's scheme is the default.

        Raises:
            CannotTell: the order has none.
        """
        address = order.at("transactions[0].payment_url")
        address = order.at("order_url") if address in (MISSING, None) else address
        if not isinstance(address, str):
            raise CannotTell("the order has no payment page URL")
        return self.absolute(address)

    def absolute(self, address: str) -> str:
        """Add the service's scheme to a URL without one."""
        return address if "://" in address else f"{self.url.partition('://')[0]}://{address}"

    def visit(self, order: ServiceAnswer) -> Any:
        """Open the payment page, as the customer's browser does."""
        return self.payer.visit(self.page_of(order))

    def paid(self, *transactions: Any, **fields: Any) -> tuple[ServiceAnswer, str | None]:
        """Create and pay an order; return the order, and the URL to which the customer returned."""
        order = self.order(*transactions, **fields)
        method = order.at("transactions[0].payment_method")
        amount = fields.get("amount", 1000)
        went = self.payer.pay(self.page_of(order), f"{amount / 100:.2f} EUR with {method}")
        return self.read(order), went

    def clean_up(self) -> dict[str, str]:
        """Cancel or refund all created orders; return the remainder or problem of each, by order id."""
        remaining: dict[str, str] = {}
        self.is_interrupted = False
        for order_id in list(self.created_orders.orders):
            left = self._clean_up_order(order_id)
            if left is not None:
                remaining[order_id] = left
            if left in (None, REFUNDED):
                self.created_orders.remove(order_id)
        return remaining

    def _clean_up_order(self, order_id: str) -> str | None:
        """Cancel or refund an order; return the remainder or problem, or None if the order has ended."""
        place = f"{ORDERS}{order_id}/"
        try:
            if self.call("DELETE", place).is_success:
                return None
            order = self.call("GET", f"{place}?fields[]=amount_details")
            if order.at("status") in ENDED or order.status == UNKNOWN:
                return None
            return self._return_money(order)
        except (CannotTell, NotVerified) as why:
            return str(why)

    def _return_money(self, order: ServiceAnswer) -> str:
        """Void the rest of an authorization and refund the captures; return the remainder or problem."""
        remaining, captured = (
            _cents(order.at(f"amount_details.{name}")) for name in ("remaining", "captured")
        )
        problems = []
        if remaining:
            voided = self.take(order, "voids/amount/", {"description": MARK, "amount": remaining})
            if not voided.is_success and voided.at("error.type") != EXPIRED:
                problems.append(f"{remaining} cents are reserved")
        if captured and not self._refund_rest(order, captured):
            is_refunded = "has-refunds" in flags_of(order)
            refused = ", and the service refuses another refund" if is_refunded else ""
            problems.append(f"{captured} cents were paid{refused}")
        return ", ".join(problems) or REFUNDED

    def _refund_rest(self, order: ServiceAnswer, captured: int) -> bool:
        """Refund the rest of a payment: in one refund, or by line if lines were refunded before."""
        for what in ({}, {"amount": captured}, {"order_lines": lines_worth(captured)}):
            answer = self.refund(order, {"description": MARK, **what})
            if answer.is_success or answer.at("error.type") == NOTHING_LEFT:
                return True
        lasts = [self._refund_line(order, line) for line in LINES]
        return all(last.is_success or last.at("error.type") in (TOO_MUCH, NOTHING_LEFT) for last in lasts)

    def _refund_line(self, order: ServiceAnswer, line: Mapping[str, Any]) -> ServiceAnswer:
        """Refund a line item by item; return the last answer, which shows whether any items remain."""
        one = {"description": MARK, "order_lines": line_quantity(1, line["merchant_order_line_id"])}
        for _ in range(line["quantity"]):
            answer = self.refund(order, one)
            if not answer.is_success:
                break
        return answer


def flags_of(order: ServiceAnswer) -> list[Any]:
    """Return the flags of an order; no list counts as an empty one."""
    flags = order.at("flags")
    return flags if isinstance(flags, list) else []


def _cents(amount: Any) -> int:
    """Parse an amount in cents, a number or a string; return 0 if it is malformed."""
    text = str(amount)
    return int(text) if text.isascii() and text.isdigit() else 0


def _no_auth(request: Any) -> Any:
    """Prevent ``requests`` from adding credentials, such as those in a .netrc file."""
    return request


UNLIMITED: Final = 0.0


class Pace:
    """A limit of calls per second; 0 means no limit."""

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
    """Wait in real time, as the clock of another server cannot be advanced."""
    if seconds > 0:
        Event().wait(seconds)
