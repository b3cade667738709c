"""The table of orders, their fields, and requests that are taken or refused."""

from collections.abc import Sequence
from typing import Final

from payment_sandbox.forms import load
from payment_sandbox.forms.orders import SENT_FIELDS, SentField, SentForm
from payment_sandbox.orders.lines import LINE_TYPES
from payment_sandbox.orders.order import LOCALES
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, value_at
from payment_sandbox_verify.checks import (
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
    CannotTell,
    ValueKind,
    shown,
)
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    LINES,
    LINES_TOTAL,
    NOBODY,
    RETURN_URL,
    TRANSFER,
    WEBHOOK_URL,
    by,
    fresh_id,
)
from payment_sandbox_verify.service import ORDERS, Service
from payment_sandbox_verify.table import (
    ABSENT,
    AMOUNTS,
    DETAILS,
    KEPT,
    SENT,
    AnyOf,
    At,
    Fields,
    TableRow,
    TableSection,
    asks,
    created,
    creates,
    is_answered,
    is_refused,
    orders,
    reads,
    succeeds,
    wrong_at,
)

PLAIN_TIME: Final = ValueKind(
    "with microseconds and +00:00", lambda value: len(str(value)) == 32 and str(value).endswith("+00:00")
)
LOWERCASE: Final = ValueKind(
    "in lowercase", lambda value: isinstance(value, str) and value == value.lower() != ""
)
IS_THERE: Final = ValueKind("there", lambda value: value is not MISSING)
HOSTED: Final = {
    "amount": 1295,
    "description": "A probe",
    "merchant_order_id": fresh_id,
    "return_url": RETURN_URL,
    "webhook_url": WEBHOOK_URL,
    "expiration_period": "PT60M",
    "payment_methods": [CARD],
}
CHANGES: Final = {
    "description": "Changed by a probe",
    "merchant_order_id": fresh_id,
    "return_url": "https://shop.invalid/changed",
    "webhook_url": WEBHOOK_URL,
    "extra": {"basket": 8},
}
MORE_AND_NULL: Final = {**CUSTOMER, "postal_code": "1000 AA", "housenumber": "1", "first_name": None}
MANY: Final = [
    {**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)
]
OVER_ONE_MIB: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'
CANCELLED: Final = {"SET-50 status": "cancelled"}
TOO_LARGE: Final = is_refused(413, "RequestEntityTooLarge")
LEAST: Final = {"currency": "EUR", "amount": 1000}


def _wrong(field: SentField) -> object:
    """A value that the field does not take."""
    return next(value for value in ("no such value", 5) if load(SentForm(), {field.name: value})[1])


def _told(place: str, sent: Fields) -> str:
    return f"{place} {shown(value_at(sent, place))}"


def visited(service: Service) -> ServiceAnswer:
    """An order whose customer has opened the page.

    Raises:
        CannotTell: that changes nothing.
    """
    order = service.order(by(CARD))
    service.visit(order)
    read = service.read(order)
    if read.at("status") == order.at("status"):
        raise CannotTell("the visit of a payment page changes no status")
    return read


def puts_whole(service: Service, order: ServiceAnswer) -> ServiceAnswer:
    """Send the order as it was read, with another description and some fields that nobody may change."""
    changes = {"description": "Whole", "status": "completed", "merchant_id": "x"}
    return service.call("PUT", f"{ORDERS}{order.at('id')}/", {**service.read(order).data, **changes})


WRONG: Final[Sequence[tuple[str, str, Fields]]] = (
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
        {"transactions": [by(CARD, payment_method_details=5)]},
    ),
    ("TRQ-01", "transactions[0].payment_method", {"transactions": [{}]}),
    ("TRQ-02", "transactions[0].payment_method", {"transactions": [by("cheque")]}),
    ("TRQ-03", "transactions[0].expiration_period", {"transactions": [by(CARD, expiration_period="soon")]}),
    ("TRQ-06", "transactions[0].capture_mode", {"transactions": [by(CARD, capture_mode="later")]}),
    ("SET-17", "transactions", {"transactions": [by(CARD), by(CARD)]}),
    *(
        (rule, f"customer.{name}", {"customer": {**CUSTOMER, name: value}})
        for rule, name, value in (
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
    ),
    *(
        (rule, f"order_lines[0].{name}", {"order_lines": [{**LINES[0], name: value}, LINES[1]]})
        for rule, name, value in (
            ("LINE-01", "type", "service"),
            ("LINE-02", "amount", 2.5),
            ("LINE-03", "currency", "USD"),
            ("LINE-04", "merchant_order_line_id", 5),
            ("LINE-05", "name", 5),
            ("LINE-06", "quantity", 1.5),
            ("LINE-07", "vat_percentage", "21%"),
            ("SET-30", "vat_percentage", 10_001),
            ("SET-30", "vat_percentage", -1),
        )
    ),
)
TAKEN: Final[Sequence[tuple[str, str, Fields]]] = (
    ("SET-11", "amount", {"amount": 1}),
    *(
        ("LINE-01", "order_lines[0].type", {"order_lines": [{**LINES[0], "type": each}]})
        for each in LINE_TYPES
    ),
    *(
        ("SET-30", "order_lines[0].vat_percentage", {"order_lines": [{**LINES[0], "vat_percentage": each}]})
        for each in (0, 10_000)
    ),
)
CUSTOMERS: Final = (  # whose fields need not be answered
    *(("CUS-11", {"locale": locale}) for locale in LOCALES),
    *(("CUS-02", {"gender": each}) for each in ("male", "female")),
    *(("CUS-07", {"address_type": each}) for each in ("customer", "billing")),
)

TABLE: Final = (
    TableSection(
        "a hosted order",
        None,
        rows=[
            TableRow(
                "FLOW-01",
                creates(**HOSTED, customer={"locale": "en-GB"}),
                succeeds,
                {
                    **{f"FLOW-01 {name}": SENT for name in HOSTED},
                    **{  # ORD-10 is about webhooks
                        f"{field.rule} {field.name}": SENT
                        for field in SENT_FIELDS
                        if field.name in HOSTED and field.rule != "ORD-10"
                    },
                    "SET-20 expiration_period": "PT60M",
                    "ORD-13 payment_methods": SENT,
                    "ORD-15 customer.locale": SENT,
                    "ORD-24 order_url": BARE,
                    "STA-03 status": "new",
                    "STA-03 order_url": TEXT,
                },
            )
        ],
    ),
    TableSection(
        "an order",
        orders(by(CARD), client={"user_agent": "probe/1"}, id="mine"),
        {
            "ORD-01 id": TEXT,
            "ORD-01 SET-19 id": IDENTIFIER,
            "ORD-18 client.user_agent": "probe/1",
            "ORD-19 created modified": MOMENT,
            "SET-19 created modified": PLAIN_TIME,
            "ORD-20 completed": ABSENT,
            "ORD-21 last_transaction_added": MOMENT,
            "ORD-22 merchant_id project_id": TEXT,
            "ORD-23 STA-01 status": AnyOf(ORDER_STATUSES),
            "SET-26 flags": LIST,
        },
    ),
    TableSection(
        "a transaction",
        orders(by(CARD), description="A probe"),
        {
            "ORD-17 transactions": LIST,
            "TX-01 transactions[0].id": TEXT,
            "TX-01 transactions[0].order_id": At("id"),
            "TX-01 transactions[0].merchant_id": At("merchant_id"),
            "TX-01 transactions[0].project_id": At("project_id"),
            "TX-02 transactions[0].amount": 1000,
            "TX-02 transactions[0].currency": "EUR",
            "TX-03 transactions[0].description": "A probe",
            "TX-04 transactions[0].balance": AnyOf(("internal", "test")),
            "TX-05 transactions[0].credit_debit": "credit",
            "TX-06 transactions[0].created transactions[0].modified": MOMENT,
            "TX-07 transactions[0].completed": ABSENT,
            "TX-08 transactions[0].expiration_period": TEXT,
            "TX-09 transactions[0].payment_method": CARD,
            "TX-10 transactions[0].payment_method_brand": LOWERCASE,
            "TX-11 transactions[0].payment_method_details": OBJECT,
            "TX-12 transactions[0].payment_url": BARE,
            "TX-14 transactions[0].product_type": TEXT,
            "STA-18 TX-15 transactions[0].status": AnyOf(STATUSES),
            "TX-16 transactions[0].events": LIST,
            "EVT-01 transactions[0].events[0].event": AnyOf(STATUSES),
            "EVT-02 transactions[0].events[0].id": IS_THERE,
            "EVT-03 TEV-01 transactions[0].events[0].noticed transactions[0].events[0].occurred": MOMENT,
            "EVT-04 transactions[0].events[0].source": TEXT,
            "SET-27 transactions[0].is_capturable transactions[0].is_fully_captured": BOOLEAN,
            "SET-29 transactions[0].channel": "ecom",
        },
    ),
    TableSection(
        "amounts",
        orders(by(CARD), amount=1295),
        {
            "ORD-05 amount": INTEGER,
            "LIM-02 ORD-05 amount": 1295,
            "TRQ-04 transactions[0].expiration_period": TEXT,
        },
    ),
    TableSection(
        "a customer",
        None,
        rows=[
            TableRow(
                "SET-15 SET-16",
                creates(customer=MORE_AND_NULL),
                succeeds,
                {"SET-15 customer.first_name": ABSENT},
            )
        ],
    ),
    TableSection(
        "what is not limited",
        orders(merchant_order_id=fresh_id),
        rows=[
            TableRow(
                "ORD-07",
                lambda service, order: service.create(merchant_order_id=order.sent["merchant_order_id"]),
                succeeds,
            ),
            TableRow("ORD-16", creates(order_lines=MANY), succeeds),
            TableRow("TRQ-02", creates(by(CARD.title())), wrong_at()),
            TableRow("SET-31", creates(amount=1001, order_lines=LINES), succeeds),
        ],
    ),
    TableSection(
        "paths",
        orders(),
        rows=[
            TableRow("VER-01", reads(), succeeds),
            TableRow("VER-02", asks("POST", "/orders/", LEAST), is_refused(404)),
            TableRow("VER-02", asks("POST", "/v2/orders/", LEAST), is_refused(404)),
            TableRow("SET-01", asks("GET"), is_answered(200)),
            TableRow("SET-01", asks("GET", ORDERS + "{id}"), is_answered(200)),
            TableRow("SET-01", asks("POST", "/v1/orders", LEAST), succeeds),
        ],
    ),
    TableSection(
        "a creation",
        None,
        rows=[
            TableRow("GEN-01", creates(description=...), created),
            TableRow("END-02", creates(), is_answered(201)),
        ],
    ),
    TableSection(
        "statuses of refusals",
        None,
        rows=[
            TableRow("SET-08", asks("GET", f"{ORDERS}{NOBODY}/"), is_refused(404, "NotFound")),
            TableRow("SET-08", asks("PATCH", ORDERS, {}), is_refused(405, "MethodNotAllowed")),
            TableRow("SET-08", asks("POST", ORDERS, content=b'{"currency": '), is_refused(400, "BadRequest")),
            TableRow("SET-08", asks("POST", ORDERS, [1]), is_refused(400)),
            TableRow("SET-09", asks("POST", ORDERS, content=OVER_ONE_MIB), TOO_LARGE),
            TableRow(
                "SET-09",
                asks("POST", ORDERS, content=b"amount=1", headers={"Content-Type": "text/plain"}),
                is_refused(415, "UnsupportedMediaType"),
            ),
            TableRow("AUTH-02", asks("GET", f"{ORDERS}{NOBODY}/", key="no-such-key"), is_refused(401)),
        ],
    ),
    TableSection(
        "blocks",
        orders(by(CARD), amount=LINES_TOTAL, order_lines=LINES),
        rows=[
            TableRow(
                "END-03",
                reads(),
                succeeds,
                {
                    "END-03 id": KEPT,
                    f"ORD-28 {DETAILS}": ABSENT,
                    f"ORD-29 {AMOUNTS}": ABSENT,
                    **{f"END-03 {name}": KEPT for name in ("order_lines", "client", "created", "order_url")},
                },
            ),
            TableRow("END-04", reads(DETAILS), succeeds, {f"END-04 {DETAILS}": LIST}),
            TableRow("END-05", reads(AMOUNTS), succeeds, {f"END-05 {AMOUNTS}": OBJECT}),
            TableRow(
                "END-06",
                reads(DETAILS, AMOUNTS),
                succeeds,
                {f"END-06 {DETAILS}": LIST, f"END-06 {AMOUNTS}": OBJECT},
            ),
        ],
    ),
    TableSection(
        "updates",
        orders(),
        rows=[
            TableRow(
                "SET-51",
                asks("PUT", body={**CHANGES, "customer": CUSTOMER}),
                is_answered(200),
                {f"SET-51 {name}": SENT for name in CHANGES},
            ),
            TableRow("SET-52", asks("PUT", body={"amount": 1100}), succeeds, {"SET-52 amount": 1100}),
            TableRow(
                "SET-53",
                lambda service, order: service.call(
                    "PUT",
                    f"{ORDERS}{order.at('id')}/",
                    {
                        **service.read(order).data,
                        "description": "Whole",
                        "status": "completed",
                        "merchant_id": "x",
                    },
                ),
                is_answered(200),
                {"SET-53 description": "Whole", "SET-53 status": KEPT},
            ),
        ],
    ),
    TableSection(
        "wrong fields",
        None,
        rows=[TableRow(rules, creates(**fields), wrong_at(place)) for rules, place, fields in WRONG],
    ),
    TableSection(
        "values that are taken",
        None,
        rows=[
            *(
                TableRow(
                    rules,
                    creates(**sent),
                    succeeds,
                    {f"{rules} {place}": SENT},
                    f"{place} of {shown(value_at(sent, place))}",
                )
                for rules, place, sent in TAKEN
            ),
            *(
                TableRow(rules, creates(customer=sent), succeeds, words=f"a customer with {sent}")
                for rules, sent in CUSTOMERS
            ),
        ],
    ),
    TableSection(
        "an order that its customer sees",
        visited,
        rows=[
            TableRow("SET-52", asks("PUT", body={"amount": 900}), is_refused(409, "OrderNotUpdatable")),
            TableRow("SET-50", asks("DELETE"), succeeds, CANCELLED, "a cancellation of a processing order"),
        ],
    ),
    TableSection(
        "a transfer that is pending",
        orders(by(TRANSFER)),
        rows=[TableRow("SET-50", asks("DELETE"), succeeds, CANCELLED, "a cancellation of a transfer")],
    ),
)
