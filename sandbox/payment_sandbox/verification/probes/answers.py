"""The fields of an order and a transaction as they are answered."""

from typing import Final

from payment_sandbox.verification.answer import MISSING
from payment_sandbox.verification.checks import (
    BARE,
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    LIST,
    MOMENT,
    OBJECT,
    TEXT,
    Checks,
    absent,
    echoed,
    holds,
    kind,
    one_of,
    same,
)
from payment_sandbox.verification.passive import ORDER_STATUSES, STATUSES
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import CARD, CUSTOMER, RETURN_URL, WEBHOOK_URL, by
from payment_sandbox.verification.service import Service

ATTEMPT: Final = "transactions[0]."
MERCHANT: Final = ("merchant_id", "project_id")


@probe("FLOW-01", "ORD-06", "ORD-07", "ORD-08", "ORD-11", "ORD-13", "ORD-15", "ORD-24", "STA-03", "SET-20")
def a_hosted_order(service: Service) -> Checks:
    """It takes all listed fields, echoes them and has an address for the customer."""
    sent = {
        "amount": 1295,
        "description": "A probe",
        "merchant_order_id": "probe-1",
        "return_url": RETURN_URL,
        "webhook_url": WEBHOOK_URL,
        "expiration_period": "PT60M",
        "payment_methods": [CARD],
    }
    order = service.create(**sent, customer={"locale": "en-GB"})
    yield holds("FLOW-01", order.is_success, f"it is {order.told}")
    if not order.is_success:
        return
    yield from echoed("FLOW-01", order, sent)
    for rule, name in (("ORD-06", "description"), ("ORD-07", "merchant_order_id"), ("ORD-08", "return_url")):
        yield same(rule, order, name, sent[name])
    yield same("ORD-11", order, "expiration_period", "PT60M")
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
    is_test = "is-test" in (order.at("flags") or ())
    yield same("SET-29", order, f"{ATTEMPT}balance", "test" if is_test else "internal")
    yield one_of("STA-18", order, f"{ATTEMPT}status", STATUSES)


@probe("CUS-13", "SET-25", "SET-15", "SET-16")
def a_customer(service: Service) -> Checks:
    """The customer is echoed in full; nulls are left out, and other keys are taken."""
    more = {"postal_code": "1000 AA", "housenumber": "1", "first_name": None}
    order = service.create(customer={**CUSTOMER, **more})
    yield holds("SET-15", order.is_success, f"a null in the customer is {order.told}")
    yield holds("SET-16", order.is_success, f"a customer's postal_code is {order.told}")
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


@probe("ORD-05", "TRQ-04", "LIM-02")
def amounts(service: Service) -> Checks:
    """An amount is answered as it was sent."""
    order = service.order(by(CARD), amount=1295)
    yield kind("ORD-05", order, "amount", INTEGER)
    yield same("ORD-05", order, "amount", 1295)
    yield same("LIM-02", order, "amount", 1295)
    yield kind("TRQ-04", order, f"{ATTEMPT}expiration_period", TEXT)
