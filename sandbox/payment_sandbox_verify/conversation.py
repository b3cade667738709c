"""The scenes of the conversation: those written by hand, for what needs an order, and the generated ones."""

from collections.abc import Iterator
from typing import Any, Final

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.orders.order import LOCALES
from payment_sandbox_verify.generated import (
    ORDER_CALLS,
    banks_for,
    change_scenes,
    create,
    field_scenes,
    get,
    issuers,
    post,
    put,
    read,
    state_scenes,
)
from payment_sandbox_verify.payment_scenes import (
    authorization_scenes,
    card_scenes,
    payment_scenes,
    repeated_scenes,
)
from payment_sandbox_verify.rules import VISIT_RULES
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    LINES,
    MARKER,
    PAY_LATER,
    REDIRECT_NL,
    SHOP,
    TRANSFER,
    UNKNOWN_ID,
    WALLET_WEB,
    WEBHOOK_URL,
    card,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    CODES_PATH,
    ORDER_PATH,
    ORDERS_PATH,
    WEBHOOK,
    WEBHOOK_RULES,
    AnswerWebhooks,
    ApiCall,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
    Webhooks,
)

UNKNOWN_PATH: Final = f"{ORDERS_PATH}{UNKNOWN_ID}/"
OVERSIZED_BODY: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'
MANY_LINES: Final = [
    {**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)
]
TESTABLE: Final = [name for name, method in METHODS_BY_NAME.items() if method.capabilities.testable]


def all_scenes() -> list[ConversationScene]:
    """Return all scenes of the conversation, those that take long last."""
    scenes = [
        *_common_scenes(),
        *field_scenes(),
        *change_scenes(),
        *_page_scenes(),
        *_given_up_scenes(),
        *state_scenes(),
        *payment_scenes(),
        *repeated_scenes(),
        *authorization_scenes(),
        *card_scenes(),
        *_code_scenes(),
        *_patient_scenes(),
    ]
    return sorted(scenes, key=lambda scene: scene.is_patient)


def _common_scenes() -> Iterator[ConversationScene]:
    yield ConversationScene("credentials", tuple(_credential_steps()))
    yield ConversationScene("paths and bodies", tuple(_transport_steps()))
    yield ConversationScene(
        "lists",
        (get("/v1/merchants/self/projects/self/currencies/", "SET-54", "the list of methods"), issuers()),
    )
    yield ConversationScene("banks", tuple(_bank_steps()))
    yield ConversationScene("unknown keys", tuple(_unknown_key_steps()))
    yield ConversationScene("lines and totals", tuple(_line_steps()))
    yield ConversationScene(
        "several problems",
        (
            post(
                ORDERS_PATH,
                {"currency": "USD", "amount": -1, "return_url": "no address"},
                "SET-05",
                "three problems",
            ),
            post(
                ORDERS_PATH, sale({"payment_method": REDIRECT_NL}), "IDR-01", "a transaction without its bank"
            ),
        ),
    )
    yield ConversationScene("conditions", tuple(_condition_steps()))
    yield ConversationScene("calls on an unknown order", tuple(_unknown_order_steps()))
    yield ConversationScene("repeated requests", tuple(_repeated_steps()))
    yield ConversationScene("a whole order", tuple(_whole_order_steps()))
    yield ConversationScene("webhook addresses", tuple(_webhook_address_steps()))
    yield ConversationScene("allow lists", tuple(_allow_list_steps()), is_costly=False)


def _credential_steps() -> Iterator[ConversationStep]:
    order = {"currency": "EUR", "amount": 1000}
    for rule, key, shown in (("AUTH-01", "", "no key"), ("AUTH-02", "no-such-key", "an unknown key")):
        yield get(UNKNOWN_PATH, f"{rule} SET-02", f"a read with {shown}", key=key)
        yield post(ORDERS_PATH, order, f"{rule} SET-02", f"an order with {shown}", key=key)
        yield post(CODES_PATH, order, f"{rule} SET-02", f"a QR request with {shown}", key=key)
    yield get(UNKNOWN_PATH, "SET-02", "a read with a key and a password", password="ignored")
    yield post(ORDERS_PATH, sale(), "SET-02", "an order with a key and a password", password="ignored")


def _transport_steps() -> Iterator[ConversationStep]:
    order = {"currency": "EUR", "amount": 1000, "description": MARKER}
    yield create()
    for path in (UNKNOWN_PATH, f"{ORDERS_PATH}nobody/", "/v1/no-such-path/"):
        yield get(path, "SET-08", f"a read of {path}")
    yield ApiCall(
        method="PUT", path=UNKNOWN_PATH, body={}, rules="SET-08", name="a change of an unknown order"
    )
    yield ApiCall(
        method="DELETE", path=UNKNOWN_PATH, rules="SET-08", name="a cancellation of an unknown order"
    )
    yield ApiCall(method="PATCH", path=ORDERS_PATH, body={}, rules="SET-08", name="PATCH of the orders")
    yield ApiCall(method="DELETE", path=CODES_PATH, rules="SET-08", name="DELETE of the QR requests")
    for shown, content in (
        ("half an object", b'{"currency": '),
        ("no UTF-8", b'{"currency": "EUR", "amount": 1000, "description": "\xff"}'),
        ("a list", b"[1]"),
        ("a text", b'"order"'),
        ("nothing", b""),
        ("two amounts", b'{"currency": "EUR", "amount": 1000, "amount": 2000}'),
        ("NaN", b'{"currency": "EUR", "amount": NaN}'),
        ("half a surrogate", b'{"currency": "EUR", "amount": 1000, "description": "\\ud800"}'),
    ):
        yield post(ORDERS_PATH, None, "SET-08", f"a body of {shown}", content=content)
    yield post(ORDERS_PATH, None, "SET-09", "a body of more than 1 MiB", content=OVERSIZED_BODY)
    plain = {"Content-Type": "text/plain"}
    for shown, content in (
        ("plain text", b"amount=1"),
        ("JSON as plain text", b'{"currency": "EUR", "amount": 1}'),
    ):
        yield post(ORDERS_PATH, None, "SET-09", f"a body of {shown}", content=content, headers=plain)
    json = b'{"currency": "EUR", "amount": 1000}'
    for media_type in (
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=UTF-8",
    ):
        headers = {"Content-Type": media_type}
        yield post(ORDERS_PATH, None, "END-01", f"a body of {media_type}", content=json, headers=headers)
        yield ApiCall(
            method="PUT", path=ORDER_PATH, content=b"{}", rules="END-01", name=media_type, headers=headers
        )
    yield post(ORDERS_PATH, None, "SET-08", "a body with a byte order mark", content=b"\xef\xbb\xbf" + json)
    yield post("//v1/orders/", order, "SET-01", "an order with an empty path segment")
    for path in ("/orders/", "/v2/orders/"):
        yield post(path, order, "VER-02", f"an order at {path}")
    yield get(f"{ORDERS_PATH}<<order.id>>", "SET-01 VER-01", "a read without the final slash")
    yield get(ORDER_PATH, "SET-01 VER-01", "a read with the final slash")
    yield post(ORDERS_PATH.rstrip("/"), order, "SET-01", "an order without the final slash")
    yield post(
        ORDERS_PATH, {"currency": "EUR", "amount": 1}, "GEN-01 END-02", "an order of amount and currency"
    )


def _unknown_order_steps() -> Iterator[ConversationStep]:
    """Yield each call on an unknown order, alone and with a second problem."""
    wrong = {"amount": -1, "order_lines": [{"quantity": 0}], "description": 5}
    for call in ORDER_CALLS:
        path = f"{UNKNOWN_PATH}{call.suffix.replace('<<order.transactions[-1].id>>', UNKNOWN_ID)}"
        name, rules = f"{call.name}, unknown order", f"SET-08 {call.rules}"
        yield ApiCall(method=call.method, path=path, body=call.body, rules=rules, name=name)
        if call.method != "DELETE":
            yield ApiCall(
                method=call.method, path=path, body=wrong, rules=rules, name=f"{name}, invalid body"
            )


def _repeated_steps() -> Iterator[ConversationStep]:
    yield create(saves="first")
    key = {"Idempotency-Key": "<<first.id>>"}
    for name, body in (("a request", sale()), ("the same request", sale()), ("another", sale(amount=1))):
        shown, about = f"{name} with an Idempotency-Key", {"id": "SET-71"}
        yield post(ORDERS_PATH, body, "SET-71", shown, headers=key, about=about)


def _bank_steps() -> Iterator[ConversationStep]:
    yield issuers()
    for number in (0, -1):
        details = {"issuer_id": f"<<banks.[{number}].id>>"}
        transaction = {"payment_method": REDIRECT_NL, "payment_method_details": details}
        yield post(
            ORDERS_PATH, sale(transaction), "IDR-06 IDR-03", "an order with a bank of the list", saves="order"
        )
        yield read("order", "IDR-06")
    for details in ({"issuer_id": "XXXXNL2A"}, {"issuer_id": ""}, {}):
        transaction = {"payment_method": REDIRECT_NL, "payment_method_details": details}
        yield post(ORDERS_PATH, sale(transaction), "IDR-06", "an order with a bank that is not in the list")


def _unknown_key_steps() -> Iterator[ConversationStep]:
    yield post(ORDERS_PATH, sale(amuont=5), "SET-12", "an unknown key", saves="order")
    yield read("order", "SET-12")
    nested = sale(card(), order_lines=[{**LINES[0], "colour": "red"}], amuont=5)
    nested["transactions"][0]["tip"] = 1
    yield post(ORDERS_PATH, nested, "SET-12", "unknown keys of an order, a line and a transaction")
    customer = {**CUSTOMER, "postal_code": "1000 AA", "housenumber": "1", "shoe_size": 42}
    yield post(
        ORDERS_PATH, sale(customer=customer), "SET-16", "a customer with additional keys", saves="order"
    )
    yield read("order", "SET-16")
    customer = {**CUSTOMER, "first_name": None, "phone_numbers": None}
    yield post(
        ORDERS_PATH,
        sale(customer=customer),
        "SET-15",
        "a customer with null values",
        saves="order",
        about={"customer": "SET-15"},
    )
    yield read("order", "SET-15")


def _line_steps() -> Iterator[ConversationStep]:
    for _ in range(2):
        yield post(ORDERS_PATH, sale(merchant_order_id="A-1"), "ORD-07", "the same merchant_order_id")
    yield post(ORDERS_PATH, sale(order_lines=MANY_LINES), "ORD-16", "an order with 100 lines")
    yield post(
        ORDERS_PATH, sale(amount=1001, order_lines=LINES), "SET-31 LINE-08", "lines that do not add up"
    )
    for kind in ("discount", "gift_card", "store_credit", "physical", "shipping_fee", "surcharge"):
        lines = [LINES[0], {**LINES[1], "type": kind, "amount": -250}]
        yield post(ORDERS_PATH, sale(amount=500, order_lines=lines), "LINE-02", f"a negative {kind}")
    lines = [LINES[0], {**LINES[1], "merchant_order_line_id": "socks"}]
    yield post(ORDERS_PATH, sale(order_lines=lines), "LINE-04", "two lines with one id")


def _condition_steps() -> Iterator[ConversationStep]:
    yield create(card(), order_lines=LINES)
    for block, rule in (("order_line_details", "END-04 ORD-28"), ("amount_details", "END-05 ORD-29")):
        yield get(f"{ORDER_PATH}?fields[]={block}", rule, f"a read with {block}")
    yield get(
        f"{ORDER_PATH}?fields[]=order_line_details&fields[]=amount_details",
        "END-06",
        "a read with both blocks",
    )
    yield get(f"{ORDER_PATH}?fields[0]=amount_details", "END-06", "a read with a numbered block")
    yield get(f"{ORDER_PATH}?fields[]=no_such_block", "END-06", "a read with an unknown block")
    yield get(ORDER_PATH, "END-03", "a read", saves="first")
    for tags in ("<<first@ETag>>", '"x", <<first@ETag>>', "W/<<first@ETag>>", '"x"', "*"):
        headers = {"If-None-Match": tags}
        yield get(ORDER_PATH, "SET-34", f"a read with If-None-Match {tags[:5]}", headers=headers)
    yield Pause(seconds=1.5)
    yield put({"description": "Changed"}, "SET-32 SET-51", "a change", about={"modified": "ORD-19"})
    yield get(
        ORDER_PATH, "SET-34", "a read with an outdated ETag", headers={"If-None-Match": "<<first@ETag>>"}
    )
    yield get(
        ORDER_PATH, "SET-34", "a read with the ETag of PUT", headers={"If-None-Match": "<<order@ETag>>"}
    )
    stale = {"If-Match": "<<first@ETag>>"}
    yield put({"description": "Again"}, "SET-33", "a change with an outdated ETag", headers=stale)
    current = {"If-Match": "<<order@ETag>>"}
    yield put({"description": "Again"}, "SET-33", "a change with the current ETag", headers=current)
    yield ApiCall(
        method="DELETE", path=ORDER_PATH, rules="SET-33", name="an outdated cancellation", headers=stale
    )
    yield ApiCall(
        method="DELETE",
        path=ORDER_PATH,
        rules="SET-50 SET-33",
        name="a cancellation",
        headers=current,
        saves="order",
    )
    yield read("order", "SET-50")


def _whole_order_steps() -> Iterator[ConversationStep]:
    yield create(
        **SHOP,
        order_lines=LINES,
        customer=dict(CUSTOMER),
        extra={"a": 1},
        client={"user_agent": "x"},
        merchant_order_id="A-3",
    )
    for about, more in (
        ("as it was read", {}),
        ("with another text", {"description": "Whole"}),
        ("with other read-only values", {"status": "completed", "merchant_id": "x", "id": UNKNOWN_ID}),
    ):
        yield get(ORDER_PATH, "END-03 SET-25", "a read", saves="whole")
        body = {name: f"<<whole.{name}>>" for name in _WHOLE_FIELDS} | more
        yield put(body, "SET-53", f"a whole order {about}")
        yield read("order", "SET-53")


_WHOLE_FIELDS: Final = (
    *("id", "status", "amount", "currency", "description", "return_url", "webhook_url", "customer"),
    *("extra", "order_lines", "transactions", "flags", "created", "modified", "merchant_id", "project_id"),
    *("merchant_order_id", "client", "order_url"),
)


def _webhook_address_steps() -> Iterator[ConversationStep]:
    yield create(card(), webhook_url=WEBHOOK_URL)
    yield put({"webhook_url": WEBHOOK}, "SET-51 HOOK-04", "a change of the webhook_url")
    yield ApiCall(method="DELETE", path=ORDER_PATH, rules="SET-50", name="a cancellation")
    yield Webhooks(rules="SET-51 HOOK-04")
    yield create(**SHOP, saves="other")
    yield ApiCall(method="DELETE", path=f"{ORDERS_PATH}<<other.id>>/", rules="SET-50", name="a cancellation")
    yield Webhooks(rules=WEBHOOK_RULES)


def _allow_list_steps() -> Iterator[ConversationStep]:
    sent: dict[str, Any] = {"customer": dict(CUSTOMER), "order_lines": LINES}
    for method in METHODS_BY_NAME:
        rules = {PAY_LATER: "FLOW-12", INVOICE: "FLOW-13"}.get(method, "ORD-13")
        yield post(ORDERS_PATH, sale(payment_methods=[method], **sent), rules, f"an allow list of {method}")
    for rule, method, needed in (
        ("PLA-01", PAY_LATER, "order_lines"),
        ("INV-01", INVOICE, "order_lines"),
        ("INV-02", INVOICE, "customer"),
    ):
        remaining = {name: value for name, value in sent.items() if name != needed}
        name = f"an allow list of {method} without {needed}"
        yield post(ORDERS_PATH, sale(payment_methods=[method], **remaining), rule, name)
        transaction = sale({"payment_method": method}, **remaining)
        transaction.pop(needed, None)
        yield post(ORDERS_PATH, transaction, rule, f"an order with {method} without {needed}")


def _page_scenes() -> Iterator[ConversationScene]:
    """Yield what customers see on payment pages, without a payment."""
    for locale in ("", *LOCALES):
        customer: dict[str, Any] = {"customer": {"locale": locale}} if locale else {}
        look = Customer(
            order="order",
            action="look",
            rules="CUS-12 GEN-03",
            name=f"the page in {locale or 'any language'}",
        )
        yield ConversationScene(
            f"page in {locale or 'no language'}", (create(**customer, rules="CUS-11" if locale else ""), look)
        )
    sent: dict[str, Any] = {"customer": dict(CUSTOMER), "order_lines": LINES}
    for offered in (None, [CARD], [WALLET_WEB, CARD], [PAY_LATER, CARD]):
        allowed: dict[str, Any] = {} if offered is None else {"payment_methods": offered}
        rules = "GEN-03 ORD-14" if offered is None else "GEN-04 ORD-13"
        shown = "no allow list" if offered is None else f"an allow list of {' and '.join(offered)}"
        look = Customer(order="order", action="look", rules=rules, name=f"the page with {shown}")
        yield ConversationScene(f"methods with {shown}", (create(**sent, **allowed), look))


def _given_up_scenes() -> Iterator[ConversationScene]:
    """Yield customers who give up on the page of each method."""
    for method in TESTABLE:
        if METHODS_BY_NAME[method].capabilities.needs_order_lines or method == TRANSFER:
            continue
        yield ConversationScene(f"{method} given up", tuple(_give_up(method)))
    hosted = Customer(
        order="order", action="choose", choice=CARD, rules="STA-04 GEN-03", name="the choice of the card"
    )
    cancel = Customer(order="order", action="cancel", rules="FLOW-15", name="the customer gives up")
    yield ConversationScene(
        "hosted page, given up",
        (
            create(**SHOP),
            hosted,
            read("order", "STA-04"),
            cancel,
            read("order", "FLOW-15"),
            Webhooks(rules=WEBHOOK_RULES),
        ),
    )
    stay = Customer(
        order="order", action="cancel", rules="FLOW-16", name="the customer gives up without return_url"
    )
    yield ConversationScene("no return_url", (create(card()), stay, read("order", "FLOW-16")))


def _give_up(method: str) -> Iterator[ConversationStep]:
    yield from banks_for(method)
    yield create(transaction_with(method), **SHOP)
    rule = VISIT_RULES.get(method, "SET-36")
    yield Customer(order="order", action="visit", rules=rule, name=f"a visit to the page of {method}")
    yield read("order", rule, name=f"{method}, visited")
    yield Customer(order="order", action="cancel", rules="FLOW-15", name=f"the customer gives up {method}")
    yield read("order", "FLOW-15", name=f"{method}, given up")
    yield Webhooks(rules=WEBHOOK_RULES)


def _code_scenes() -> Iterator[ConversationScene]:
    """Yield QR requests: their defaults, their bounds, and the image."""
    code = {"currency": "EUR", "amount": 1000, "description": MARKER, "webhook_url": WEBHOOK_URL}
    about = {
        "size": "QR-19",
        "one_off": "QR-12",
        "expiration": "QR-15",
        "amount_changeable": "QR-05",
        "amount": "QR-01",
    }
    rules = "END-18 QR-01 QR-05 QR-12 QR-15 QR-19 LIM-03 LIM-04"
    steps: list[ConversationStep] = [
        post(CODES_PATH, code, rules, "a QR request of an amount", saves="code", about=about),
        Customer(order="code", action="visit", rules="QR-26", name="the QR image"),
    ]
    steps.append(post(CODES_PATH, code, rules, "the same QR request again", about={**about, "id": "QR-23"}))
    for amount in (1, 7, 10, 1295, 123456):
        steps.append(post(CODES_PATH, {**code, "amount": amount}, "QR-01", f"a QR request of {amount} cents"))
    bounds = (
        (500, 2000),
        (1000, 2000),
        (999, 1001),
        (1001, 2000),
        (500, 1000),
        (0, 2000),
        (500, 0),
        (2000, 500),
    )
    for low, high in bounds:
        body = {**code, "amount_changeable": True, "amount_min": low, "amount_max": high}
        steps.append(
            post(CODES_PATH, body, "QR-09 QR-07 LIM-05 QR-04", f"a QR request from {low} to {high} cents")
        )
    for name, rule in (("amount_min", "QR-08"), ("amount_max", "QR-06")):
        steps.append(post(CODES_PATH, {**code, name: 1500}, rule, f"a fixed QR request with {name}"))
    yield ConversationScene("QR requests", tuple(steps))


RETRIES_SECONDS: Final = 1330.0
RETRY_SECONDS: Final = 160.0


def _patient_scenes() -> Iterator[ConversationScene]:
    """Yield how webhooks are retried."""
    for name, answers, rules, seconds in (
        (
            "webhooks answered with errors",
            AnswerWebhooks(statuses=(503, 404, 500)),
            "HOOK-12 HOOK-09 HOOK-10 HOOK-11 LIM-06",
            RETRIES_SECONDS,
        ),
        (
            "a webhook answered late",
            AnswerWebhooks(statuses=(200,), delay_seconds=7.0),
            "SET-57",
            RETRY_SECONDS,
        ),
        ("a redirected webhook", AnswerWebhooks(statuses=(302,)), "SET-58", RETRY_SECONDS),
    ):
        steps = (
            answers,
            create(transaction_with(TRANSFER), webhook_url=WEBHOOK),
            Webhooks(rules=rules, seconds=seconds),
            AnswerWebhooks(statuses=(200,)),
        )
        yield ConversationScene(name, steps, is_patient=True)
