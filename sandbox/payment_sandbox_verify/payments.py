"""The scenes of payments, authorizations and stored cards."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox_verify.order_calls import (
    ALL,
    AMOUNT_RULES,
    BLOCKS,
    CANCEL,
    CHANGE,
    LINES_RULES,
    POST,
    REFUND_REST,
    SHORT_PERIOD,
    TRANSACTION,
    OrderCall,
    banks_for,
    by_lines,
    calls_on_order,
    create,
    expired_steps,
    is_invoiced,
    lines_for,
    part,
)
from payment_sandbox_verify.rules import METHOD_RULES, PAID_RULES, VISIT_RULES
from payment_sandbox_verify.samples import (
    CARD,
    INVOICE,
    LINES_TOTAL,
    PAY_LATER,
    SHOP,
    WALLET_WEB,
    card,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    ORDER_PATH,
    ORDERS_PATH,
    WEBHOOK,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
    Webhooks,
    call,
    read,
)

TRIED_CARDS: Final = {"challenge": "CARD-07", "challenge-configurable": "CARD-08"}
EMPTY_BODIES: Final[dict[str, dict[str, Any]]] = {
    "no body": {},
    "an empty body": {"content": b""},
    "an empty object": {"body": {}},
    "an empty list": {"body": []},
    "null": {"content": b"null"},
    "an empty text": {"content": b'""'},
}


def payment_scenes() -> Iterator[ConversationScene]:
    """Yield a payment with each method, and what can be done after it."""
    for method in PAID_RULES:
        if METHODS_BY_NAME[method].capabilities.testable:
            yield ConversationScene(f"{method}, paid", tuple(payment_steps(method)))
    pay = Customer(action="pay", choice=WALLET_WEB, rules="FLOW-02 GEN-05")
    new = create(**SHOP, rules="FLOW-01 STA-03", merchant_order_id="A-2")
    paid = read("order", "FLOW-02 SET-24", BLOCKS)
    calls = calls_on_order("a paid hosted order", is_paid=True)
    yield ConversationScene("hosted page, paid", (new, pay, paid, Webhooks(), *calls))
    decline = Customer(action="pay", choice="declined", rules="FLOW-15")
    declined = read("order", "SET-35 SET-28", name="the order after a declined card")
    yield ConversationScene("a failed payment", (create(card(), **SHOP), decline, declined, Webhooks()))
    yield ConversationScene("attempts on the hosted page", tuple(hosted_attempts()))
    yield ConversationScene("a changed order, paid", tuple(changed_order_steps()))
    yield ConversationScene("amounts and quantities of other types", tuple(other_types()))
    for name, rule in TRIED_CARDS.items():
        for action in ("pay", "fail"):
            act = Customer(action=action, choice=name, rules=rule)
            after = read("order", rule, name=f"the order after {action} with the card {name}")
            yield ConversationScene(f"card {name}, {action}", (create(card(), **SHOP), act, after))
    for shown, sent in EMPTY_BODIES.items():
        capture = call(f"POST {ORDER_PATH}{TRANSACTION}captures/", "SET-10 END-11", **sent)
        refund = call(f"POST {ORDER_PATH}refunds/", "SET-10 END-10", **sent)
        yield ConversationScene(f"captured with {shown}", (*authorize(CARD, "manual"), capture, refund))


def payment_steps(method: str) -> Iterator[ConversationStep]:
    """Yield a payment, and each call on the paid order."""
    rules, visit_rule = PAID_RULES[method], VISIT_RULES.get(method, "SET-36")
    yield from banks_for(method)
    yield create(transaction_with(method), **SHOP, **lines_for(method))
    yield read("order")
    yield Customer(action="visit", rules=visit_rule, name=f"a visit to the {method} page")
    yield read("order", visit_rule, name=f"the {method} order after a visit")
    change = {"amount": LINES_TOTAL + 1}
    yield call(CHANGE, "SET-52", change, name="a change of the amount after a visit", saves="order")
    if method == CARD:
        yield Pause(seconds=1.5)
    choice = "frictionless" if method == CARD else ""
    yield Customer(action="pay", choice=choice, rules="FLOW-14 ORD-09", name=f"a payment with {method}")
    yield read("order", rules, BLOCKS, name=f"the {method} order after its payment")
    yield Webhooks()
    if not is_invoiced(method):
        yield from calls_on_order(f"a paid {method} order", is_paid=True)
        yield Webhooks()


def hosted_attempts() -> Iterator[ConversationStep]:
    """Yield further attempts on the hosted page, after one that fails."""
    about = {"transactions": "SET-18", "last_transaction_added": "SET-18"}
    yield create(**SHOP)
    for action, choice in (("pay", "declined"), ("choose", WALLET_WEB), ("pay", "")):
        yield Customer(action=action, choice=choice, rules="SET-18")
        name = f"the order after {action} {choice}".rstrip()
        yield read("order", "SET-18 SET-28", BLOCKS, name=name, about=about)
    yield Webhooks()


def changed_order_steps() -> Iterator[ConversationStep]:
    """Yield a changed order that is paid, its refunds with and without an Idempotency-Key, and a refund's."""
    changes = {"amount": 1250, "return_url": "https://shop.invalid/changed", "description": "Changed"}
    about = {"amount": "SET-52", "transactions.amount": "SET-52", "amount_details": "SET-52"}
    yield create(**SHOP)
    yield call(CHANGE, "SET-52 SET-51", changes, saves="order")
    yield Customer(action="pay", choice=WALLET_WEB, rules="SET-51", name="it is paid")
    yield read("order", "SET-52", BLOCKS, name="the changed order, paid", about=about)
    keys = {"Idempotency-Key": "<<order.id>>"}
    for name, headers in (("with a key", keys), ("with the same key", keys), ("without the key", {})):
        sent: dict[str, Any] = {"headers": headers, "about": {"id": "SET-71"} if headers else {}}
        body = {"amount": 600, "description": "part"}
        request = f"POST {ORDER_PATH}refunds/"
        yield call(request, "SET-71 END-10", body, name=f"a refund {name}", saves="refund", **sent)
        yield read("order", "SET-71", BLOCKS, name=f"the order after a refund {name}")
    yield call(f"POST {ORDERS_PATH}<<refund.id>>/refunds/", "SET-49 SET-48", {}, name="a refund of a refund")
    yield CANCEL.on("refund", "a cancellation of a refund")


def other_types() -> Iterator[ConversationStep]:
    """Yield captures, voids and refunds of amounts and quantities of other types."""
    yield from authorize(CARD, "manual")
    yield part("captures", 500).on("order", "a capture of a half")
    for kind in AMOUNT_RULES:
        for value in ("100", 12.5, -1, True, None):
            each = part(kind, value, "SET-11 LIM-02")
            yield each.on("order", each.name)
        for quantity in (0, -1, 1.5, "1"):
            each = by_lines(kind, "socks", quantity, f"LINE-06 {LINES_RULES[kind]}")
            yield each.on("order", each.name)
    yield read("order", "SET-47", BLOCKS)


# Authorizations


def plan(text: str) -> list[OrderCall]:
    """Return the calls of a plan: a letter for the kind, then an amount, or a quantity and a line."""
    kinds = {"c": "captures", "v": "voids", "r": "refunds"}
    whole = {"all": ALL, "rest": REFUND_REST, "cancel": CANCEL}
    calls = []
    for word in text.split():
        number, _, line = word[1:].partition(":")
        if word in whole:
            calls.append(whole[word])
        elif line:
            calls.append(by_lines(kinds[word[0]], line, int(number)))
        else:
            calls.append(part(kinds[word[0]], int(number), description="part"))
    return calls


PLANS: Final = {  # captures, voids and refunds of an authorized order
    "captured by amount": "c400 c1:socks c601 c600 c1 v1 r300 r701 rest",
    "captured by lines": (
        "c1:socks c1 c3:socks v1:post c1:post c2:socks r1:socks r1:post r3:socks r2:socks rest"
    ),
    "captured in full": "all all v1 cancel r1:socks r1000",
    "captured in part, then in full": "c400 all rest rest",
    "captured in part, then refunded": "c400 r401 r400 r1:post rest all rest",
    "voided by amount": "v400 v601 v600 all c1",
    "voided by lines": "v3:socks v1:post c1:socks",
    "voided in part, then captured": "v250 v1:socks all cancel",
    "with each amount twice": "c200 c200 v100 v100 r100 r100 rest",
    "with each line twice": "c1:socks c1:socks r1:socks r1:socks",
    "cancelled": "rest cancel all v1 cancel",
}
DELAYED_PLANS: Final = [name for name in PLANS if "void" in name or name == "captured by amount"]
AUTHORIZING: Final = ((CARD, "manual"), (CARD, "delayed"), (PAY_LATER, "manual"), (INVOICE, ""))
IF_MATCH_RULES: Final = {"amount": "IFM-01", "orderlines": "IFM-02"}
EFFECT_RULES: Final = {  # the rules of an order after a call, by its kind
    "captures": "SET-40 STA-19 LDET-03",
    "voids": "SET-43 STA-20",
    "refunds": "SET-26",
    "": "SET-26",
}
VALUE_RULES: Final = {"captures": ("SET-47", "STA-19"), "voids": ("VOID-01", "STA-20")}
"""The rules of the amounts and lines that a call moves."""


def authorization_scenes() -> Iterator[ConversationScene]:
    """Yield authorizations that are captured, voided, refunded, cancelled, or expire."""
    for method, mode in AUTHORIZING:
        for name in DELAYED_PLANS if mode == "delayed" else PLANS:
            state = f"{'delayed ' if mode == 'delayed' else ''}{method} authorization, {name}"
            steps = (*authorize(method, mode), *plan_steps(plan(PLANS[name]), state, method), Webhooks())
            yield ConversationScene(state, steps)
    begin, end = list[ConversationStep](), list[ConversationStep]()
    for method, mode in AUTHORIZING:
        for is_touched in (False, True) if method != PAY_LATER else ():
            order = f"{method}-{mode}-{is_touched}".replace("-", "_")
            begin += authorize(method, mode, order, expiration_period=SHORT_PERIOD)
            if is_touched:
                first = part("voids" if mode == "delayed" else "captures", 250)
                begin.append(first.on(order, f"{first.name} before the end"))
            end += expired_authorization(order, method, is_delayed=mode == "delayed", is_touched=is_touched)
    steps = tuple(expired_steps(list(filter(is_invoiced, METHODS_BY_NAME)), begin, [*end, Webhooks()]))
    yield ConversationScene("expired invoices and authorizations", steps)


def authorize(method: str, mode: str, order: str = "order", **more: Any) -> Iterator[ConversationStep]:
    """Yield an authorization."""
    sent = transaction_with(method, **({"capture_mode": mode} if mode else {}), **more)
    yield create(sent, saves=order, webhook_url=WEBHOOK, **lines_for(method))
    if method != INVOICE:
        rules = "SET-38 CAP-01 CARD-03" if method == CARD else "SET-38 PLA-02 PLA-05"
        choice, name = "frictionless" if method == CARD else "", f"an authorization with {method}"
        yield Customer(order=order, action="pay", choice=choice, rules=rules, name=name)
        yield read(order, rules, BLOCKS, name=f"the authorized {method} order")


def plan_steps(calls: Sequence[OrderCall], state: str, method: str) -> Iterator[ConversationStep]:
    """Yield the calls of a plan, each with a read; the first capture also has ETags."""
    for number, planned in enumerate(calls):
        kind, name = planned.kind, f"{planned.name}, {state}"
        each = planned._replace(rules=f"{planned.rules} {METHOD_RULES.get((method, kind), '')}")
        is_conditional = kind == "captures" and number == 0
        if is_conditional:
            rule = IF_MATCH_RULES.get(each.suffix.rsplit("/", 2)[1], "SET-33")
            yield each._replace(rules=f"{rule} SET-33").on("order", f"{name}, stale ETag", '"stale"')
        yield each.on("order", name, "<<order@ETag>>" if is_conditional else "")
        if kind == "refunds":
            yield call(f"GET {ORDERS_PATH}<<change.id>>/", "SET-48", name=f"the refund of {name}")
        about = dict(zip(("amount_details", "order_line_details"), VALUE_RULES.get(kind, ()), strict=False))
        yield read("order", EFFECT_RULES[kind], BLOCKS, name=f"the order after {name}", about=about)


def expired_authorization(
    order: str, method: str, *, is_delayed: bool, is_touched: bool
) -> Iterator[ConversationStep]:
    """Yield calls on an authorization after its period; of a touched one, a part was captured or voided."""
    ended = f"{'SET-42' if is_touched else 'SET-41'} CAP-03 TRQ-05"
    rules = "CAP-05 SET-44 CAP-07" if is_delayed else ended
    shown = f"the {method} order after its expiration_period"
    yield read(order, rules, BLOCKS, name=shown)
    late = ALL._replace(rules="CAP-06 ERR-05" if is_delayed else "CAP-04 ERR-03")
    for each in (late, part("voids", 1), CANCEL):
        yield each.on(order, f"{each.name} after the expiration_period")
    yield read(order, rules.split()[0], BLOCKS, name=f"{shown}, and three calls")


# Stored cards

TOKEN: Final = "<<first.transactions[0].payment_method_details.vault_token>>"


class StoredCardUse(NamedTuple):
    """A use of stored cards: its field and value, and the rules of its steps."""

    field: str
    use: str
    first: str
    series: str
    other_amount: str
    other_use: dict[str, str]
    other_use_rule: str
    missing_card_rule: str
    without_cvc: str


STORED_CARD_USES: Final = (
    StoredCardUse(
        field="one_click_type",
        use="one-click",
        first="STA-08 FLOW-04",
        series="STA-11 FLOW-06 TX-13 CARD-21",
        other_amount="FLOW-05 LIM-10",
        other_use={"recurring_type": "recurring"},
        other_use_rule="CARD-13",
        missing_card_rule="CARD-12",
        without_cvc="CARD-14 LIM-11",
    ),
    StoredCardUse(
        field="recurring_type",
        use="recurring",
        first="STA-09 FLOW-07",
        series="STA-12 FLOW-08 FLOW-09 TX-13 CARD-21",
        other_amount="LIM-07 SET-64",
        other_use={"one_click_type": "one-click"},
        other_use_rule="CARD-12",
        missing_card_rule="CARD-13",
        without_cvc="FLOW-08 STA-12",
    ),
)


def stored_card_scenes() -> Iterator[ConversationScene]:
    """Yield payments with stored cards, and first payments that fail."""
    for each in STORED_CARD_USES:
        yield ConversationScene(each.use, tuple(stored_card_steps(each)))
        failed = f"a failed first {each.use} payment"
        steps = (
            create(card(**{each.field: "first"}), rules="CARD-04 STA-02"),
            Customer(action="pay", choice="declined", rules="SET-28", name=failed),
            read("order", "CARD-20 SET-28", name=f"the order after {failed}", about={"status": "SET-35"}),
        )
        yield ConversationScene(failed, steps)
    missing: list[ConversationStep] = [
        call(POST, each.missing_card_rule, sale(card(**{each.field: each.use}, cvc="123", **token)))
        for each in STORED_CARD_USES
        for token in ({}, {"vault_token": ""}, {"vault_token": "no-such-token"})
    ]
    both = sale(card(**{each.field: "first" for each in STORED_CARD_USES}))
    missing.append(call(POST, "CARD-11", both, name="a card stored for both uses"))
    yield ConversationScene("stored cards without a card", tuple(missing))


def stored_card_steps(card_use: StoredCardUse) -> Iterator[ConversationStep]:
    """Yield a first payment, charges of its card, and a refund."""
    use, first = card_use.use, card_use.first
    shown = f"a first {use} payment"
    yield create(card(**{card_use.field: "first"}), **SHOP, saves="first", rules="CARD-04 STA-02")
    yield read("first", "CARD-20")
    yield Customer(order="first", action="pay", choice="challenge", rules=first, name=shown)
    yield read("first", f"{first} CARD-20 CARD-19")
    yield read("first", f"CARD-20 {first}", name=f"{shown}, read again")
    charges = [(1000, {"cvc": "123"}, card_use.series), (1000, {}, card_use.without_cvc)]
    charges += [(1000, {"cvc": code}, "CARD-14 LIM-11") for code in ("", "12", "abc")]
    charges += [(amount, {"cvc": "123"}, card_use.other_amount) for amount in (1750, 1, 999)]
    for number, (amount, cvc, rule) in enumerate(charges):
        about = {"transactions.payment_url": "TX-13", "status": rule.split()[0]}
        name = f"{use} of {amount} cents with {cvc or 'no CVC'}"
        details = {card_use.field: use, "vault_token": TOKEN, **cvc}
        body = sale(card(**details), amount=amount, webhook_url=WEBHOOK)
        yield call(POST, rule, body, name=name, saves=f"order{number}", about=about)
        yield read(f"order{number}", rule, BLOCKS, name=f"{name}, read", about=about)
    other = sale(card(**card_use.other_use, vault_token=TOKEN, cvc="123"))
    yield call(POST, card_use.other_use_rule, other, name=f"a {use} card for the other use")
    yield part("refunds", 100).on("order0", f"a refund of a {use} payment")
    yield read("order0", "END-10")
    yield Webhooks(rules="HOOK-02 SET-55")
