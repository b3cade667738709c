"""The scenes of payments: with each method, of authorizations, and with stored cards."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox_verify.generated import (
    ORDER_CALLS,
    SHORT_PERIOD,
    OrderCall,
    banks_for,
    calls_on_order,
    create,
    expired_steps,
    get,
    order_call,
    post,
    put,
    read,
)
from payment_sandbox_verify.rules import METHOD_RULES, PAID_RULES, VISIT_RULES
from payment_sandbox_verify.samples import (
    CARD,
    INVOICE,
    LINES,
    LINES_TOTAL,
    PAY_LATER,
    SHOP,
    WALLET_WEB,
    card,
    line_quantity,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    ORDER_PATH,
    ORDERS_PATH,
    WEBHOOK,
    WEBHOOK_RULES,
    ApiCall,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
    Webhooks,
)

PAYABLE: Final = [
    name for name, method in METHODS_BY_NAME.items() if method.capabilities.testable and name in PAID_RULES
]


def payment_scenes() -> Iterator[ConversationScene]:
    """Yield a payment with each method, and what can be done after it."""
    for method in PAYABLE:
        yield ConversationScene(f"{method}, paid", tuple(_payment(method)), is_costly=True)
    hosted = (
        create(**SHOP, rules="FLOW-01 STA-03", merchant_order_id="A-2"),
        Customer(
            order="order",
            action="pay",
            choice=WALLET_WEB,
            rules="FLOW-02 GEN-05",
            name="a payment on the hosted page",
        ),
        read("order", "FLOW-02 SET-24", blocks=True),
        Webhooks(rules=WEBHOOK_RULES),
        *calls_on_order("a paid hosted order", is_paid=True),
    )
    yield ConversationScene("hosted page, paid", hosted, is_costly=True)
    yield ConversationScene(
        "a failed payment",
        (
            create(card(), **SHOP),
            Customer(
                order="order",
                action="pay",
                choice="declined",
                rules="FLOW-15",
                name="a payment with a declined card",
            ),
            read("order", "SET-35 SET-28", name="the order after a declined card"),
            Webhooks(rules=WEBHOOK_RULES),
        ),
    )


def repeated_scenes() -> Iterator[ConversationScene]:
    """Yield further attempts on the hosted page, a changed order that is paid, and amounts of other types."""
    attempts = {"transactions": "SET-18", "last_transaction_added": "SET-18"}
    actions = (("pay", "declined"), ("choose", WALLET_WEB), ("pay", ""))
    steps: list[ConversationStep] = [create(**SHOP)]
    for number, (action, choice) in enumerate(actions, 1):
        name = f"step {number} on the hosted page, {action} {choice}".rstrip()
        steps.append(Customer(order="order", action=action, choice=choice, rules="SET-18", name=name))
        steps.append(
            read("order", "SET-18 SET-28", blocks=True, name=f"the order after {name}", about=attempts)
        )
    steps.append(Webhooks(rules=WEBHOOK_RULES))
    yield ConversationScene("attempts on the hosted page", tuple(steps), is_costly=True)
    changes = {"amount": 1250, "return_url": "https://shop.invalid/changed", "description": "Changed"}
    pay = Customer(order="order", action="pay", choice=WALLET_WEB, rules="SET-51", name="it is paid")
    about = {"amount": "SET-52", "transactions.amount": "SET-52", "amount_details": "SET-52"}
    steps = [create(**SHOP), put(changes, "SET-52 SET-51", "a change of amount and return_url"), pay]
    steps.append(read("order", "SET-52", blocks=True, name="the changed order, paid", about=about))
    keys = {"Idempotency-Key": "<<order.id>>"}
    for name, headers in (("with a key", keys), ("with the same key", keys), ("without the key", {})):
        body = {"amount": 600, "description": "part"}
        about = {"id": "SET-71"} if headers else {}
        shown = f"a refund {name}"
        steps.append(
            post(
                f"{ORDER_PATH}refunds/",
                body,
                "SET-71 END-10",
                shown,
                saves="refund",
                headers=headers,
                about=about,
            )
        )
        steps.append(read("order", "SET-71", blocks=True, name=f"the order after {shown}"))
    steps.append(post(f"{ORDERS_PATH}<<refund.id>>/refunds/", {}, "SET-49 SET-48", "a refund of a refund"))
    steps.append(order_call(CANCEL, "a cancellation of a refund", order="refund"))
    yield ConversationScene("a changed order, paid", tuple(steps), is_costly=True)
    steps = [*_authorize(CARD, "manual"), order_call(_part("captures", 500), "a capture of a half")]
    for kind in ("captures", "voids", "refunds"):
        for value in ("100", 12.5, -1, True, None):
            call = _part(kind, 0)._replace(
                body={"amount": value, "description": "part"}, rules="SET-11 LIM-02"
            )
            steps.append(order_call(call, f"{kind[:-1]} of {value!r}"))
    for kind in ("captures", "voids", "refunds"):
        for quantity in (0, -1, 1.5, "1"):
            call = _lines(kind, "socks", 1)
            lines = [{"merchant_order_line_id": "socks", "quantity": quantity}]
            call = call._replace(
                body={"description": "lines", "order_lines": lines}, rules=f"LINE-06 {call.rules}"
            )
            steps.append(order_call(call, f"{kind[:-1]} of {quantity!r} socks"))
    steps.append(read("order", "SET-47", blocks=True))
    yield ConversationScene("amounts and quantities of other types", tuple(steps), is_costly=True)


def _payment(method: str) -> Iterator[ConversationStep]:
    rules = PAID_RULES[method]
    yield from banks_for(method)
    lines: dict[str, Any] = (
        {} if METHODS_BY_NAME[method].capabilities.needs_order_lines else {"order_lines": LINES}
    )
    yield create(transaction_with(method), **SHOP, **lines)
    yield read("order")
    visit_rule = VISIT_RULES.get(method, "SET-36")
    yield Customer(order="order", action="visit", rules=visit_rule, name=f"a visit to the {method} page")
    yield read("order", visit_rule, name=f"the {method} order after a visit")
    yield put({"amount": LINES_TOTAL + 1}, "SET-52", "a change of the amount after a visit")
    if method == CARD:
        yield Pause(seconds=1.5)
    choice = "frictionless" if method == CARD else ""
    yield Customer(
        order="order", action="pay", choice=choice, rules="FLOW-14 ORD-09", name=f"a payment with {method}"
    )
    yield read("order", rules, blocks=True, name=f"the {method} order after its payment")
    yield Webhooks(rules=WEBHOOK_RULES)
    if METHODS_BY_NAME[method].capabilities.needs_order_lines:
        return
    yield from calls_on_order(f"a paid {method} order", is_paid=True)
    yield Webhooks(rules=WEBHOOK_RULES)


def _part(kind: str, amount: int) -> OrderCall:
    rules = {
        "captures": "END-14 CAP-02 SET-47 SET-46",
        "voids": "END-16 VOID-01",
        "refunds": "END-10 SET-49",
    }[kind]
    suffix = "refunds/" if kind == "refunds" else f"transactions/<<order.transactions[-1].id>>/{kind}/amount/"
    return OrderCall(
        f"{kind[:-1]} of {amount} cents", rules, "POST", suffix, {"amount": amount, "description": "part"}
    )


def _lines(kind: str, line: str, quantity: int) -> OrderCall:
    rules = {"captures": "END-13 STA-19 SET-47", "voids": "END-15 STA-20", "refunds": "END-08 SET-49"}[kind]
    suffix = (
        "refunds/" if kind == "refunds" else f"transactions/<<order.transactions[-1].id>>/{kind}/orderlines/"
    )
    body = {"description": "lines", "order_lines": line_quantity(quantity, line)}
    return OrderCall(f"{kind[:-1]} of {quantity} {line}", rules, "POST", suffix, body)


ALL: Final = next(each for each in ORDER_CALLS if each.name == "capture in full")
CANCEL: Final = ORDER_CALLS[-1]
REFUND_REST: Final = next(each for each in ORDER_CALLS if each.name == "refund of the rest")
PLANS: Final = {  # captures, voids and refunds of an authorized order
    "captured by amount": (
        *(
            _part("captures", 400),
            _lines("captures", "socks", 1),
            _part("captures", 601),
            _part("captures", 600),
        ),
        *(_part("captures", 1), _part("voids", 1), _part("refunds", 300), _part("refunds", 701), REFUND_REST),
    ),
    "captured by lines": (
        *(_lines("captures", "socks", 1), _part("captures", 1), _lines("captures", "socks", 3)),
        *(_lines("voids", "post", 1), _lines("captures", "post", 1), _lines("captures", "socks", 2)),
        *(_lines("refunds", "socks", 1), _lines("refunds", "post", 1), _lines("refunds", "socks", 3)),
        *(_lines("refunds", "socks", 2), REFUND_REST),
    ),
    "captured in full": (
        ALL,
        ALL,
        _part("voids", 1),
        CANCEL,
        _lines("refunds", "socks", 1),
        _part("refunds", 1000),
    ),
    "captured in part, then in full": (_part("captures", 400), ALL, REFUND_REST, REFUND_REST),
    "captured in part, then refunded": (
        *(_part("captures", 400), _part("refunds", 401), _part("refunds", 400)),
        *(_lines("refunds", "post", 1), REFUND_REST, ALL, REFUND_REST),
    ),
    "voided by amount": (
        _part("voids", 400),
        _part("voids", 601),
        _part("voids", 600),
        ALL,
        _part("captures", 1),
    ),
    "voided by lines": (
        _lines("voids", "socks", 3),
        _lines("voids", "post", 1),
        _lines("captures", "socks", 1),
    ),
    "voided in part, then captured": (_part("voids", 250), _lines("voids", "socks", 1), ALL, CANCEL),
    "with each amount twice": (
        *(_part("captures", 200), _part("captures", 200), _part("voids", 100), _part("voids", 100)),
        *(_part("refunds", 100), _part("refunds", 100), REFUND_REST),
    ),
    "with each line twice": (
        *(_lines("captures", "socks", 1), _lines("captures", "socks", 1)),
        *(_lines("refunds", "socks", 1), _lines("refunds", "socks", 1)),
    ),
    "cancelled": (REFUND_REST, CANCEL, ALL, _part("voids", 1), CANCEL),
}


def authorization_scenes() -> Iterator[ConversationScene]:
    """Yield authorizations that are captured, voided, refunded, cancelled, or expire."""
    for method, mode in ((CARD, "manual"), (CARD, "delayed"), (PAY_LATER, "manual"), (INVOICE, "")):
        for name, plan in PLANS.items():
            state = f"{'delayed ' if mode == 'delayed' else ''}{method} authorization, {name}"
            if mode != "delayed" or "void" in name or name == "captured by amount":
                steps = (
                    *_authorize(method, mode),
                    *_plan_steps(plan, state, method),
                    Webhooks(rules=WEBHOOK_RULES),
                )
                yield ConversationScene(state, tuple(steps), is_costly=True)
    begin, end = _expiring_authorizations()
    steps = expired_steps(is_costly=True, begin=begin, end=end)
    yield ConversationScene("expired invoices and authorizations", steps, is_costly=True)


def _expiring_authorizations() -> tuple[list[ConversationStep], list[ConversationStep]]:
    """Return the steps before and after authorizations expire, each untouched or captured in part."""
    begin: list[ConversationStep] = []
    end: list[ConversationStep] = []
    for method, mode in ((CARD, "manual"), (CARD, "delayed"), (INVOICE, "")):
        for is_touched in (False, True):
            order = f"{method}-{mode}-{is_touched}".replace("-", "_")
            begin += _authorize(method, mode, order, expiration_period=SHORT_PERIOD)
            if is_touched:
                part = _part("voids" if mode == "delayed" else "captures", 250)
                begin.append(order_call(part, f"{part.name} before the end", order=order))
            end += _expired(Expiring(order, method, mode, is_touched))
    return begin, [*end, Webhooks(rules=WEBHOOK_RULES)]


class Expiring(NamedTuple):
    """An authorization that expires: its order, method and mode, and whether a part is captured or voided."""

    order: str
    method: str
    mode: str
    is_touched: bool


def _expired(expiring: Expiring) -> Iterator[ConversationStep]:
    order, is_delayed = expiring.order, expiring.mode == "delayed"
    ended = "SET-42" if expiring.is_touched else "SET-41"
    rules = "CAP-05 SET-44 CAP-07" if is_delayed else f"{ended} CAP-03 TRQ-05"
    shown = f"the {expiring.method} order after its expiration_period"
    yield read(order, rules, blocks=True, name=shown)
    late = "CAP-06 ERR-05" if is_delayed else "CAP-04 ERR-03"
    yield order_call(ALL._replace(rules=late), "a capture after the expiration_period", order=order)
    yield order_call(_part("voids", 1), "a void after the expiration_period", order=order)
    yield order_call(CANCEL, "a cancellation after the expiration_period", order=order)
    yield read(order, rules.split()[0], blocks=True, name=f"{shown}, and three calls")


def _authorize(
    method: str, mode: str, order: str = "order", **transaction: Any
) -> Iterator[ConversationStep]:
    capture_mode = {"capture_mode": mode} if mode else {}
    lines: dict[str, Any] = (
        {} if METHODS_BY_NAME[method].capabilities.needs_order_lines else {"order_lines": LINES}
    )
    sent = transaction_with(method, **capture_mode, **transaction)
    yield create(sent, saves=order, webhook_url=WEBHOOK, **lines)
    if method != INVOICE:
        choice = "frictionless" if method == CARD else ""
        rules = "SET-38 CAP-01 CARD-03" if method == CARD else "SET-38 PLA-02 PLA-05"
        shown = f"an authorization with {method}"
        yield Customer(order=order, action="pay", choice=choice, rules=rules, name=shown)
        yield read(order, rules, blocks=True, name=f"the authorized {method} order")


def _plan_steps(plan: tuple[OrderCall, ...], state: str, method: str) -> Iterator[ConversationStep]:
    for number, planned in enumerate(plan):
        kind = _kind_of(planned)
        call = planned._replace(rules=f"{planned.rules} {METHOD_RULES.get((method, kind), '')}")
        name = f"{call.name}, {state}"
        if kind == "captures" and number == 0:
            yield from _conditional_capture(call, name)
        else:
            yield order_call(call, name)
        if kind == "refunds":
            yield get(f"{ORDERS_PATH}<<change.id>>/", "SET-48", f"the refund of {name}")
        effects = dict(zip(("amount_details", "order_line_details"), VALUE_RULES.get(kind, ()), strict=False))
        yield read("order", EFFECT_RULES[kind], blocks=True, name=f"the order after {name}", about=effects)


def _kind_of(call: OrderCall) -> str:
    return next((kind for kind in ("captures", "voids", "refunds") if kind in call.suffix), "")


def _conditional_capture(call: OrderCall, name: str) -> Iterator[ConversationStep]:
    rule = IF_MATCH_RULES.get(call.suffix.rsplit("/", 2)[1], "SET-33")
    yield order_call(call._replace(rules=f"{rule} SET-33"), f"{name}, stale ETag", '"stale"')
    yield order_call(call, name, "<<order@ETag>>")


IF_MATCH_RULES: Final = {"amount": "IFM-01", "orderlines": "IFM-02"}
EFFECT_RULES: Final = {  # the rules of an order after a call, by its kind
    "captures": "SET-40 STA-19 LDET-03",
    "voids": "SET-43 STA-20",
    "refunds": "SET-26",
    "": "SET-26",
}


VALUE_RULES: Final = {"captures": ("SET-47", "STA-19"), "voids": ("VOID-01", "STA-20")}
"""The rules of the amounts and lines that a call moves."""


def card_scenes() -> Iterator[ConversationScene]:
    """Yield the test cards, and payments with stored cards."""
    for name, rule in (("challenge", "CARD-07"), ("challenge-configurable", "CARD-08")):
        for action in ("pay", "fail"):
            steps = (
                create(card(), **SHOP),
                Customer(
                    order="order",
                    action=action,
                    choice=name,
                    rules=rule,
                    name=f"{action} with the card {name}",
                ),
                read("order", rule, name=f"the order after {action} with the card {name}"),
            )
            yield ConversationScene(f"card {name}, {action}", steps, is_costly=True)
    for shown, content, body in (
        ("no body", None, None),
        ("an empty body", b"", None),
        ("an empty object", None, {}),
        ("an empty list", None, []),
        ("null", b"null", None),
        ("an empty text", b'""', None),
    ):
        capture = ApiCall(
            method="POST",
            path=f"{ORDER_PATH}transactions/<<order.transactions[0].id>>/captures/",
            body=body,
            content=content,
            rules="SET-10 END-11",
            name=f"a capture with {shown}",
        )
        refund = post(
            f"{ORDER_PATH}refunds/", body, "SET-10 END-10", f"a refund with {shown}", content=content
        )
        yield ConversationScene(
            f"captured with {shown}", (*_authorize(CARD, "manual"), capture, refund), is_costly=True
        )
    for card_use in STORED_CARD_USES:
        yield ConversationScene(card_use.use, tuple(_stored_card(card_use)), is_costly=True)
        failed = f"a failed first {card_use.use} payment"
        failing: tuple[ConversationStep, ...] = (
            create(card(**{card_use.field: "first"}), rules="CARD-04 STA-02"),
            Customer(order="order", action="pay", choice="declined", rules="SET-28", name=failed),
            read("order", "CARD-20 SET-28", name=f"the order after {failed}", about={"status": "SET-35"}),
        )
        yield ConversationScene(failed, failing)
    yield ConversationScene("stored cards without a card", tuple(_missing_card()), is_costly=True)


class StoredCardUse(NamedTuple):
    """A use of stored cards: its field and value, and the rules of its steps."""

    field: str
    use: str
    first: str
    series: str
    other_amount: str
    other_use: str
    other_use_rule: str
    without_cvc: str


STORED_CARD_USES: Final = (
    StoredCardUse(
        field="one_click_type",
        use="one-click",
        first="STA-08 FLOW-04",
        series="STA-11 FLOW-06 TX-13 CARD-21",
        other_amount="FLOW-05 LIM-10",
        other_use="recurring_type",
        other_use_rule="CARD-13",
        without_cvc="CARD-14 LIM-11",
    ),
    StoredCardUse(
        field="recurring_type",
        use="recurring",
        first="STA-09 FLOW-07",
        series="STA-12 FLOW-08 FLOW-09 TX-13 CARD-21",
        other_amount="LIM-07 SET-64",
        other_use="one_click_type",
        other_use_rule="CARD-12",
        without_cvc="FLOW-08 STA-12",
    ),
)
TOKEN: Final = "<<first.transactions[0].payment_method_details.vault_token>>"


def _stored_card(card_use: StoredCardUse) -> Iterator[ConversationStep]:
    use, first = card_use.use, card_use.first
    yield create(card(**{card_use.field: "first"}), **SHOP, saves="first", rules="CARD-04 STA-02")
    yield read("first", "CARD-20")
    shown = f"a first {use} payment"
    yield Customer(order="first", action="pay", choice="challenge", rules=first, name=shown)
    yield read("first", f"{first} CARD-20 CARD-19")
    yield read("first", f"CARD-20 {first}", name=f"{shown}, read again")
    for number, (amount, cvc, rule) in enumerate(_charges(card_use)):
        about = {"transactions.payment_url": "TX-13", "status": rule.split()[0]}
        name = f"{use} of {amount} cents with {cvc or 'no CVC'}"
        details = {card_use.field: use, "vault_token": TOKEN, **cvc}
        body = sale(card(**details), amount=amount, webhook_url=WEBHOOK)
        yield post(ORDERS_PATH, body, rule, name, saves=f"order{number}", about=about)
        yield read(f"order{number}", rule, blocks=True, name=f"{name}, read", about=about)
    other_value = next(each.use for each in STORED_CARD_USES if each is not card_use)
    sent = {card_use.other_use: other_value, "vault_token": TOKEN, "cvc": "123"}
    yield post(ORDERS_PATH, sale(card(**sent)), card_use.other_use_rule, f"a {use} card for the other use")
    yield order_call(_part("refunds", 100), f"a refund of a {use} payment", order="order0")
    yield read("order0", "END-10")
    yield Webhooks(rules="HOOK-02 SET-55")


def _charges(card_use: StoredCardUse) -> Iterator[tuple[int, dict[str, str], str]]:
    """Yield the amounts and card codes to charge, each with its rules."""
    yield 1000, {"cvc": "123"}, card_use.series
    yield 1000, {}, card_use.without_cvc
    for code in ("", "12", "abc"):
        yield 1000, {"cvc": code}, "CARD-14 LIM-11"
    for amount in (1750, 1, 999):
        yield amount, {"cvc": "123"}, card_use.other_amount


def _missing_card() -> Iterator[ConversationStep]:
    for kind, use, rule in (
        ("one_click_type", "one-click", "CARD-12"),
        ("recurring_type", "recurring", "CARD-13"),
    ):
        for token in ({}, {"vault_token": ""}, {"vault_token": "no-such-token"}):
            sent = {kind: use, "cvc": "123", **token}
            yield post(
                ORDERS_PATH, sale(card(**sent)), rule, f"{use} with the card {token.get('vault_token')!r}"
            )
    both = {"one_click_type": "first", "recurring_type": "first"}
    yield post(ORDERS_PATH, sale(card(**both)), "CARD-11", "a card stored for both uses")
