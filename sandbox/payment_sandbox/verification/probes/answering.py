"""Probes of orders, requests and answers in general."""

from typing import Any, Final

from payment_sandbox.forms.orders import SENT_FIELDS
from payment_sandbox.verification.answer import MISSING, ServiceAnswer
from payment_sandbox.verification.checks import (
    LIST,
    OBJECT,
    TEXT,
    Checks,
    holds,
    kind,
    refused,
    same,
    shown,
)
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    CUSTOMER,
    NOBODY,
    RETURN_URL,
    WEBHOOK_URL,
    by,
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


@probe("SET-29")
def the_balance(service: Service) -> Checks:
    """It is that of the mode."""
    order = service.order(by(CARD))
    if LIST.fits(order.at("flags")):
        is_test = "is-test" in flags_of(order)
        yield same("SET-29", order, f"{ATTEMPT}balance", "test" if is_test else "internal")


@probe("CUS-13", "SET-25")
def a_customer(service: Service) -> Checks:
    """The customer is echoed in full."""
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


@probe("AUTH-01", "SET-02")
def credentials(service: Service) -> Checks:
    """Without the key nothing is answered, and the password does not matter."""
    without = service.call("GET", ORDERS + NOBODY + "/", key="")
    yield from refused("AUTH-01", without, 401, "Unauthorized")
    yield holds("SET-02", "WWW-Authenticate" in without.headers, "a 401 has no WWW-Authenticate")
    yield kind("SET-02", without, "error", OBJECT)


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
