"""Calls on an order, in the states that it can reach."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox_verify.rules import OTHER_PERIOD_RULE, PERIOD_RULES, initial_rules
from payment_sandbox_verify.samples import (
    LINES,
    LINES_TOTAL,
    RETURN_URL,
    line_quantity,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    ORDER_PATH,
    ORDERS_PATH,
    ApiCall,
    ConversationStep,
    Pause,
    call,
    read,
)

Steps = Sequence[ConversationStep]

POST: Final = f"POST {ORDERS_PATH}"
CHANGE: Final = f"PUT {ORDER_PATH}"
BLOCKS: Final = "?fields[]=order_line_details&fields[]=amount_details"
TRANSACTION: Final = "transactions/<<order.transactions[-1].id>>/"
SHORT_PERIOD: Final = "PT4S"
AFTER_SHORT_PERIOD_SECONDS: Final = 5.5


def is_invoiced(method: str) -> bool:
    """Whether an order with a method needs order lines, because it may become an invoice."""
    return bool(method) and METHODS_BY_NAME[method].capabilities.needs_order_lines


def create(*transactions: dict[str, Any], rules: str = "", saves: str = "order", **more: Any) -> ApiCall:
    """Return a call that creates an order of 10 euros."""
    method = transactions[0]["payment_method"] if transactions else ""
    has_period = not transactions or "expiration_period" in transactions[0]
    period_rule = "" if has_period else PERIOD_RULES.get(method, OTHER_PERIOD_RULE)
    name = f"a new order with {method or 'no transaction'}"
    rules = rules or f"{' '.join(initial_rules(method))} {period_rule}"
    return call(POST, rules, sale(*transactions, **more), name=name, saves=saves)


ISSUERS: Final = call("GET /v1/bank-redirect-nl/issuers/", "END-17 ISS-01 ISS-02", saves="banks")


def banks_for(method: str) -> Steps:
    """Return the call that lists the banks, if a method requires one."""
    return [ISSUERS] if method and METHODS_BY_NAME[method].capabilities.has_issuers else []


def lines_for(method: str) -> dict[str, Any]:
    """Return the order lines of an order whose method does not need them anyway."""
    return {} if is_invoiced(method) else {"order_lines": LINES}


class OrderCall(NamedTuple):
    """A call on an order: its rules, and what it sends; ``<<order>>`` is the order of the scene."""

    name: str
    rules: str
    suffix: str
    body: Any = None
    method: str = "POST"

    @property
    def kind(self) -> str:
        """What the call moves: captures, voids, refunds, or nothing."""
        return next((kind for kind in ("captures", "voids", "refunds") if kind in self.suffix), "")

    def on(self, order: str, name: str, etag: str = "") -> ApiCall:
        """Return the call on an order; ``etag`` is the value of If-Match."""
        path = f"{ORDERS_PATH}<<{order}.id>>/{self.suffix.replace('<<order.', f'<<{order}.')}"
        rules = f"SET-33 {self.rules}" if etag else self.rules
        headers = {"If-Match": etag} if etag else {}
        return call(f"{self.method} {path}", rules, self.body, name=name, headers=headers, saves="change")


AMOUNT_RULES: Final = {
    "captures": "END-14 CAP-02 SET-47 SET-46",
    "voids": "END-16 VOID-01",
    "refunds": "END-10 SET-49",
}
LINES_RULES: Final = {
    "captures": "END-13 STA-19 SET-47",
    "voids": "END-15 STA-20",
    "refunds": "END-08 SET-49",
}


def part(kind: str, amount: Any, rules: str = "", **more: Any) -> OrderCall:
    """Return a capture, void or refund of an amount."""
    suffix = "refunds/" if kind == "refunds" else f"{TRANSACTION}{kind}/amount/"
    body = {"amount": amount, **more}
    return OrderCall(f"{kind[:-1]} of {amount!r} cents", rules or AMOUNT_RULES[kind], suffix, body)


def by_lines(kind: str, line: str, quantity: Any, rules: str = "") -> OrderCall:
    """Return a capture, void or refund of items of a line."""
    suffix = "refunds/" if kind == "refunds" else f"{TRANSACTION}{kind}/orderlines/"
    body = {"description": "lines", "order_lines": line_quantity(quantity, line)}
    return OrderCall(f"{kind[:-1]} of {quantity!r} {line}", rules or LINES_RULES[kind], suffix, body)


MANY: Final = LINES_TOTAL + 1
ALL: Final = OrderCall("capture in full", "END-11 END-12 CAP-02", f"{TRANSACTION}captures/")
REFUND_REST: Final = OrderCall("refund of the rest", "END-10 SET-49", "refunds/")
CANCEL: Final = OrderCall("cancellation", "SET-50 END-07", "", method="DELETE")
ORDER_CALLS: Final = (  # those that usually are refused come first, those that end an order last
    part("captures", MANY, "SET-47 END-14"),
    part("voids", MANY, "SET-47 END-16"),
    part("refunds", MANY, "SET-49 END-10"),
    part("captures", 0, "SET-11 END-14"),
    by_lines("captures", "hats", 1, "LINE-04 END-13"),
    OrderCall("change of the amount", "SET-52", "", {"amount": MANY, "order_lines": LINES}, "PUT"),
    OrderCall("change", "SET-51", "", {"description": "Changed", "return_url": RETURN_URL}, "PUT"),
    by_lines("refunds", "socks", 1),
    part("refunds", 1),
    by_lines("voids", "post", 1),
    part("voids", 1),
    by_lines("captures", "socks", 1, "END-13 STA-19"),
    part("captures", 1, "END-14 CAP-02"),
    ALL,
    REFUND_REST,
    CANCEL,
)


def calls_on_order(state: str, order: str = "order", is_paid: bool = False) -> Iterator[ConversationStep]:
    """Yield each call on an order in a state; after a payment, a stale ETag and a read go with each."""
    for each in ORDER_CALLS:
        name = f"{each.name} of {state}"
        if is_paid:
            yield each.on(order, f"{name} with a stale ETag", '"stale"')
        yield each.on(order, name)
        if is_paid or each.method != "POST" or each is REFUND_REST:
            yield read(order, each.rules.split()[0], BLOCKS, name=f"{name}, read")


def expired_steps(methods: Sequence[str], begin: Steps = (), end: Steps = ()) -> Steps:
    """Return orders that expire in one pause, with further steps before and after it."""
    new, expired = list[ConversationStep](), list[ConversationStep]()
    for method in methods:
        order, period = f"order_{method.replace('-', '_')}", {"expiration_period": SHORT_PERIOD}
        rule, shown = "TRQ-03" if method else "ORD-12 SET-35", f"an expired {method or 'hosted'} order"
        sent = [transaction_with(method, **period)] if method else []
        new += [*banks_for(method), create(*sent, rules=rule, saves=order, **({} if method else period))]
        expired += [read(order, rule, name=shown), *calls_on_order(shown, order)]
    return (*new, *begin, Pause(seconds=AFTER_SHORT_PERIOD_SECONDS), *expired, *end)
