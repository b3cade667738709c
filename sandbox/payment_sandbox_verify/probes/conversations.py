"""The conversations: probes that need more than one answer to tell whether a rule holds."""

from datetime import datetime, timedelta
from typing import Any, Final

from payment_sandbox.forms.orders import SENT_FIELDS
from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.checks import (
    LIST,
    OBJECT,
    TEXT,
    CannotTell,
    Checks,
    accepted,
    holds,
    kind,
    one_of,
    refused,
    same,
    shown,
)
from payment_sandbox_verify.probes.authorizations import cents
from payment_sandbox_verify.probes.codes import SHOWN, codes
from payment_sandbox_verify.probing import probe
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    NOBODY,
    REDIRECT_BE,
    REDIRECT_DE,
    REDIRECT_NL,
    RETURN_URL,
    TRANSFER,
    WALLET_APPLE,
    WALLET_QR,
    WALLET_WEB,
    WEBHOOK_URL,
    by,
    fresh_id,
)
from payment_sandbox_verify.service import ORDERS, Service, flags_of
from payment_sandbox_verify.table import AMOUNTS, NO_ORDER

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
    changed = service.call("PUT", place, {"description": "Changed by a probe"})
    if changed.is_success and etag:
        is_new = service.read(order).headers.get("ETag") != etag
        yield holds("SET-32", is_new, "the ETag of an order stays when the order changes")
    stale = service.call("DELETE", place, headers={"If-Match": '"stale"'})
    yield from refused("SET-33", stale, 412, "PreconditionFailed")


PAGE: Final = range(200, 400)
VISITED: Final = (
    ("STA-04", CARD),
    ("STA-06", WALLET_QR),
    ("STA-07", WALLET_WEB),
    ("SET-36", REDIRECT_DE),
)
LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")


def _known(buttons: Any) -> set[str]:
    return {name for name in buttons if name in (CARD, REDIRECT_NL, REDIRECT_DE, WALLET_QR, WALLET_WEB)}


def _visited(service: Service, rule: str, transaction: Any) -> Checks:
    order = service.order(transaction)
    page = service.visit(order)
    yield holds("GEN-06", page.status in PAGE, f"payment_url answers {page.status}")
    yield same(rule, service.read(order), "status", "processing")


@probe("STA-05")
def a_visit_with_a_bank(service: Service) -> Checks:
    """A visit of the payment page makes an order processing."""
    details = {"payment_method_details": {"issuer_id": service.issuer}}
    yield from _visited(service, "STA-05", by(REDIRECT_NL, **details))


def _visits(rule: str, method: str) -> None:
    """The same with another method; a probe of its own, because it may not be enabled."""

    @probe("GEN-06", rule)
    def a_visit(service: Service) -> Checks:
        """A visit of the payment page makes an order processing."""
        yield from _visited(service, rule, by(method))


for _rule, _method in VISITED:
    _visits(_rule, _method)


@probe("CUS-12")
def languages(service: Service) -> Checks:
    """The customer's locale is that of the page."""
    for locale in LOCALES:
        language = service.visit(service.order(customer={"locale": locale})).language
        yield holds(
            "CUS-12", language[:2] == locale[:2], f"with {locale} the page is in {language or 'none'}"
        )


@probe("GEN-03", "GEN-04", "ORD-13", "ORD-14")
def choices(service: Service) -> Checks:
    """The hosted page offers the enabled methods, or those of the allow list."""
    offered = _known(service.visit(service.order()).buttons)
    if not offered:
        raise CannotTell("a program cannot see which methods the hosted page offers")
    for rule in ("GEN-03", "ORD-14"):
        yield holds(rule, len(offered) > 1, f"the page offers {sorted(offered)} only")
    narrowed = _known(service.visit(service.order(payment_methods=[CARD])).buttons)
    for rule in ("GEN-04", "ORD-13"):
        yield holds(rule, narrowed <= {CARD}, f"with an allow list the page offers {sorted(narrowed)}")


@probe("FLOW-02", "ORD-09", spends=True)
def a_hosted_payment(service: Service) -> Checks:
    """From the hosted page the customer comes back to the shop."""
    order, went = service.paid(return_url=RETURN_URL, payment_methods=[CARD])
    if went is None:
        raise CannotTell("nobody saw where the customer went")
    yield same("FLOW-02", order, "status", "completed")
    for rule in ("FLOW-02", "ORD-09"):
        yield holds(rule, went.startswith(RETURN_URL.partition("?")[0]), f"the customer returned to {went}")


@probe("FLOW-15", "FLOW-16")
def cancellations(service: Service) -> Checks:
    """A customer who gives up comes back with the order's id, too."""
    order = service.order(by(CARD), return_url=RETURN_URL)
    went = service.payer.cancel(service.page_of(order), "10.00 EUR with a card")
    if went is None:
        raise CannotTell("nobody saw where the customer went")
    yield holds("FLOW-15", f"order_id={order.at('id')}" in went, f"the customer went to {went}")
    yield holds("FLOW-15", f"project_id={order.at('project_id')}" in went, f"the customer went to {went}")
    order = service.order(by(CARD))
    went = service.payer.cancel(service.page_of(order), "10.00 EUR with a card")
    yield holds("FLOW-16", went is None, f"without return_url the customer went to {went}")


YEAR: Final = timedelta(days=365)


def _code(service: Service) -> ServiceAnswer:
    answer = codes()(service, NO_ORDER)
    if not answer.is_success:
        raise CannotTell(f"a QR request is {answer.summary}: {answer.at('error.value')}")
    return answer


@probe("QR-15", "LIM-04")
def a_year(service: Service) -> Checks:
    """A request that names no expiration expires in a year."""
    shown = str(_code(service).at("expiration"))
    if not SHOWN.fullmatch(shown):
        raise CannotTell(f"the expiration is {shown}, not as YYYY-MM-DD HH:MM")
    made = service.order().at("created")
    ahead = datetime.fromisoformat(f"{shown}+00:00") - datetime.fromisoformat(str(made))
    for rule in ("QR-15", "LIM-04"):
        is_year = abs(ahead - YEAR) < timedelta(days=2)
        yield holds(rule, is_year, f"the expiration is {ahead.days} days ahead")


@probe("QR-26")
def the_image(service: Service) -> Checks:
    """Its address answers."""
    address = _code(service).at("qr_url")
    if not isinstance(address, str):
        raise CannotTell("the request has no qr_url")
    page = service.payer.visit(service.absolute(address))
    yield holds("QR-26", page.status == 200, f"the image's address answers {page.status}")


@probe("FLOW-14", spends=True)
def a_return(service: Service) -> Checks:
    """A customer who has paid comes back with the order's id."""
    order, went = service.paid(by(CARD), return_url=RETURN_URL)
    for name, value in (("order_id", order.at("id")), ("project_id", order.at("project_id"))):
        if went is not None:
            yield holds("FLOW-14", f"{name}={value}" in went, f"the customer returned to {went}")


@probe("HOOK-01", "HOOK-04", "HOOK-05", "HOOK-06", "HOOK-07", "HOOK-08", "SET-55", "AUTH-03", spends=True)
def of_a_transfer(service: Service) -> Checks:
    """A transfer is processing from the beginning, which its webhook tells."""
    order = service.order(by(TRANSFER), webhook_url=service.webhook_url)
    webhook = service.webhook_of(order)
    for rule in ("SET-55", "HOOK-04"):
        yield holds(rule, webhook is not None, f"no webhook came to {service.webhook_url}")
    if webhook is None:
        return
    mimetype = webhook.headers.get("Content-Type", "").partition(";")[0]
    yield holds("HOOK-01", mimetype == "application/json", f"the webhook is {mimetype or 'untyped'}")
    body = webhook.body if isinstance(webhook.body, dict) else {}
    for rule, name, value in (
        ("HOOK-05", "event", "status_changed"),
        ("HOOK-06", "order_id", order.at("id")),
        ("HOOK-07", "project_id", order.at("project_id")),
    ):
        yield holds(rule, body.get(name) == value, f"{name} in the webhook is {body.get(name)!r}")
    yield holds("HOOK-08", "status" not in body, "the webhook carries a status")
    yield holds("AUTH-03", "Authorization" not in webhook.headers, "the webhook has an Authorization header")


QUIET_SECONDS: Final = 0.5


@probe("HOOK-02", "SET-55")
def of_changes(service: Service) -> Checks:
    """Each change of the status is told once, and a creation that leaves an order new is none."""
    order = service.order(by(CARD), webhook_url=service.webhook_url)
    early = service.webhook_of(order, within_seconds=QUIET_SECONDS)
    yield holds("SET-55", order.at("status") != "new" or early is None, "a webhook came for a new order")
    service.visit(order)
    visited = service.read(order)
    if visited.at("status") == order.at("status") or early is not None:
        raise CannotTell("the visit of a payment page changes no status, or other webhooks hide its own")
    webhook = service.webhook_of(order)
    yield holds("HOOK-02", webhook is not None, "the status changed, and no webhook came")
    twice = service.webhook_of(order, nth=2, within_seconds=QUIET_SECONDS)
    yield holds("HOOK-02", twice is None, "the status changed once, and two webhooks came")
    cancelled = service.call("DELETE", f"{ORDERS}{order.at('id')}/")
    if webhook is not None and twice is None and cancelled.is_success:
        again = service.webhook_of(order, nth=2)
        yield holds("HOOK-02", again is not None, "the status changed again, and no webhook came again")


DETAILS: Final = "transactions[0].payment_method_details"


@probe("BRD-01", "WQR-02", "WWEB-01", "BRB-01", "WAPP-01", "WAPP-02", "SET-61")
def test_mode(service: Service) -> Checks:
    """Which methods test mode takes."""
    for rule, method in (("BRD-01", REDIRECT_DE), ("WQR-02", WALLET_QR), ("WWEB-01", WALLET_WEB)):
        yield from accepted(rule, service.create(by(method)))
    answers = [service.create(by(method)) for method in (REDIRECT_BE, WALLET_APPLE)]
    if "is-test" not in flags_of(service.order()):
        raise CannotTell("this is not test mode")
    for rules, answer in zip((("BRB-01", "SET-61"), ("WAPP-01", "SET-61")), answers, strict=True):
        for rule in rules:
            yield from refused(rule, answer, 400, "ValidationError", METHOD)
    unknown = str(service.create(by("wallet-cheque")).at("error.value")).replace("cheque", "apple")
    is_known = answers[1].is_success or answers[1].at("error.value") != unknown
    yield holds("WAPP-02", is_known, f"it is refused like an unknown method: {unknown}")


SHORT: Final = "PT3S"
SHORT_SECONDS: Final = 3.0
METHOD: Final = "transactions[0].payment_method"
MARGIN_SECONDS: Final = 1.5
ENDED: Final = ("CAP-03", "CAP-04", "ERR-03", "TRQ-05", "SET-41", "SET-42", "ORD-12")
CAPTURED: Final = ("CAP-05", "CAP-07", "SET-44")


def _authorized(service: Service) -> tuple[ServiceAnswer, ServiceAnswer]:
    """Two invoices that expire soon; of the second a part is captured."""
    first = service.with_lines(INVOICE, expiration_period=SHORT)
    second = service.with_lines(INVOICE, expiration_period=SHORT)
    if first.at("status") not in ("accepted", "completed"):
        raise CannotTell(f"the screening of the test customer says {first.at('status')}")
    service.take(second, "captures/amount/", cents(250))
    return first, second


def _delayed(service: Service) -> ServiceAnswer | str:
    """An authorization that is captured by itself soon, less a part; or why there is none."""
    try:
        order, _ = service.paid(by(CARD, capture_mode="delayed", expiration_period=SHORT))
    except CannotTell as why:
        return str(why)
    voided = service.take(order, "voids/amount/", cents(250))
    return order if voided.is_success else f"a void of a delayed authorization is {voided.summary}"


@probe(*ENDED, *CAPTURED, spends=True)
def endings(service: Service) -> Checks:
    """An authorization ends, and so does a hosted page; a delayed capture happens."""
    hosted = service.order(expiration_period=SHORT)
    delayed = _delayed(service)
    unused, used = _authorized(service)
    service.pause(SHORT_SECONDS + MARGIN_SECONDS)
    yield same("ORD-12", service.read(hosted), "status", "expired")
    yield one_of("CAP-03", service.read(unused), "status", ("expired", "cancelled"))
    yield same("SET-41", service.read(unused), "status", "expired")
    yield same("SET-42", service.read(used), "status", "completed")
    for rule in ("CAP-04", "ERR-03", "TRQ-05", "SET-42"):
        order = used if rule == "SET-42" else unused
        yield from refused(rule, service.take(order, "captures/", {}), 409, "AuthorizationExpired")
    if isinstance(delayed, str):
        raise CannotTell(delayed)
    read = service.read(delayed, AMOUNTS)
    for rule in CAPTURED:
        yield same(rule, read, f"{AMOUNTS}.captured", 750)
    yield same("CAP-07", read, f"{AMOUNTS}.voided", 250)
