"""Probes of orders, requests and answers in general."""

from typing import Any, Final

from payment_sandbox.forms import load
from payment_sandbox.forms.orders import SENT_FIELDS, SentField, SentForm
from payment_sandbox.verification.answer import MISSING, ServiceAnswer
from payment_sandbox.verification.checks import (
    BARE,
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    LIST,
    MOMENT,
    OBJECT,
    ORDER_STATUSES,
    STATUSES,
    TEXT,
    Checks,
    absent,
    accepted,
    echoed,
    holds,
    kind,
    one_of,
    refused,
    same,
    shown,
)
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    CUSTOMER,
    LINES,
    LINES_TOTAL,
    NOBODY,
    RETURN_URL,
    WEBHOOK_URL,
    by,
    card,
    fresh_id,
)
from payment_sandbox.verification.service import ORDERS, Service, flags_of

LONG_TEXT: Final = "Wollsocken, größer als 42, für «Zoë» 🧦 " * 12
READ_BACK: Final = {  # what is answered as it was sent, and by which rule
    **{field.name: field.rule for field in SENT_FIELDS},
    "customer": "SET-25",
    "client": "ORD-18",
}
CHANGED: Final = {
    "description": "Changed",
    "merchant_order_id": "",  # another one each time
    "return_url": "https://shop.invalid/changed",
    "webhook_url": "https://shop.invalid/changed-too",
    "customer": {**CUSTOMER, "first_name": "Changed", "country": "BE"},
    "extra": {"basket": 9},
}
ATTEMPT: Final = "transactions[0]."
MERCHANT: Final = ("merchant_id", "project_id")


@probe("FLOW-01", "ORD-06", "ORD-07", "ORD-08", "ORD-11", "ORD-13", "ORD-15", "ORD-24", "STA-03", "SET-20")
def a_hosted_order(service: Service) -> Checks:
    """It takes all listed fields, echoes them and has an address for the customer."""
    sent = {
        "amount": 1295,
        "description": "A probe",
        "merchant_order_id": fresh_id(),
        "return_url": RETURN_URL,
        "webhook_url": WEBHOOK_URL,
        "expiration_period": "PT60M",
        "payment_methods": [CARD],
    }
    order = service.create(**sent, customer={"locale": "en-GB"})
    yield holds("FLOW-01", order.is_success, f"it is {order.summary}")
    if not order.is_success:
        return
    yield from echoed("FLOW-01", order, sent)
    for field in SENT_FIELDS:
        if field.name in sent and field.rule != "ORD-10":  # which is about webhooks
            yield same(field.rule, order, field.name, sent[field.name])
    yield same("SET-20", order, "expiration_period", "PT60M")
    yield same("ORD-13", order, "payment_methods", [CARD])
    yield same("ORD-15", order, "customer.locale", "en-GB")
    yield kind("ORD-24", order, "order_url", BARE)
    yield same("STA-03", order, "status", "new")
    yield kind("STA-03", order, "order_url", TEXT)


@probe("ORD-01", "ORD-18", "ORD-19", "ORD-20", "ORD-21", "ORD-22", "ORD-23", "STA-01", "SET-19", "SET-26")
def an_order(service: Service) -> Checks:
    """The fields of every order."""
    order = service.order(by(CARD), client={"user_agent": "probe/1"}, id="mine")
    yield kind("ORD-01", order, "id", TEXT)
    yield holds("ORD-01", order.at("id") != "mine", "the id is the one that was sent")
    yield same("ORD-18", order, "client.user_agent", "probe/1")
    for name in ("created", "modified"):
        yield kind("ORD-19", order, name, MOMENT)
        time = str(order.at(name))
        is_plain = len(time) == 32 and time.endswith("+00:00")
        yield holds("SET-19", is_plain, f"{name} is {time}, not with microseconds and +00:00")
    yield absent("ORD-20", order, "completed")
    yield kind("ORD-21", order, "last_transaction_added", MOMENT)
    for name in MERCHANT:
        yield kind("ORD-22", order, name, TEXT)
    yield kind("SET-19", order, "id", IDENTIFIER)
    yield one_of("ORD-23", order, "status", ORDER_STATUSES)
    yield one_of("STA-01", order, "status", ORDER_STATUSES)
    yield kind("SET-26", order, "flags", LIST)


@probe(*(f"TX-{number:02}" for number in range(1, 13)), *(f"TX-{number}" for number in range(14, 17)))
def a_transaction(service: Service) -> Checks:
    """The fields of every transaction."""
    order = service.order(by(CARD), description="A probe")
    yield kind("ORD-17", order, "transactions", LIST)
    yield kind("TX-01", order, f"{ATTEMPT}id", TEXT)
    yield same("TX-01", order, f"{ATTEMPT}order_id", order.at("id"))
    for name in MERCHANT:
        yield same("TX-01", order, f"{ATTEMPT}{name}", order.at(name))
    yield same("TX-02", order, f"{ATTEMPT}amount", 1000)
    yield same("TX-02", order, f"{ATTEMPT}currency", "EUR")
    yield same("TX-03", order, f"{ATTEMPT}description", "A probe")
    yield one_of("TX-04", order, f"{ATTEMPT}balance", ("internal", "test"))
    yield same("TX-05", order, f"{ATTEMPT}credit_debit", "credit")
    for name in ("created", "modified"):
        yield kind("TX-06", order, f"{ATTEMPT}{name}", MOMENT)
    yield absent("TX-07", order, f"{ATTEMPT}completed")
    yield kind("TX-08", order, f"{ATTEMPT}expiration_period", TEXT)
    yield same("TX-09", order, f"{ATTEMPT}payment_method", CARD)
    brand = order.at(f"{ATTEMPT}payment_method_brand")
    yield holds("TX-10", isinstance(brand, str) and brand == brand.lower(), f"the brand is {brand!r}")
    yield kind("TX-11", order, f"{ATTEMPT}payment_method_details", OBJECT)
    yield kind("TX-12", order, f"{ATTEMPT}payment_url", BARE)
    yield kind("TX-14", order, f"{ATTEMPT}product_type", TEXT)
    yield one_of("TX-15", order, f"{ATTEMPT}status", STATUSES)
    yield kind("TX-16", order, f"{ATTEMPT}events", LIST)


@probe("ORD-17", "EVT-01", "EVT-02", "EVT-03", "EVT-04", "TEV-01", "SET-27", "SET-29", "STA-18")
def events_and_extras(service: Service) -> Checks:
    """The events of a transaction, and what plugins of this family read besides."""
    order = service.order(by(CARD))
    yield kind("ORD-17", order, "transactions", LIST)
    event = f"{ATTEMPT}events[0]."
    yield one_of("EVT-01", order, f"{event}event", STATUSES)
    yield holds("EVT-02", order.at(f"{event}id") is not MISSING, "an event has no id")
    for name in ("noticed", "occurred"):
        yield kind("EVT-03", order, f"{event}{name}", MOMENT)
        yield kind("TEV-01", order, f"{event}{name}", MOMENT)
    yield kind("EVT-04", order, f"{event}source", TEXT)
    yield kind("SET-27", order, f"{ATTEMPT}is_capturable", BOOLEAN)
    yield kind("SET-27", order, f"{ATTEMPT}is_fully_captured", BOOLEAN)
    yield same("SET-29", order, f"{ATTEMPT}channel", "ecom")
    if LIST.fits(order.at("flags")):
        is_test = "is-test" in flags_of(order)
        yield same("SET-29", order, f"{ATTEMPT}balance", "test" if is_test else "internal")
    yield one_of("STA-18", order, f"{ATTEMPT}status", STATUSES)


@probe("CUS-13", "SET-25", "SET-15", "SET-16")
def a_customer(service: Service) -> Checks:
    """The customer is echoed in full; nulls are left out, and other keys are taken."""
    more = {"postal_code": "1000 AA", "housenumber": "1", "first_name": None}
    order = service.create(customer={**CUSTOMER, **more})
    yield holds("SET-15", order.is_success, f"a null in the customer is {order.summary}")
    yield holds("SET-16", order.is_success, f"a customer's postal_code is {order.summary}")
    if order.is_success:
        yield absent("SET-15", order, "customer.first_name")
    order = service.order(customer=CUSTOMER)
    names = (order.at("customer") or {}) if isinstance(order.at("customer"), dict) else {}
    yield holds("CUS-13", {"country", "ip_address"} <= set(names), f"the customer has {sorted(names)} only")
    left_out = sorted(set(CUSTOMER) - set(names))
    yield holds("SET-25", not left_out, f"the customer is answered without {', '.join(left_out)}")
    yield from (
        same("SET-25", order, f"customer.{name}", value) for name, value in CUSTOMER.items() if name in names
    )


def everything() -> dict[str, Any]:
    """What an order can be sent with."""
    return {
        "description": LONG_TEXT,
        "merchant_order_id": fresh_id(),
        "return_url": f"{RETURN_URL}&text={'x' * 400}",
        "webhook_url": f"{WEBHOOK_URL}?order=7",
        "expiration_period": "PT45M",
        "extra": {"basket": [1, 2.5, None, {"gift": True}], "note": LONG_TEXT},
        "client": {"user_agent": "probe/1"},
        "customer": CUSTOMER,
    }


@probe("ORD-06", "ORD-07", "ORD-08", "ORD-10", "ORD-11", "ORD-18", "SET-14", "SET-25", "SET-51")
def what_was_sent(service: Service) -> Checks:
    """It is what a later read says, field by field; after a change, the change."""
    sent = everything()
    order = service.order(**sent)
    read = service.read(order)
    for name, value in sent.items():
        for answer in (order, read):
            yield from _read_back(READ_BACK[name], answer, name, value)
    kept = [name for name in CHANGED if all(check.holds for check in _read_back("", read, name, sent[name]))]
    changes = {**CHANGED, "merchant_order_id": fresh_id()}
    if service.call("PUT", f"{ORDERS}{order.at('id')}/", changes).is_success:
        changed = service.read(order)
        for name in kept:
            yield from _read_back("SET-51", changed, name, changes[name])


def _read_back(rule: str, answer: ServiceAnswer, name: str, sent: Any) -> Checks:
    """A field is what was sent; of a customer, what is there (that all of it is there is told elsewhere)."""
    value = answer.at(name)
    if name in ("customer", "client") and isinstance(value, dict):
        differing = [f"{name}.{key}" for key in sent if key in value and value[key] != sent[key]]
        yield holds(rule, not differing, f"{answer.method}: {' and '.join(differing)} is another")
    else:
        how = f"{shown(value)}, not {shown(sent)}"
        if isinstance(value, str) and isinstance(sent, str) and sent.startswith(value):
            how = f"cut after {len(value)} of {len(sent)} characters"
        yield holds(rule, value == sent, f"{answer.method}: {name} is {how}")


@probe("ORD-07", "ORD-16", "TRQ-02")
def what_is_not_limited(service: Service) -> Checks:
    """Two orders may have one merchant_order_id, and an order many lines; names of methods are exact."""
    own_id = fresh_id()
    service.order(merchant_order_id=own_id)
    again = service.create(merchant_order_id=own_id)
    yield holds("ORD-07", again.is_success, f"a second order with a merchant_order_id is {again.summary}")
    lines = [{**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)]
    order = service.create(amount=1000, order_lines=lines)
    yield holds("ORD-16", order.is_success, f"an order with 100 lines is {order.summary}")
    yield from refused("TRQ-02", service.create(by(CARD.title())), 400, "ValidationError")


@probe("ORD-05", "TRQ-04", "LIM-02")
def amounts(service: Service) -> Checks:
    """An amount is answered as it was sent."""
    order = service.order(by(CARD), amount=1295)
    yield kind("ORD-05", order, "amount", INTEGER)
    yield same("ORD-05", order, "amount", 1295)
    yield same("LIM-02", order, "amount", 1295)
    yield kind("TRQ-04", order, f"{ATTEMPT}expiration_period", TEXT)


OVER_ONE_MIB: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'


@probe("AUTH-01", "AUTH-02", "SET-02")
def credentials(service: Service) -> Checks:
    """Without the key nothing is answered, and the password does not matter."""
    without = service.call("GET", ORDERS + NOBODY + "/", key="")
    yield from refused("AUTH-01", without, 401, "Unauthorized")
    yield holds("SET-02", "WWW-Authenticate" in without.headers, "a 401 has no WWW-Authenticate")
    yield kind("SET-02", without, "error", OBJECT)
    yield from refused("AUTH-02", service.call("GET", ORDERS + NOBODY + "/", key="no-such-key"), 401)


@probe("VER-01", "VER-02", "SET-01")
def paths(service: Service) -> Checks:
    """Paths begin with /v1/, and a final slash does not matter."""
    order = service.order()
    yield holds("VER-01", service.read(order).is_success, "an order cannot be read under /v1/")
    for path in ("/orders/", "/v2/orders/"):
        yield from refused("VER-02", service.call("POST", path, {"currency": "EUR", "amount": 1000}), 404)
    for path in (f"{ORDERS}{order.at('id')}/", f"{ORDERS}{order.at('id')}"):
        answer = service.call("GET", path)
        yield holds("SET-01", answer.status == 200, f"GET {path} is {answer.summary}")
    without = service.call("POST", "/v1/orders", {"currency": "EUR", "amount": 1000})
    yield holds("SET-01", without.is_success, f"POST /v1/orders is {without.summary}")


@probe("END-01", "END-02", "SET-07", "GEN-01")
def a_creation(service: Service) -> Checks:
    """Amount and currency are enough."""
    answer = service.create(description=...)
    yield from accepted("GEN-01", answer)
    yield holds("END-02", answer.status == 201, answer.summary)
    mimetype = answer.headers.get("Content-Type", "").partition(";")[0]
    yield holds("END-01", mimetype == "application/json", f"the answer is {mimetype or 'untyped'}")


@probe("SET-03", "SET-04", "SET-05")
def errors(service: Service) -> Checks:
    """One shape of errors, with all problems at once."""
    answer = service.create(currency="USD", amount=-1, return_url="no address")
    for place, expected in (("error", OBJECT), ("error.type", TEXT), ("error.value", TEXT)):
        yield kind("SET-03", answer, place, expected)
    yield same("SET-03", answer, "error.status", answer.status)
    yield same("SET-04", answer, "error.type", "ValidationError")
    violations = answer.at("error.violations")
    paths = [each.get("path") for each in violations] if isinstance(violations, list) else []
    missed = {"currency", "amount", "return_url"} - set(paths)
    yield holds("SET-05", not missed, f"the violations do not name {', '.join(sorted(missed))}")
    other = service.call("GET", "/v1/no-such-path/")
    yield kind("SET-03", other, "error.type", TEXT)


@probe("SET-08", "SET-09")
def statuses_of_refusals(service: Service) -> Checks:
    """Each kind of bad request has its status."""
    yield from refused("SET-08", service.call("GET", f"{ORDERS}{NOBODY}/"), 404, "NotFound")
    yield from refused("SET-08", service.call("PATCH", ORDERS, {}), 405, "MethodNotAllowed")
    yield from refused("SET-08", service.call("POST", ORDERS, content=b'{"currency": '), 400, "BadRequest")
    yield from refused("SET-08", service.call("POST", ORDERS, [1]), 400)
    large = service.call("POST", ORDERS, content=OVER_ONE_MIB)
    yield from refused("SET-09", large, 413, "RequestEntityTooLarge")
    text = service.call("POST", ORDERS, content=b"amount=1", headers={"Content-Type": "text/plain"})
    yield from refused("SET-09", text, 415, "UnsupportedMediaType")


@probe("SET-12", "SET-14")
def unknown_fields(service: Service) -> Checks:
    """Unknown keys are dropped and named; client and extra are free."""
    answer = service.create(amuont=5, client={"user_agent": "probe/1", "shop": 7}, extra={"basket": [1, 2]})
    yield holds("SET-12", answer.is_success, f"an unknown key is refused: {answer.summary}")
    if answer.is_success:
        named = answer.headers.get("Sandbox-Ignored-Fields", "")
        is_quiet = answer.at("amuont") is MISSING
        yield holds("SET-12", is_quiet, "an unknown key is echoed")
        yield holds("SET-12", not named or "amuont" in named, f"Sandbox-Ignored-Fields is {named!r}")
        yield same("SET-14", answer, "extra", {"basket": [1, 2]})
        yield same("SET-14", answer, "client.shop", 7)


BLOCKS = ("order_line_details", "amount_details")


@probe("END-03", "END-04", "END-05", "END-06", "ORD-28", "ORD-29")
def blocks(service: Service) -> Checks:
    """An order is read with the blocks that were asked for."""
    order = service.order(by(CARD), amount=LINES_TOTAL, order_lines=LINES)
    plain = service.read(order)
    yield same("END-03", plain, "id", order.at("id"))
    yield absent("ORD-28", plain, BLOCKS[0])
    yield absent("ORD-29", plain, BLOCKS[1])
    yield kind("END-04", service.read(order, BLOCKS[0]), BLOCKS[0], LIST)
    yield kind("END-05", service.read(order, BLOCKS[1]), BLOCKS[1], OBJECT)
    both = service.read(order, *BLOCKS)
    yield kind("END-06", both, BLOCKS[0], LIST)
    yield kind("END-06", both, BLOCKS[1], OBJECT)


@probe("SET-32", "SET-33", "SET-34")
def entity_tags(service: Service) -> Checks:
    """An order has an ETag, which guards changes and saves reads."""
    order = service.order()
    read = service.read(order)
    etag = read.headers.get("ETag", "")
    yield holds("SET-32", etag.startswith('"'), f"the ETag of an order is {etag or 'missing'}")
    place = f"{ORDERS}{order.at('id')}/"
    again = service.call("GET", place, headers={"If-None-Match": etag or '"x"'})
    yield holds("SET-34", again.status == 304, f"a read with If-None-Match is {again.summary}")
    stale = service.call("DELETE", place, headers={"If-Match": '"stale"'})
    yield from refused("SET-33", stale, 412, "PreconditionFailed")


@probe("SET-51", "SET-52", "SET-53")
def updates(service: Service) -> Checks:
    """PUT changes what the customer has not seen, and takes the whole order as it was read."""
    order = service.order()
    place = f"{ORDERS}{order.at('id')}/"
    changes = {
        "description": "Changed by a probe",
        "merchant_order_id": fresh_id(),
        "return_url": "https://shop.invalid/changed",
        "webhook_url": WEBHOOK_URL,
        "customer": CUSTOMER,
        "extra": {"basket": 8},
    }
    changed = service.call("PUT", place, changes)
    yield holds("SET-51", changed.status == 200, f"PUT is {changed.summary}")
    if changed.is_success:
        for name in changes.keys() - {"customer"}:
            yield same("SET-51", changed, name, changes[name])
    raised = service.call("PUT", place, {"amount": 1100})
    yield holds("SET-52", raised.at("amount") == 1100, f"a new amount is {raised.summary}")
    whole = dict(service.read(order).data or {}, description="Whole", status="completed", merchant_id="x")
    answer = service.call("PUT", place, whole)
    yield holds("SET-53", answer.status == 200, f"PUT of the whole order is {answer.summary}")
    if answer.is_success:
        yield same("SET-53", answer, "description", "Whole")
        yield same("SET-53", answer, "status", order.at("status"))


def _wrong(field: SentField) -> Any:
    """A value that the field does not take."""
    return next(value for value in ("no such value", 5) if load(SentForm(), {field.name: value})[1])


WRONG: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    *((field.rule, field.name, {field.name: _wrong(field)}) for field in SENT_FIELDS),
    ("ORD-02", "currency", {"currency": ...}),
    ("ORD-03", "currency", {"currency": "USD"}),
    ("LIM-01", "currency", {"currency": "GBP"}),
    ("ORD-04", "amount", {"amount": ...}),
    ("ORD-05", "amount", {"amount": "1295"}),
    ("LIM-02", "amount", {"amount": 12.95}),
    ("SET-11", "amount", {"amount": 0}),
    ("SET-11", "amount", {"amount": None}),
    ("SET-11", "amount", {"amount": True}),
    ("SET-21", "expiration_period", {"expiration_period": "PT0S"}),
    ("SET-21", "expiration_period", {"expiration_period": "-PT5M"}),
    ("ORD-13", "payment_methods", {"payment_methods": CARD}),
    (
        "TRQ-07",
        "transactions[0].payment_method_details",
        {"transactions": [card() | {"payment_method_details": 5}]},
    ),
    ("TRQ-01", "transactions[0].payment_method", {"transactions": [{}]}),
    ("TRQ-02", "transactions[0].payment_method", {"transactions": [by("cheque")]}),
    ("TRQ-03", "transactions[0].expiration_period", {"transactions": [by(CARD, expiration_period="soon")]}),
    ("TRQ-06", "transactions[0].capture_mode", {"transactions": [by(CARD, capture_mode="later")]}),
    ("SET-17", "transactions", {"transactions": [by(CARD), by(CARD)]}),
)
CUSTOMERS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("CUS-01", "first_name", 5),
    ("CUS-02", "gender", 5),
    ("CUS-03", "birthdate", "31-01-1990"),
    ("CUS-04", "email_address", 5),
    ("CUS-05", "phone_numbers", "+31000000000"),
    ("CUS-06", "address", 5),
    ("CUS-07", "address_type", 5),
    ("CUS-08", "additional_addresses", "Teststraat 2"),
    ("CUS-09", "country", "Netherlands"),
    ("CUS-10", "ip_address", 5),
    ("CUS-11", "locale", "xx"),
)
OF_LINES: Final[tuple[tuple[str, str, Any], ...]] = (
    ("LINE-01", "type", "service"),
    ("LINE-02", "amount", 2.5),
    ("LINE-03", "currency", "USD"),
    ("LINE-04", "merchant_order_line_id", 5),
    ("LINE-05", "name", 5),
    ("LINE-06", "quantity", 1.5),
    ("LINE-07", "vat_percentage", "21%"),
    ("SET-30", "vat_percentage", 10_001),
)


@probe(*(rule for rule, _, _ in WRONG))
def wrong_fields(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, place, fields in WRONG:
        yield from refused(rule, service.create(**fields), 400, "ValidationError", place)


@probe(*(rule for rule, _, _ in CUSTOMERS))
def wrong_customers(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, name, value in CUSTOMERS:
        answer = service.create(customer={**CUSTOMER, name: value})
        yield from refused(rule, answer, 400, "ValidationError", f"customer.{name}")


@probe(*(rule for rule, _, _ in OF_LINES))
def wrong_lines(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, name, value in OF_LINES:
        lines = [{**LINES[0], name: value}, LINES[1]]
        answer = service.create(amount=LINES_TOTAL, order_lines=lines)
        yield from refused(rule, answer, 400, "ValidationError", f"order_lines[0].{name}")
