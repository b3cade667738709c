"""Probes of behaviour that fields and tours do not cover, such as credentials and QR requests."""

from datetime import datetime, timedelta
from typing import Final

from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.checks import CannotTell, Checks, holds, refused, same, shown
from payment_sandbox_verify.model.records import METHODS
from payment_sandbox_verify.probing import probe
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    NOBODY,
    PAY_LATER,
    REDIRECT_BE,
    REDIRECT_DE,
    REDIRECT_NL,
    WALLET_APPLE,
    WALLET_QR,
    WALLET_WEB,
    WEBHOOK_URL,
    fresh_id,
    transaction_by,
)
from payment_sandbox_verify.service import CODES, IGNORED, MARK, ORDERS, Service, flags_of
from payment_sandbox_verify.shapes import AMOUNTS, DETAILS
from payment_sandbox_verify.walking.walker import check_webhook

LEAST: Final = {"currency": "EUR", "amount": 1000}
OVER_ONE_MIB: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'
MANY: Final = [
    {**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)
]
NO_JSON: Final = {
    "half an object": b'{"currency": ',
    "no UTF-8": b'{"currency": "EUR", "amount": 1000, "description": "\xff"}',
    "a list": b"[1]",
}


@probe("AUTH-01", "AUTH-02", "SET-02")
def credentials(service: Service) -> Checks:
    """Calls with a missing or invalid key get a 401."""
    place = f"{ORDERS}{NOBODY}/"
    for rule, key in (("AUTH-01", ""), ("AUTH-02", "no-such-key")):
        for answer in (service.call("GET", place, key=key), service.call("POST", ORDERS, LEAST, key=key)):
            yield from refused(rule, answer, 401, "Unauthorized")
            yield holds(
                "SET-02",
                "WWW-Authenticate" in answer.headers,
                "a 401 response has no WWW-Authenticate header",
            )
    answer = service.call("GET", place, password="ignored")
    yield holds("SET-02", answer.status != 401, f"a call with a key and a password returned {answer.summary}")


@probe("SET-03", "SET-04", "SET-05", "IDR-01")
def errors(service: Service) -> Checks:
    """One answer names all problems of a request."""
    answer = service.create(currency="USD", amount=-1, return_url="no address")
    yield same("SET-04", answer, "error.type", "ValidationError")
    issuer = "transactions[0].payment_method_details.issuer_id"
    yield from refused("IDR-01", service.create(transaction_by(REDIRECT_NL)), 400, "ValidationError", issuer)
    violations = answer.at("error.violations")
    paths = [each.get("path") for each in violations] if isinstance(violations, list) else []
    missed = {"currency", "amount", "return_url"} - set(paths)
    yield holds("SET-05", not missed, f"the violations do not name {', '.join(sorted(missed))}")
    allowed = next((each.get("allowed") for each in answer.listed("error.violations")), None)
    yield holds("SET-05", allowed == ["EUR"], f"the allowed currencies are {shown(allowed)}, not ['EUR']")


@probe("SET-08", "SET-09", "SET-01", "VER-01", "VER-02")
def unroutable_calls(service: Service) -> Checks:
    """Calls to unknown orders, paths or methods, or with wrong media types, malformed or oversized bodies."""
    order = service.order()
    place = f"{ORDERS}{order.at('id')}"
    for path in (f"{ORDERS}{NOBODY}/", f"{ORDERS}nobody/", "/v1/no-such-path/"):
        yield from refused("SET-08", service.call("GET", path), 404, "NotFound")
    for method, path in (("PUT", f"{ORDERS}{NOBODY}/"), ("POST", f"{ORDERS}{NOBODY}/refunds/")):
        yield from refused("SET-08", service.call(method, path, {}), 404, "NotFound")
    yield from refused("SET-08", service.call("PATCH", ORDERS, {}), 405, "MethodNotAllowed")
    for content in NO_JSON.values():
        yield from refused("SET-08", service.call("POST", ORDERS, content=content), 400)
    large = service.call("POST", ORDERS, content=OVER_ONE_MIB)
    yield from refused("SET-09", large, 413, "RequestEntityTooLarge")
    plain = {"Content-Type": "text/plain"}
    yield from refused(
        "SET-09",
        service.call("POST", ORDERS, content=b"amount=1", headers=plain),
        415,
        "UnsupportedMediaType",
    )
    for path in ("/orders/", "/v2/orders/"):
        yield from refused("VER-02", service.call("POST", path, LEAST), 404)
    for answer in (service.call("GET", place), service.call("GET", f"{place}/")):
        yield holds("SET-01", answer.status == 200, f"{answer.call} returned {answer.summary}")
        yield holds("VER-01", answer.status < 400, f"{answer.call} returned {answer.summary}")
    answer = service.call("POST", ORDERS.rstrip("/"), {**LEAST, "description": MARK})
    yield holds("SET-01", answer.is_success, f"{answer.call} returned {answer.summary}")


@probe("SET-12", "SET-14", "SET-15", "SET-16")
def unknown_fields(service: Service) -> Checks:
    """Unknown fields are dropped and listed in a header; a customer can have more fields, or null ones."""
    answer = service.create(amuont=5)
    yield holds("SET-12", answer.is_success, f"an unknown key is refused: {answer.summary}")
    if answer.is_success:
        yield holds("SET-12", answer.at("amuont") is MISSING, "an unknown key is echoed")
    nested = service.create(
        transaction_by(CARD, tip=1), amuont=5, order_lines=[{**LINES[0], "colour": "red"}]
    )
    ignored = nested.headers.get(IGNORED, "")
    unnamed = [key for key in ("amuont", "colour", "tip") if key not in ignored]
    yield holds("SET-12", not ignored or not unnamed, f"{IGNORED} is {ignored!r}, without {unnamed}")
    more = {**CUSTOMER, "postal_code": "1000 AA", "housenumber": "1", "first_name": None}
    answer = service.create(customer=more)
    yield holds(
        "SET-16",
        answer.is_success,
        f"an order with additional customer fields was answered with {answer.summary}",
    )
    if answer.is_success:
        is_absent = answer.at("customer.first_name") in (MISSING, None)
        yield holds("SET-15", is_absent, "a null name is returned")


@probe("ORD-07", "ORD-16", "SET-31")
def unlimited_values(service: Service) -> Checks:
    """Merchant order ids can repeat, and orders can have many lines, with any sum."""
    own_id = fresh_id()
    for rule, sent in (
        ("ORD-07", {"merchant_order_id": own_id}),
        ("ORD-07", {"merchant_order_id": own_id}),
        ("ORD-16", {"order_lines": MANY}),
        ("SET-31", {"amount": 1001, "order_lines": LINES}),
    ):
        answer = service.create(**sent)
        yield holds(rule, answer.is_success, f"{' and '.join(sent)} returned {answer.summary}")


@probe("LINE-02")
def negative_lines(service: Service) -> Checks:
    """Discounts, gift cards and store credits can be negative; other lines cannot."""
    for kind in ("discount", "gift_card", "store_credit"):
        answer = service.create(order_lines=[LINES[0], {**LINES[1], "type": kind, "amount": -250}])
        if answer.is_success or service.create(order_lines=[{**LINES[0], "type": kind}]).is_success:
            yield holds("LINE-02", answer.is_success, f"a negative {kind} returned {answer.summary}")
    yield from refused(
        "LINE-02", service.create(order_lines=[{**LINES[0], "amount": -250}]), 400, "ValidationError"
    )


@probe("SET-32", "SET-34", "END-04", "END-05")
def reads(service: Service) -> Checks:
    """A read can request a single block, and a matching ETag gets a 304."""
    order = service.order(transaction_by(CARD), amount=LINES_TOTAL, order_lines=LINES)
    for block in (DETAILS, AMOUNTS):
        service.read(order, block)
    place = f"{ORDERS}{order.at('id')}/"
    etag = service.call("GET", place).headers.get("ETag", "")
    for tags in (etag or '"x"', f'"x", {etag}', f"W/{etag}"):
        again = service.call("GET", place, headers={"If-None-Match": tags})
        yield holds(
            "SET-34", again.status == 304, f"a read with If-None-Match {tags} returned {again.summary}"
        )
    service.call("PUT", place, {"description": "Changed by a probe"})
    later = service.call("GET", place, headers={"If-None-Match": etag or '"x"'})
    yield holds(
        "SET-34", later.status == 200, f"a read with an outdated If-None-Match returned {later.summary}"
    )


@probe("SET-54", "END-17")
def lists(service: Service) -> Checks:
    """The service lists the enabled methods, and the banks."""
    answer = service.call("GET", "/v1/merchants/self/projects/self/currencies/")
    yield holds("SET-54", answer.is_success, f"{answer.call} returned {answer.summary}")
    answer = service.call("GET", "/v1/bank-redirect-nl/issuers/")
    yield holds("END-17", answer.is_success, f"{answer.call} returned {answer.summary}")


METHOD: Final = "transactions[0].payment_method"


@probe("BRB-01", "WAPP-01", "WAPP-02", "SET-61")
def test_mode(service: Service) -> Checks:
    """Test mode refuses some methods."""
    answers = [service.create(transaction_by(method)) for method in (REDIRECT_BE, WALLET_APPLE)]
    if "is-test" not in flags_of(service.order()):
        raise CannotTell("the service is not in test mode")
    for rules, answer in zip((("BRB-01", "SET-61"), ("WAPP-01", "SET-61")), answers, strict=True):
        for rule in rules:
            yield from refused(rule, answer, 400, "ValidationError", METHOD)
    unknown = str(service.create(transaction_by("wallet-cheque")).at("error.value")).replace(
        "cheque", "apple"
    )
    is_known = answers[1].is_success or answers[1].at("error.value") != unknown
    yield holds("WAPP-02", is_known, f"it is refused like an unknown method: {unknown}")


@probe("FLOW-12", "FLOW-13", "INV-01", "INV-02", "PLA-01")
def allow_lists(service: Service) -> Checks:
    """Methods with a screening need lines, and an invoice also a customer; other pages are refused."""
    sent = {"amount": LINES_TOTAL, "customer": CUSTOMER, "order_lines": LINES}
    for rule, method in (("FLOW-12", PAY_LATER), ("FLOW-13", INVOICE)):
        answer = service.create(payment_methods=[method], **sent)
        yield holds(rule, answer.is_success, f"payment_methods of {method} returned {answer.summary}")
    for rule, method, needed in (
        ("PLA-01", PAY_LATER, "order_lines"),
        ("INV-01", INVOICE, "order_lines"),
        ("INV-02", INVOICE, "customer"),
    ):
        rest = {name: value for name, value in sent.items() if name != needed}
        yield from refused(rule, service.create(payment_methods=[method], **rest))


@probe("SET-10", spends=True)
def captures_in_full(service: Service) -> Checks:
    """Captures in full accept an empty body, or none."""
    for words, body, content in (
        ("an empty object", {}, None),
        ("an empty body", None, b""),
        ("no body", None, None),
    ):
        order = service.with_lines(INVOICE)
        answer = service.take(order, "captures/", body, content=content)
        yield holds("SET-10", answer.is_success, f"a capture with {words} returned {answer.summary}")


LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")


def _known(buttons: set[str]) -> set[str]:
    return {name for name in buttons if name in (CARD, REDIRECT_NL, REDIRECT_DE, WALLET_QR, WALLET_WEB)}


@probe("CUS-12")
def languages(service: Service) -> Checks:
    """The payment page uses the customer's locale, with its region if the page has one for another."""
    by_locale = {
        locale: service.visit(service.order(customer={"locale": locale})).language for locale in LOCALES
    }
    is_regional = any("-" in language for language in by_locale.values())
    for locale, language in by_locale.items():
        is_right = language == locale if is_regional else language == locale[:2]
        yield holds("CUS-12", is_right, f"with {locale} the page is in {language or 'none'}")


@probe("GEN-03", "GEN-04", "ORD-13", "ORD-14")
def choices(service: Service) -> Checks:
    """The hosted page offers the enabled methods, or only those in the allow list."""
    complete = service.order(amount=LINES_TOTAL, customer=CUSTOMER, order_lines=LINES)
    everything = service.visit(complete).buttons
    offered = _known(service.visit(service.order()).buttons)
    if not offered:
        raise CannotTell("the hosted page has no method buttons that a program can press")
    for rule in ("GEN-03", "ORD-14"):
        yield holds(rule, len(offered) > 1, f"the page offers only {sorted(offered)}")
    for method in METHODS:
        alone = service.create(
            payment_methods=[method], amount=LINES_TOTAL, customer=CUSTOMER, order_lines=LINES
        )
        if alone.is_success and method in service.visit(alone).buttons:
            how = f"the page offers {method} only for orders that list it"
            yield holds("ORD-14", method in everything, how)
    for listed in ([CARD], [WALLET_WEB, CARD]):
        narrowed = _known(service.visit(service.order(payment_methods=listed)).buttons)
        for rule in ("GEN-04", "ORD-13"):
            how = f"with an allow list of {listed} the page offers {sorted(narrowed)}"
            yield holds(rule, narrowed <= set(listed), how)


@probe("CARD-07", spends=True)
def challenges(service: Service) -> Checks:
    """A challenge card pays after its challenge, not before."""
    order = service.order(transaction_by(CARD))
    steps = service.payer.steps(service.page_of(order), "card", "challenge")
    next(steps)
    early = service.read(order).at("status")
    yield holds("CARD-07", early != "completed", "the challenge card can pay without its challenge")
    for _ in steps:
        pass
    late = service.read(order).at("status")
    yield holds("CARD-07", late == "completed", f"after its challenge the order is {shown(late)}")


@probe("FLOW-16")
def without_return_url(service: Service) -> Checks:
    """Without a return_url, the customer stays at the service."""
    order = service.order(transaction_by(CARD))
    went = service.payer.cancel(service.page_of(order), "10.00 EUR with a card")
    yield holds("FLOW-16", went is None, f"without return_url the customer went to {went}")


YEAR: Final = timedelta(days=365)
MONTH: Final = timedelta(days=30)


def _code(service: Service) -> ServiceAnswer:
    body = {**LEAST, "description": MARK, "webhook_url": WEBHOOK_URL}
    answer = service.call("POST", CODES, body)
    if not answer.is_success:
        raise CannotTell(f"a QR request returned {answer.summary}: {answer.at('error.value')}")
    return answer


@probe("QR-12", "QR-15", "QR-19", "LIM-03", "LIM-04", "QR-01", "QR-05")
def defaults_of_codes(service: Service) -> Checks:
    """A code created with only an amount is for one payment, 200 pixels wide, and expires in a year."""
    code = _code(service)
    amount = str(code.at("amount"))
    yield holds("QR-01", amount in ("10.00", "10.0"), f"amount is {amount!r}, not '10.00'")
    for rules, name, value in (
        ("QR-12", "one_off", True),
        ("QR-05", "amount_changeable", False),
        ("QR-19 LIM-03", "size", 200),
    ):
        yield from (same(rule, code, name, value) for rule in rules.split())
    try:
        expires = datetime.fromisoformat(f"{code.at('expiration')}+00:00")
    except ValueError:
        raise CannotTell(
            f"the expiration {code.at('expiration')} is not in YYYY-MM-DD HH:MM format"
        ) from None
    ahead = expires - datetime.fromisoformat(str(service.order().at("created")))
    for rule in ("QR-15", "LIM-04"):
        is_year = abs(ahead - YEAR) < timedelta(days=2)
        yield holds(rule, is_year, f"the code expires in {ahead.days} days, not in a year")


@probe("QR-16")
def expirations_of_codes(service: Service) -> Checks:
    """An expiration with an offset is the same moment in UTC."""
    created = datetime.fromisoformat(str(service.order().at("created")))
    noon, afternoon = (f"{created + MONTH:%Y-%m-%d}T{time}" for time in ("12:00:00+00:00", "14:00:00+02:00"))
    body = {**LEAST, "description": MARK, "webhook_url": WEBHOOK_URL}
    code, same_code = (
        service.call("POST", CODES, {**body, "expiration": each}) for each in (noon, afternoon)
    )
    shown = same_code.at("expiration")
    yield holds("QR-16", shown == code.at("expiration"), f"the expiration {afternoon} is shown as {shown}")


@probe("QR-26")
def code_image(service: Service) -> Checks:
    """The URL of the image responds."""
    address = _code(service).at("qr_url")
    if not isinstance(address, str):
        raise CannotTell("the request has no qr_url")
    page = service.payer.visit(service.absolute(address))
    yield holds("QR-26", page.status == 200, f"the image URL responds with {page.status}")


@probe("HOOK-04", "SET-51")
def another_webhook_url(service: Service) -> Checks:
    """PUT changes the webhook_url for the next webhook."""
    url = service.webhook_url
    order = service.order(transaction_by(CARD), webhook_url=WEBHOOK_URL)
    if not service.call("PUT", f"{ORDERS}{order.at('id')}/", {"webhook_url": url}).is_success:
        raise CannotTell("PUT of webhook_url is refused")
    if not service.call("DELETE", f"{ORDERS}{order.at('id')}/").is_success:
        raise CannotTell("a new order cannot be cancelled")
    webhook = service.webhook_of(str(order.at("id")))
    yield holds("SET-51", webhook is not None, "no webhook came to the URL set by PUT")
    if webhook is not None:
        yield from check_webhook(webhook, str(order.at("project_id")))
