"""The scenes of the conversation: calls on orders in every state, values of every field, and payments."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.orders.order import LOCALES
from payment_sandbox.web.answers.order_tables import UpdateForm
from payment_sandbox_verify.order_calls import (
    CANCEL,
    CHANGE,
    ISSUERS,
    ORDER_CALLS,
    POST,
    Steps,
    banks_for,
    calls_on_order,
    create,
    expired_steps,
    is_invoiced,
    lines_for,
)
from payment_sandbox_verify.payments import authorization_scenes, payment_scenes, stored_card_scenes
from payment_sandbox_verify.rules import VISIT_RULES, rule_of_path
from payment_sandbox_verify.samples import (
    CARD,
    CODE,
    CUSTOMER,
    INVOICE,
    LINES,
    PAY_LATER,
    REDIRECT_NL,
    SHOP,
    TRANSFER,
    UNKNOWN_ID,
    WALLET_WEB,
    card,
    sale,
    transaction_with,
)
from payment_sandbox_verify.steps import (
    CODES_PATH,
    ORDER_PATH,
    ORDERS_PATH,
    WEBHOOK,
    AnswerWebhooks,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
    Webhooks,
    call,
    read,
)
from payment_sandbox_verify.values import GROUPS, values_of, with_value

# Requests and headers

RETRIES_SECONDS: Final = 1330.0
RETRY_SECONDS: Final = 160.0
SMALL_ORDER: Final = {"currency": "EUR", "amount": 1000}
UNKNOWN_PATH: Final = f"{ORDERS_PATH}{UNKNOWN_ID}/"
POST_CODE: Final = f"POST {CODES_PATH}"
READ: Final = f"GET {ORDER_PATH}"
CANCEL_ORDER: Final = f"DELETE {ORDER_PATH}"
JSON_TYPES: Final = ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8")
BROKEN_BODIES: Final = (
    b'{"currency": ',
    b'{"currency": "EUR", "amount": 1000, "description": "\xff"}',
    b"[1]",
    b'"order"',
    b"",
    b'{"currency": "EUR", "amount": 1000, "amount": 2000}',
    b'{"currency": "EUR", "amount": NaN}',
    b'{"currency": "EUR", "amount": 1000, "description": "\\ud800"}',
    b'\xef\xbb\xbf{"currency": "EUR", "amount": 1000}',
)
OVERSIZED_BODY: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'


def credential_steps() -> Iterator[ConversationStep]:
    """Yield calls without a key, with an unknown one, and with a password."""
    for rule, key in (("AUTH-01", ""), ("AUTH-02", "no-such-key")):
        for request, body in ((f"GET {UNKNOWN_PATH}", None), (POST, SMALL_ORDER), (POST_CODE, SMALL_ORDER)):
            name = f"with {'an unknown key' if key else 'no key'}"
            yield call(request, f"{rule} SET-02", body, name=name, auth=(key, ""))
    for request, body in ((f"GET {UNKNOWN_PATH}", None), (POST, sale())):
        yield call(request, "SET-02", body, name="with a key and a password", auth=(None, "ignored"))


def transport_steps() -> Iterator[ConversationStep]:
    """Yield wrong paths, methods and bodies."""
    yield create()
    for path in (UNKNOWN_PATH, f"{ORDERS_PATH}nobody/", "/v1/no-such-path/"):
        yield call(f"GET {path}", "SET-08")
    for request in (f"PUT {UNKNOWN_PATH}", f"PATCH {ORDERS_PATH}"):
        yield call(request, "SET-08", {})
    for request in (f"DELETE {UNKNOWN_PATH}", f"DELETE {CODES_PATH}"):
        yield call(request, "SET-08")
    for content in BROKEN_BODIES:
        yield call(POST, "SET-08", content=content)
    yield call(POST, "SET-09", content=OVERSIZED_BODY)
    for content in (b"amount=1", b'{"currency": "EUR", "amount": 1}'):
        yield call(POST, "SET-09", content=content, headers={"Content-Type": "text/plain"})
    for media_type in JSON_TYPES:
        headers = {"Content-Type": media_type}
        yield call(POST, "END-01", content=b'{"currency": "EUR", "amount": 1000}', headers=headers)
        yield call(CHANGE, "END-01", content=b"{}", headers=headers)
    yield call("POST //v1/orders/", "SET-01", sale(), name="an order with an empty path segment")
    for path in ("/orders/", "/v2/orders/"):
        yield call(f"POST {path}", "VER-02", sale())
    yield call(f"GET {ORDERS_PATH}<<order.id>>", "SET-01 VER-01", name="a read without the final slash")
    yield call(READ, "SET-01 VER-01", name="a read with the final slash")
    yield call("POST /v1/orders", "SET-01", sale(), name="an order without the final slash")
    yield call(POST, "GEN-01 END-02", {"currency": "EUR", "amount": 1})


def unknown_order_steps() -> Iterator[ConversationStep]:
    """Yield each call on an unknown order, alone and with a second problem."""
    wrong = {"amount": -1, "order_lines": [{"quantity": 0}], "description": 5}
    for each in ORDER_CALLS:
        path = f"{UNKNOWN_PATH}{each.suffix.replace('<<order.transactions[-1].id>>', UNKNOWN_ID)}"
        request, name = f"{each.method} {path}", f"{each.name}, unknown order"
        yield call(request, f"SET-08 {each.rules}", each.body, name=name)
        if each.method != "DELETE":
            yield call(request, f"SET-08 {each.rules}", wrong, name=f"{name}, invalid body")


def bank_steps() -> Iterator[ConversationStep]:
    """Yield orders with banks that are in the list, and with others."""
    yield ISSUERS
    listed = [{"issuer_id": f"<<banks.[{number}].id>>"} for number in (0, -1)]
    for details in (*listed, {"issuer_id": "XXXXNL2A"}, {"issuer_id": ""}, {}):
        transaction = {"payment_method": REDIRECT_NL, "payment_method_details": details}
        rules = "IDR-06 IDR-03" if details in listed else "IDR-06"
        yield call(POST, rules, sale(transaction), name=f"a bank of {details}", saves="order")
        if details in listed:
            yield read("order", "IDR-06")


def unknown_key_steps() -> Iterator[ConversationStep]:
    """Yield unknown keys, and values of the customer that are null."""
    more_keys = {**CUSTOMER, "postal_code": "1000 AA", "housenumber": "1", "shoe_size": 42}
    nulls = {**CUSTOMER, "first_name": None, "phone_numbers": None}
    nested = sale(card(), order_lines=[{**LINES[0], "colour": "red"}], amuont=5)
    nested["transactions"][0]["tip"] = 1
    about = {"customer": "SET-15"}
    yield call(POST, "SET-12", sale(amuont=5), name="an unknown key", saves="order")
    yield read("order", "SET-12")
    yield call(POST, "SET-12", nested, name="unknown keys of an order, a line and a transaction")
    yield call(POST, "SET-16", sale(customer=more_keys), name="a customer with more keys", saves="order")
    yield read("order", "SET-16")
    name = "a customer with null values"
    yield call(POST, "SET-15", sale(customer=nulls), name=name, saves="order", about=about)
    yield read("order", "SET-15")


def line_steps() -> Iterator[ConversationStep]:
    """Yield order lines: how many there may be, their types, ids and totals."""
    many = [{**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)]
    for _ in range(2):
        yield call(POST, "ORD-07", sale(merchant_order_id="A-1"), name="the same merchant_order_id")
    yield call(POST, "ORD-16", sale(order_lines=many), name="an order with 100 lines")
    yield call(POST, "SET-31 LINE-08", sale(amount=1001, order_lines=LINES), name="lines of another total")
    for kind in ("discount", "gift_card", "store_credit", "physical", "shipping_fee", "surcharge"):
        lines = [LINES[0], {**LINES[1], "type": kind, "amount": -250}]
        yield call(POST, "LINE-02", sale(amount=500, order_lines=lines), name=f"a negative {kind}")
    lines = [LINES[0], {**LINES[1], "merchant_order_line_id": "socks"}]
    yield call(POST, "LINE-04", sale(order_lines=lines), name="two lines with one id")


def repeated_request_steps() -> Iterator[ConversationStep]:
    """Yield equal and different requests with one Idempotency-Key."""
    yield create(saves="first")
    for body in (sale(), sale(), sale(amount=1)):
        headers, about = {"Idempotency-Key": "<<first.id>>"}, {"id": "SET-71"}
        yield call(POST, "SET-71", body, headers=headers, about=about)


def condition_steps() -> Iterator[ConversationStep]:
    """Yield reads with blocks, and conditions with ETags."""
    lines, amounts = "fields[]=order_line_details", "fields[]=amount_details"
    yield create(card(), order_lines=LINES)
    for query, rules in (
        (lines, "END-04 ORD-28"),
        (amounts, "END-05 ORD-29"),
        (f"{lines}&{amounts}", "END-06"),
        ("fields[0]=amount_details", "END-06"),
        ("fields[]=no_such_block", "END-06"),
    ):
        yield call(f"{READ}?{query}", rules)
    yield call(READ, "END-03", saves="first")
    for tags in ("<<first@ETag>>", '"x", <<first@ETag>>', "W/<<first@ETag>>", '"x"', "*"):
        yield call(READ, "SET-34", headers={"If-None-Match": tags}, name=f"If-None-Match {tags[:5]}")
    yield Pause(seconds=1.5)
    about = {"modified": "ORD-19"}
    yield call(CHANGE, "SET-32 SET-51", {"description": "Changed"}, saves="order", about=about)
    for tag in ("<<first@ETag>>", "<<order@ETag>>"):
        yield call(READ, "SET-34", headers={"If-None-Match": tag})
    stale, current = {"If-Match": "<<first@ETag>>"}, {"If-Match": "<<order@ETag>>"}
    for headers in (stale, current):
        yield call(CHANGE, "SET-33", {"description": "Again"}, saves="order", headers=headers)
    yield call(CANCEL_ORDER, "SET-33", headers=stale)
    yield call(CANCEL_ORDER, "SET-50 SET-33", headers=current, saves="order")
    yield read("order", "SET-50")


WHOLE_FIELDS: Final = (
    *("id", "status", "amount", "currency", "description", "return_url", "webhook_url", "customer"),
    *("extra", "order_lines", "transactions", "flags", "created", "modified", "merchant_id", "project_id"),
    *("merchant_order_id", "client", "order_url"),
)


def whole_order_steps() -> Iterator[ConversationStep]:
    """Yield changes that send a whole order."""
    more: dict[str, Any] = {"extra": {"a": 1}, "client": {"user_agent": "x"}, "merchant_order_id": "A-3"}
    yield create(**SHOP, order_lines=LINES, customer=dict(CUSTOMER), **more)
    read_only = {"status": "completed", "merchant_id": "x", "id": UNKNOWN_ID}
    for changes in ({}, {"description": "Whole"}, read_only):
        yield call(READ, "END-03 SET-25", saves="whole")
        body = {name: f"<<whole.{name}>>" for name in WHOLE_FIELDS} | changes
        name = f"a whole order with {changes or 'no change'}"
        yield call(CHANGE, "SET-53", body, name=name, saves="order")
        yield read("order", "SET-53")


WEBHOOK_ADDRESS_STEPS: Final[Steps] = (
    create(card(), webhook_url=CODE["webhook_url"]),
    call(CHANGE, "SET-51 HOOK-04", {"webhook_url": WEBHOOK}, saves="order"),
    call(CANCEL_ORDER, "SET-50"),
    Webhooks(rules="SET-51 HOOK-04"),
    create(**SHOP, saves="other"),
    call(f"DELETE {ORDERS_PATH}<<other.id>>/", "SET-50"),
    Webhooks(),
)


def allow_list_steps() -> Iterator[ConversationStep]:
    """Yield an allow list of each method, and invoices without what they need."""
    sent: dict[str, Any] = {"customer": dict(CUSTOMER), "order_lines": LINES}
    for method in METHODS_BY_NAME:
        rules = {PAY_LATER: "FLOW-12", INVOICE: "FLOW-13"}.get(method, "ORD-13")
        body = sale(payment_methods=[method], **sent)
        yield call(POST, rules, body, name=f"an allow list of {method}")
    for rule, method, needed in (
        ("PLA-01", PAY_LATER, "order_lines"),
        ("INV-01", INVOICE, "order_lines"),
        ("INV-02", INVOICE, "customer"),
    ):
        for body in (sale(payment_methods=[method], **sent), sale({"payment_method": method}, **sent)):
            shown = "an order with" if "transactions" in body else "an allow list of"
            del body[needed]
            yield call(POST, rule, body, name=f"{shown} {method} without {needed}")


def code_steps() -> Iterator[ConversationStep]:
    """Yield QR requests: their defaults, their bounds, and the image."""
    code = {**CODE, "amount_changeable": ...}
    del code["amount_changeable"]
    about = {"size": "QR-19", "one_off": "QR-12", "expiration": "QR-15", "amount": "QR-01"}
    about["amount_changeable"] = "QR-05"
    rules = "END-18 QR-01 QR-05 QR-12 QR-15 QR-19 LIM-03 LIM-04"
    yield call(POST_CODE, rules, code, saves="code", about=about)
    yield Customer(order="code", action="visit", rules="QR-26", name="the QR image")
    yield call(POST_CODE, rules, code, name="the same QR request again", about={**about, "id": "QR-23"})
    for amount in (1, 7, 10, 1295, 123456):
        yield call(POST_CODE, "QR-01", {**code, "amount": amount})
    ordered = ((500, 2000), (1000, 2000), (999, 1001), (1001, 2000), (500, 1000))
    for low, high in (*ordered, (0, 2000), (500, 0), (2000, 500)):
        body = {**code, "amount_changeable": True, "amount_min": low, "amount_max": high}
        name = f"a QR request from {low} to {high} cents"
        yield call(POST_CODE, "QR-09 QR-07 LIM-05 QR-04", body, name=name)
    for field, rule in (("amount_min", "QR-08"), ("amount_max", "QR-06")):
        yield call(POST_CODE, rule, {**code, field: 1500})


# Fields


def field_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each field: an order or a code for each value, which is read back."""
    for group in GROUPS:
        for name, kind in group.form().fields.items():
            path = f"{group.below}{name}"
            rule, steps = rule_of_path(group.path, path), list[ConversationStep]()
            for number, value in enumerate(values_of(name, kind)):
                shown = f"a new {group.name} with {path} {'missing' if value is ... else f'of {value!r:.60}'}"
                body, saves = with_value(group.body, path, value), f"order{number}"
                steps.append(call(f"POST {group.path}", rule, body, name=shown, saves=saves))
                steps += [read(saves, rule, name=f"{shown}, read")] if group.path == ORDERS_PATH else []
            yield ConversationScene(f"{group.name}: {name}", tuple(steps))


def change_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each field that PUT changes: an order with a change for each value."""
    for name, kind in UpdateForm().fields.items():
        sent = {"extra": {"a": 1}, "merchant_order_id": f"change of {name}"}
        order = sale(order_lines=LINES, customer=dict(CUSTOMER), **sent)
        rule = "SET-52" if name in ("amount", "order_lines") else "SET-51"
        steps: list[ConversationStep] = [call(POST, "END-02", order, saves="order")]
        values = [{"first_name": "Zoë", "country": "BE"}] if name == "customer" else []
        for value in [*values, *values_of(name, kind)]:
            if value is not ...:
                shown = f"PUT with {name} of {value!r:.60}"
                steps.append(call(CHANGE, rule, {name: value}, name=shown, saves="order"))
                steps.append(read("order", rule, name=f"{shown}, read", about={name: rule}))
        yield ConversationScene(f"changed {name}", tuple(steps))


# Pages and states


def page_scenes() -> Iterator[ConversationScene]:
    """Yield what customers see on payment pages."""
    for locale in ("", *LOCALES):
        customer: dict[str, Any] = {"customer": {"locale": locale}} if locale else {}
        shown = f"the page in {locale or 'any language'}"
        look = Customer(action="look", rules="CUS-12 GEN-03", name=shown)
        new = create(**customer, rules="CUS-11" if locale else "")
        yield ConversationScene(f"page in {locale or 'no language'}", (new, look))
    sent: dict[str, Any] = {"customer": dict(CUSTOMER), "order_lines": LINES}
    for offered in ([], [CARD], [WALLET_WEB, CARD], [PAY_LATER, CARD]):
        allowed: dict[str, Any] = {"payment_methods": offered} if offered else {}
        shown = f"an allow list of {' and '.join(offered)}" if offered else "no allow list"
        rules = "GEN-04 ORD-13" if offered else "GEN-03 ORD-14"
        look = Customer(action="look", rules=rules, name=f"the page with {shown}")
        yield ConversationScene(f"methods with {shown}", (create(**sent, **allowed), look))


def given_up_scenes() -> Iterator[ConversationScene]:
    """Yield customers who give up."""
    for method, each in METHODS_BY_NAME.items():
        if each.capabilities.testable and not is_invoiced(method) and method != TRANSFER:
            yield ConversationScene(f"{method} given up", tuple(give_up(method)))
    choose = Customer(action="choose", choice=CARD, rules="STA-04 GEN-03")
    cancel = Customer(action="cancel", rules="FLOW-15")
    steps = (create(**SHOP), choose, read("order", "STA-04"), cancel, read("order", "FLOW-15"), Webhooks())
    yield ConversationScene("hosted page, given up", steps)
    stay = Customer(action="cancel", rules="FLOW-16", name="the customer gives up without return_url")
    yield ConversationScene("no return_url", (create(card()), stay, read("order", "FLOW-16")))


def give_up(method: str) -> Iterator[ConversationStep]:
    """Yield a customer who gives up on the page of a method."""
    yield from banks_for(method)
    yield create(transaction_with(method), **SHOP)
    rule = VISIT_RULES.get(method, "SET-36")
    yield Customer(action="visit", rules=rule, name=f"a visit to the page of {method}")
    yield read("order", rule, name=f"{method}, visited")
    yield Customer(action="cancel", rules="FLOW-15", name=f"the customer gives up {method}")
    yield read("order", "FLOW-15", name=f"{method}, given up")
    yield Webhooks()


def state_scenes() -> Iterator[ConversationScene]:
    """Yield a scene for each method and state that an order reaches without a payment."""
    for method in ("", *METHODS_BY_NAME):
        shown = f"{method} order" if method else "hosted order"
        transactions = [transaction_with(method)] if method else []
        new = [*banks_for(method), create(*transactions, **lines_for(method))]
        rule = VISIT_RULES.get(method, "SET-36")
        visit = Customer(action="visit", rules=rule, name=f"a visit to the page of a {shown}")
        cancel = CANCEL.on("order", f"cancellation of a {shown}")
        states: dict[str, Steps] = {
            "new": [read("order")],
            "visited": [visit, read("order", rule)],
            "cancelled": [cancel, read("order", "SET-50")],
        }
        for state, steps in states.items():
            calls = calls_on_order(f"a {state} {shown}")
            yield ConversationScene(f"{state} {shown}", (*new, *steps, *calls))
        stale = (each.on("order", f"{each.name} with a stale ETag", '"stale"') for each in ORDER_CALLS)
        yield ConversationScene(f"{shown} with a stale ETag", (*new, *stale, read("order", "SET-33")))


# Retries of webhooks

RETRY_RULES: Final = "HOOK-12 HOOK-09 HOOK-10 HOOK-11 LIM-06"
PATIENT_SCENES: Final = (
    ("webhooks answered with errors", AnswerWebhooks(statuses=(503, 404, 500)), RETRY_RULES, RETRIES_SECONDS),
    ("a webhook answered late", AnswerWebhooks(statuses=(200,), delay_seconds=7.0), "SET-57", RETRY_SECONDS),
    ("a redirected webhook", AnswerWebhooks(statuses=(302,)), "SET-58", RETRY_SECONDS),
)


def patient_scenes() -> Iterator[ConversationScene]:
    """Yield how webhooks are retried."""
    for name, answers, rules, seconds in PATIENT_SCENES:
        new = create(transaction_with(TRANSFER), webhook_url=WEBHOOK)
        watch = Webhooks(rules=rules, seconds=seconds)
        yield ConversationScene(name, (answers, new, watch, AnswerWebhooks(statuses=(200,))))


def all_scenes() -> list[ConversationScene]:
    """Return all scenes of the conversation, those that take long last."""
    several = {"currency": "USD", "amount": -1, "return_url": "no address"}
    no_bank = call(
        POST, "IDR-01", sale({"payment_method": REDIRECT_NL}), name="a transaction without its bank"
    )
    methods = call("GET /v1/merchants/self/projects/self/currencies/", "SET-54")
    single: dict[str, Iterator[ConversationStep] | Steps] = {
        "credentials": credential_steps(),
        "paths and bodies": transport_steps(),
        "lists": [methods, ISSUERS],
        "banks": bank_steps(),
        "unknown keys": unknown_key_steps(),
        "lines and totals": line_steps(),
        "several problems": [call(POST, "SET-05", several), no_bank],
        "conditions": condition_steps(),
        "calls on an unknown order": unknown_order_steps(),
        "repeated requests": repeated_request_steps(),
        "a whole order": whole_order_steps(),
        "webhook addresses": WEBHOOK_ADDRESS_STEPS,
        "allow lists": allow_list_steps(),
        "QR requests": code_steps(),
        "expired orders": expired_steps(["", *(each for each in METHODS_BY_NAME if not is_invoiced(each))]),
    }
    generated = (
        field_scenes(),
        change_scenes(),
        page_scenes(),
        given_up_scenes(),
        state_scenes(),
        payment_scenes(),
        authorization_scenes(),
        stored_card_scenes(),
        patient_scenes(),
    )
    scenes = [ConversationScene(name, tuple(steps)) for name, steps in single.items()]
    return [*scenes, *chain.from_iterable(generated)]
