"""Probes of behaviour that field values and call sequences do not cover, such as credentials."""

from datetime import datetime, timedelta
from typing import Final

from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.checks import CannotTell, Checks, check_equal, check_refused, check_that, describe
from payment_sandbox_verify.model.records import METHODS
from payment_sandbox_verify.probing import probe
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    PAY_LATER,
    REDIRECT_BE,
    REDIRECT_DE,
    REDIRECT_NL,
    UNKNOWN_ID,
    WALLET_APPLE,
    WALLET_QR,
    WALLET_WEB,
    WEBHOOK_URL,
    fresh_id,
    transaction_with,
)
from payment_sandbox_verify.service import (
    CODES_PATH,
    IGNORED_FIELDS_HEADER,
    MARKER,
    ORDERS_PATH,
    Service,
    flags_of,
)
from payment_sandbox_verify.shapes import AMOUNT_DETAILS, LINE_DETAILS
from payment_sandbox_verify.walking.walker import check_webhook

MINIMAL_ORDER: Final = {"currency": "EUR", "amount": 1000}
OVERSIZED_BODY: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'
MANY_LINES: Final = [
    {**LINES[1], "amount": 10, "merchant_order_line_id": f"line-{number}"} for number in range(100)
]
MALFORMED_BODIES: Final = {
    "half an object": b'{"currency": ',
    "no UTF-8": b'{"currency": "EUR", "amount": 1000, "description": "\xff"}',
    "a list": b"[1]",
}


@probe("AUTH-01", "AUTH-02", "SET-02")
def credentials(service: Service) -> Checks:
    """Calls with a missing or invalid key get a 401."""
    order_path = f"{ORDERS_PATH}{UNKNOWN_ID}/"
    for rule, key in (("AUTH-01", ""), ("AUTH-02", "no-such-key")):
        for answer in (
            service.call("GET", order_path, key=key),
            service.call("POST", ORDERS_PATH, MINIMAL_ORDER, key=key),
        ):
            yield from check_refused(rule, answer, 401, "Unauthorized")
            yield check_that(
                "SET-02",
                "WWW-Authenticate" in answer.headers,
                "a 401 response has no WWW-Authenticate header",
            )
    answer = service.call("GET", order_path, password="ignored")
    yield check_that(
        "SET-02", answer.status != 401, f"a call with a key and a password returned {answer.summary}"
    )


@probe("SET-03", "SET-04", "SET-05", "IDR-01")
def error_reports(service: Service) -> Checks:
    """One answer names all problems in a request."""
    answer = service.create(currency="USD", amount=-1, return_url="no address")
    yield check_equal("SET-04", answer, "error.type", "ValidationError")
    issuer = "transactions[0].payment_method_details.issuer_id"
    yield from check_refused(
        "IDR-01", service.create(transaction_with(REDIRECT_NL)), 400, "ValidationError", issuer
    )
    violations = answer.at("error.violations")
    paths = [each.get("path") for each in violations] if isinstance(violations, list) else []
    missed = {"currency", "amount", "return_url"} - set(paths)
    yield check_that("SET-05", not missed, f"the violations do not name {', '.join(sorted(missed))}")
    allowed = next((each.get("allowed") for each in answer.list_at("error.violations")), None)
    yield check_that(
        "SET-05", allowed == ["EUR"], f"the allowed currencies are {describe(allowed)}, not ['EUR']"
    )


@probe("SET-08", "SET-09", "SET-01", "VER-01", "VER-02")
def unroutable_calls(service: Service) -> Checks:
    """Unknown paths and methods, wrong media types, and malformed or oversized bodies are refused."""
    order = service.new_order()
    order_path = f"{ORDERS_PATH}{order.at('id')}"
    for path in (f"{ORDERS_PATH}{UNKNOWN_ID}/", f"{ORDERS_PATH}nobody/", "/v1/no-such-path/"):
        yield from check_refused("SET-08", service.call("GET", path), 404, "NotFound")
    for method, path in (
        ("PUT", f"{ORDERS_PATH}{UNKNOWN_ID}/"),
        ("POST", f"{ORDERS_PATH}{UNKNOWN_ID}/refunds/"),
    ):
        yield from check_refused("SET-08", service.call(method, path, {}), 404, "NotFound")
    yield from check_refused("SET-08", service.call("PATCH", ORDERS_PATH, {}), 405, "MethodNotAllowed")
    for content in MALFORMED_BODIES.values():
        yield from check_refused("SET-08", service.call("POST", ORDERS_PATH, content=content), 400)
    large = service.call("POST", ORDERS_PATH, content=OVERSIZED_BODY)
    yield from check_refused("SET-09", large, 413, "RequestEntityTooLarge")
    plain = {"Content-Type": "text/plain"}
    yield from check_refused(
        "SET-09",
        service.call("POST", ORDERS_PATH, content=b"amount=1", headers=plain),
        415,
        "UnsupportedMediaType",
    )
    for path in ("/orders/", "/v2/orders/"):
        yield from check_refused("VER-02", service.call("POST", path, MINIMAL_ORDER), 404)
    for answer in (service.call("GET", order_path), service.call("GET", f"{order_path}/")):
        yield check_that("SET-01", answer.status == 200, f"{answer.call} returned {answer.summary}")
        yield check_that("VER-01", answer.status < 400, f"{answer.call} returned {answer.summary}")
    answer = service.call("POST", ORDERS_PATH.rstrip("/"), {**MINIMAL_ORDER, "description": MARKER})
    yield check_that("SET-01", answer.is_success, f"{answer.call} returned {answer.summary}")


@probe("SET-12", "SET-14", "SET-15", "SET-16")
def unknown_fields(service: Service) -> Checks:
    """Unknown fields are dropped and listed in a header; a customer can have extra fields, or null fields."""
    answer = service.create(amuont=5)
    yield check_that("SET-12", answer.is_success, f"an unknown key is refused: {answer.summary}")
    if answer.is_success:
        yield check_that("SET-12", answer.at("amuont") is MISSING, "an unknown key is echoed")
    nested = service.create(
        transaction_with(CARD, tip=1), amuont=5, order_lines=[{**LINES[0], "colour": "red"}]
    )
    ignored = nested.headers.get(IGNORED_FIELDS_HEADER, "")
    unnamed = [key for key in ("amuont", "colour", "tip") if key not in ignored]
    yield check_that(
        "SET-12", not ignored or not unnamed, f"{IGNORED_FIELDS_HEADER} is {ignored!r}, without {unnamed}"
    )
    customer = {**CUSTOMER, "postal_code": "1000 AA", "housenumber": "1", "first_name": None}
    answer = service.create(customer=customer)
    yield check_that(
        "SET-16",
        answer.is_success,
        f"an order with additional customer fields was answered with {answer.summary}",
    )
    if answer.is_success:
        is_absent = answer.at("customer.first_name") in (MISSING, None)
        yield check_that("SET-15", is_absent, "a null name is returned")


@probe("ORD-07", "ORD-16", "SET-31")
def unlimited_values(service: Service) -> Checks:
    """Merchant order ids can repeat, and orders can have many lines, with any total."""
    own_id = fresh_id()
    for rule, sent in (
        ("ORD-07", {"merchant_order_id": own_id}),
        ("ORD-07", {"merchant_order_id": own_id}),
        ("ORD-16", {"order_lines": MANY_LINES}),
        ("SET-31", {"amount": 1001, "order_lines": LINES}),
    ):
        answer = service.create(**sent)
        yield check_that(rule, answer.is_success, f"{' and '.join(sent)} returned {answer.summary}")


@probe("LINE-02")
def negative_lines(service: Service) -> Checks:
    """Discounts, gift cards, store credits and physical lines can be negative; other lines cannot."""
    for kind in ("discount", "gift_card", "store_credit", "physical"):
        answer = service.create(order_lines=[LINES[0], {**LINES[1], "type": kind, "amount": -250}])
        if answer.is_success or service.create(order_lines=[{**LINES[0], "type": kind}]).is_success:
            yield check_that("LINE-02", answer.is_success, f"a negative {kind} returned {answer.summary}")
    yield from check_refused(
        "LINE-02",
        service.create(order_lines=[LINES[0], {**LINES[1], "amount": -250}]),
        400,
        "ValidationError",
    )


@probe("SET-32", "SET-34", "END-04", "END-05")
def conditional_reads(service: Service) -> Checks:
    """A read can request a single block, and a matching ETag gets a 304."""
    order = service.new_order(transaction_with(CARD), amount=LINES_TOTAL, order_lines=LINES)
    for block in (LINE_DETAILS, AMOUNT_DETAILS):
        service.read(order, block)
    order_path = f"{ORDERS_PATH}{order.at('id')}/"
    etag = service.call("GET", order_path).headers.get("ETag", "")
    for tags in (etag or '"x"', f'"x", {etag}', f"W/{etag}"):
        repeated_read = service.call("GET", order_path, headers={"If-None-Match": tags})
        yield check_that(
            "SET-34",
            repeated_read.status == 304,
            f"a read with If-None-Match {tags} returned {repeated_read.summary}",
        )
    service.call("PUT", order_path, {"description": "Changed by a probe"})
    later = service.call("GET", order_path, headers={"If-None-Match": etag or '"x"'})
    yield check_that(
        "SET-34", later.status == 200, f"a read with an outdated If-None-Match returned {later.summary}"
    )


@probe("SET-54", "END-17")
def method_and_issuer_lists(service: Service) -> Checks:
    """The service lists the enabled methods, and the banks."""
    answer = service.call("GET", "/v1/merchants/self/projects/self/currencies/")
    yield check_that("SET-54", answer.is_success, f"{answer.call} returned {answer.summary}")
    answer = service.call("GET", "/v1/bank-redirect-nl/issuers/")
    yield check_that("END-17", answer.is_success, f"{answer.call} returned {answer.summary}")


METHOD_PATH: Final = "transactions[0].payment_method"


@probe("BRB-01", "WAPP-01", "WAPP-02", "SET-61")
def test_mode(service: Service) -> Checks:
    """Test mode refuses some methods."""
    answers = [service.create(transaction_with(method)) for method in (REDIRECT_BE, WALLET_APPLE)]
    if "is-test" not in flags_of(service.new_order()):
        raise CannotTell("the service is not in test mode")
    for rules, answer in zip((("BRB-01", "SET-61"), ("WAPP-01", "SET-61")), answers, strict=True):
        for rule in rules:
            yield from check_refused(rule, answer, 400, "ValidationError", METHOD_PATH)
    unknown = str(service.create(transaction_with("wallet-cheque")).at("error.value")).replace(
        "cheque", "apple"
    )
    is_known = answers[1].is_success or answers[1].at("error.value") != unknown
    yield check_that("WAPP-02", is_known, f"it is refused like an unknown method: {unknown}")


@probe("FLOW-12", "FLOW-13", "INV-01", "INV-02", "PLA-01")
def allow_lists(service: Service) -> Checks:
    """Pages for methods with a screening need lines, and pages for an invoice also need a customer."""
    sent = {"amount": LINES_TOTAL, "customer": CUSTOMER, "order_lines": LINES}
    for rule, method in (("FLOW-12", PAY_LATER), ("FLOW-13", INVOICE)):
        answer = service.create(payment_methods=[method], **sent)
        yield check_that(rule, answer.is_success, f"payment_methods with {method} returned {answer.summary}")
    for rule, method, needed in (
        ("PLA-01", PAY_LATER, "order_lines"),
        ("INV-01", INVOICE, "order_lines"),
        ("INV-02", INVOICE, "customer"),
    ):
        remaining = {name: value for name, value in sent.items() if name != needed}
        yield from check_refused(rule, service.create(payment_methods=[method], **remaining))


@probe("SET-10", is_costly=True)
def full_captures(service: Service) -> Checks:
    """Full captures accept an empty body or no body."""
    for description, body, content in (
        ("an empty object", {}, None),
        ("an empty body", None, b""),
        ("no body", None, None),
    ):
        order = service.new_order_with_lines(INVOICE)
        answer = service.capture_or_void(order, "captures/", body, content=content)
        yield check_that(
            "SET-10", answer.is_success, f"a capture with {description} returned {answer.summary}"
        )


LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")


def _known_methods(buttons: set[str]) -> set[str]:
    return {name for name in buttons if name in (CARD, REDIRECT_NL, REDIRECT_DE, WALLET_QR, WALLET_WEB)}


@probe("CUS-12")
def languages(service: Service) -> Checks:
    """The payment page uses the customer's locale, with its region if the service distinguishes regions."""
    by_locale = {
        locale: service.visit(service.new_order(customer={"locale": locale})).language for locale in LOCALES
    }
    is_regional = any("-" in language for language in by_locale.values())
    for locale, language in by_locale.items():
        is_expected = language == locale if is_regional else language == locale[:2]
        yield check_that("CUS-12", is_expected, f"with {locale} the page is in {language or 'none'}")


@probe("GEN-03", "GEN-04", "ORD-13", "ORD-14")
def offered_methods(service: Service) -> Checks:
    """The hosted page offers the enabled methods, or only the methods in the allow list."""
    complete = service.new_order(amount=LINES_TOTAL, customer=CUSTOMER, order_lines=LINES)
    everything = service.visit(complete).buttons
    offered = _known_methods(service.visit(service.new_order()).buttons)
    if not offered:
        raise CannotTell("the hosted page has no method buttons that a program can press")
    for rule in ("GEN-03", "ORD-14"):
        yield check_that(rule, len(offered) > 1, f"the page offers only {sorted(offered)}")
    for method in METHODS:
        alone = service.create(
            payment_methods=[method], amount=LINES_TOTAL, customer=CUSTOMER, order_lines=LINES
        )
        if alone.is_success and method in service.visit(alone).buttons:
            reason = f"the page offers {method} only for orders that list it"
            yield check_that("ORD-14", method in everything, reason)
    for allow_list in ([CARD], [WALLET_WEB, CARD]):
        allowed = _known_methods(service.visit(service.new_order(payment_methods=allow_list)).buttons)
        for rule in ("GEN-04", "ORD-13"):
            reason = f"with an allow list of {allow_list} the page offers {sorted(allowed)}"
            yield check_that(rule, allowed <= set(allow_list), reason)


@probe("CARD-07", is_costly=True)
def card_challenge(service: Service) -> Checks:
    """A challenge card pays only after its challenge."""
    order = service.new_order(transaction_with(CARD))
    steps = service.payer.pay_in_steps(service.payment_page_url(order), "card", "challenge")
    next(steps)
    early = service.read(order).at("status")
    yield check_that("CARD-07", early != "completed", "the challenge card can pay without its challenge")
    for _ in steps:
        pass
    late = service.read(order).at("status")
    yield check_that("CARD-07", late == "completed", f"after its challenge the order is {describe(late)}")


@probe("FLOW-16")
def missing_return_url(service: Service) -> Checks:
    """Without a return_url, the customer stays at the service."""
    order = service.new_order(transaction_with(CARD))
    return_url = service.payer.cancel(service.payment_page_url(order), "10.00 EUR with a card")
    yield check_that("FLOW-16", return_url is None, f"without return_url the customer went to {return_url}")


YEAR: Final = timedelta(days=365)
MONTH: Final = timedelta(days=30)


def _create_code(service: Service) -> ServiceAnswer:
    body = {**MINIMAL_ORDER, "description": MARKER, "webhook_url": WEBHOOK_URL}
    answer = service.call("POST", CODES_PATH, body)
    if not answer.is_success:
        raise CannotTell(f"a QR request returned {answer.summary}: {answer.at('error.value')}")
    return answer


@probe("QR-12", "QR-15", "QR-19", "LIM-03", "LIM-04", "QR-01", "QR-05")
def code_defaults(service: Service) -> Checks:
    """A code created with only an amount is for one payment, 200 pixels wide, and expires in a year."""
    code = _create_code(service)
    amount = str(code.at("amount"))
    yield check_that("QR-01", amount in ("10.00", "10.0"), f"amount is {amount!r}, not '10.00'")
    for rules, name, value in (
        ("QR-12", "one_off", True),
        ("QR-05", "amount_changeable", False),
        ("QR-19 LIM-03", "size", 200),
    ):
        yield from (check_equal(rule, code, name, value) for rule in rules.split())
    try:
        expires = datetime.fromisoformat(f"{code.at('expiration')}+00:00")
    except ValueError:
        raise CannotTell(
            f"the expiration {code.at('expiration')} is not in YYYY-MM-DD HH:MM format"
        ) from None
    ahead = expires - datetime.fromisoformat(str(service.new_order().at("created")))
    for rule in ("QR-15", "LIM-04"):
        is_year = abs(ahead - YEAR) < timedelta(days=2)
        yield check_that(rule, is_year, f"the code expires in {ahead.days} days, not in a year")


@probe("QR-16")
def code_expirations(service: Service) -> Checks:
    """An expiration with an offset is converted to UTC."""
    created = datetime.fromisoformat(str(service.new_order().at("created")))
    noon, afternoon = (f"{created + MONTH:%Y-%m-%d}T{time}" for time in ("12:00:00+00:00", "14:00:00+02:00"))
    body = {**MINIMAL_ORDER, "description": MARKER, "webhook_url": WEBHOOK_URL}
    code, same_code = (
        service.call("POST", CODES_PATH, {**body, "expiration": each}) for each in (noon, afternoon)
    )
    expiration = same_code.at("expiration")
    yield check_that(
        "QR-16", expiration == code.at("expiration"), f"the expiration {afternoon} is shown as {expiration}"
    )


@probe("QR-26")
def code_image(service: Service) -> Checks:
    """The QR image can be fetched from its URL."""
    address = _create_code(service).at("qr_url")
    if not isinstance(address, str):
        raise CannotTell("the request has no qr_url")
    page = service.payer.visit(service.absolute_url(address))
    yield check_that("QR-26", page.status == 200, f"the image URL responds with {page.status}")


@probe("HOOK-04", "SET-51")
def changed_webhook_url(service: Service) -> Checks:
    """PUT changes the webhook_url for the next webhook."""
    url = service.webhook_url
    order = service.new_order(transaction_with(CARD), webhook_url=WEBHOOK_URL)
    if not service.call("PUT", f"{ORDERS_PATH}{order.at('id')}/", {"webhook_url": url}).is_success:
        raise CannotTell("PUT with a webhook_url is refused")
    if not service.call("DELETE", f"{ORDERS_PATH}{order.at('id')}/").is_success:
        raise CannotTell("a new order cannot be cancelled")
    webhook = service.wait_for_webhook(str(order.at("id")))
    yield check_that("SET-51", webhook is not None, "no webhook arrived at the URL set by PUT")
    if webhook is not None:
        yield from check_webhook(webhook, str(order.at("project_id")))
