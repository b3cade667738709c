"""Probes of the payment methods, stored cards and expiry."""

from typing import Any, Final

from payment_sandbox.verification.answer import MISSING, ServiceAnswer
from payment_sandbox.verification.checks import (
    BOOLEAN,
    LIST,
    OBJECT,
    TEXT,
    CannotTell,
    Checks,
    absent,
    accepted,
    holds,
    kind,
    one_of,
    refused,
    same,
)
from payment_sandbox.verification.probes.invoices import AMOUNTS, BY_AMOUNT
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    PAY_LATER,
    REDIRECT_BE,
    REDIRECT_DE,
    REDIRECT_NL,
    TRANSFER,
    WALLET_APPLE,
    WALLET_QR,
    WALLET_WEB,
    by,
    card,
)
from payment_sandbox.verification.service import Service, flags_of

METHOD: Final = "transactions[0].payment_method"
DETAILS: Final = "transactions[0].payment_method_details"
PERIOD: Final = "transactions[0].expiration_period"


@probe("STA-02", "CARD-01", "LIM-12", "SET-65", "SET-24")
def a_card(service: Service) -> Checks:
    """A card payment begins new, with a page."""
    answer = service.create(by(CARD))
    yield from accepted("CARD-01", answer)
    if not answer.is_success:
        raise CannotTell(f"a card payment is {answer.summary}")
    yield same("STA-02", answer, "status", "new")
    yield same("STA-02", answer, "transactions[0].status", "new")
    yield kind("STA-02", answer, "transactions[0].payment_url", TEXT)
    for rule in ("LIM-12", "SET-65"):
        yield same(rule, answer, PERIOD, "PT30M")
    yield kind("SET-24", answer, "order_url", TEXT)


@probe("SEPA-01", "SEPA-03", "SEPA-05", "SEPA-06", "SEPA-07", "SEPA-08", "STA-10", "LIM-14", "SET-67")
def a_transfer(service: Service) -> Checks:
    """A transfer is pending, with a reference and an account."""
    answer = service.create(by(TRANSFER))
    yield from accepted("SEPA-03", answer)
    if not answer.is_success:
        raise CannotTell(f"a transfer is {answer.summary}")
    yield from accepted("SEPA-05", answer)
    final = ("completed", "cancelled", "error", "expired")
    yield holds("SEPA-01", answer.at("status") not in final, f"it begins as {answer.at('status')}")
    yield same("STA-10", answer, "status", "processing")
    yield same("STA-10", answer, "transactions[0].status", "pending")
    yield kind("SEPA-06", answer, f"{DETAILS}.reference", TEXT)
    for name in ("consumer_bic", "consumer_iban", "consumer_name"):
        there = answer.at(f"{DETAILS}.{name}") is not MISSING
        yield holds("SEPA-07", there, f"the details have no {name}")
    for name in ("bic", "iban", "account_holder_name", "account_holder_city", "account_holder_country"):
        yield kind("SEPA-08", answer, f"{DETAILS}.creditor_{name}", TEXT)
    yield same("TX-10", answer, "transactions[0].payment_method_brand", "sepa")
    for rule in ("LIM-14", "SET-67"):
        yield same(rule, answer, PERIOD, "P30D")


@probe("END-17", "ISS-01", "ISS-02", "IDR-01", "IDR-03", "IDR-05", "IDR-06", "LIM-13", "SET-66")
def a_redirect_with_banks(service: Service) -> Checks:
    """The list of banks, and a payment with one of them."""
    banks = service.call("GET", "/v1/bank-redirect-nl/issuers/")
    yield holds("END-17", LIST.fits(banks.data), f"the issuers are no list: {banks.summary}")
    for rule, name in (("ISS-01", "id"), ("ISS-02", "list_type"), ("ISS-02", "name")):
        yield kind(rule, banks, f"[0].{name}", TEXT)
    yield from refused(
        "IDR-01", service.create(by(REDIRECT_NL)), 400, "ValidationError", f"{DETAILS}.issuer_id"
    )
    wrong = service.create(by(REDIRECT_NL, payment_method_details={"issuer_id": "NOBANKXX"}))
    yield from refused("IDR-06", wrong, 400, "ValidationError", f"{DETAILS}.issuer_id")
    order = service.order(by(REDIRECT_NL, payment_method_details={"issuer_id": service.issuer}))
    yield same("IDR-03", order, f"{DETAILS}.issuer_id", service.issuer)
    yield kind("IDR-05", order, f"{DETAILS}.issuer_authentication_url", TEXT)
    yield kind("IDR-05", order, f"{DETAILS}.status", TEXT)
    yield kind("IDR-05", order, f"{DETAILS}.transaction_id", TEXT)
    for rule in ("LIM-13", "SET-66"):
        yield same(rule, order, PERIOD, "PT60M")


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


@probe("PLA-01", "INV-01", "INV-02", "ORD-16", "FLOW-12", "FLOW-13")
def what_later_methods_need(service: Service) -> Checks:
    """Lines, and for invoices a customer; by transaction or by allow list."""
    fields = {"amount": LINES_TOTAL, "customer": CUSTOMER}
    for rules, method in ((("PLA-01", "ORD-16"), PAY_LATER), (("INV-01", "ORD-16"), INVOICE)):
        answer = service.create(by(method), **fields)
        for rule in rules:
            yield from refused(rule, answer, 400, "ValidationError", "order_lines")
    without = service.create(by(INVOICE), amount=LINES_TOTAL, order_lines=LINES)
    yield from refused("INV-02", without, 400, "ValidationError", "customer")
    for rule, method in (("FLOW-12", PAY_LATER), ("FLOW-13", INVOICE)):
        yield from accepted(rule, service.create(**fields, order_lines=LINES, payment_methods=[method]))


@probe("SET-37", "SET-68", "PLA-02", spends=True)
def pay_later(service: Service) -> Checks:
    """A customer who passes the screening authorizes on a page."""
    order = service.with_lines(PAY_LATER)
    if order.at("status") != "new":
        raise CannotTell(f"the screening of the test customer says {order.at('status')}")
    yield kind("SET-37", order, "transactions[0].payment_url", TEXT)
    yield same("SET-68", order, PERIOD, "PT48H")
    yield same("PLA-02", order, "transactions[0].capture_mode", "manual")


@probe("SET-54")
def currencies(service: Service) -> Checks:
    """The enabled methods."""
    answer = service.call("GET", "/v1/merchants/self/projects/self/currencies/")
    yield kind("SET-54", answer, "payment_methods", OBJECT)
    yield same("SET-54", answer, f"payment_methods.{CARD}.currencies", ["EUR"])


@probe("CARD-03", "CAP-01", "CARD-04", "CARD-05", "CARD-10", "CARD-11", "CARD-12", "CARD-13", "CARD-14")
def cards_before_payment(service: Service) -> Checks:
    """What a creation with a card takes and refuses."""
    for mode in ("manual", "delayed"):
        answer = service.create(by(CARD, capture_mode=mode))
        for rule in ("CARD-03", "CAP-01"):
            yield from accepted(rule, answer)
    for name in ("one_click_type", "recurring_type"):
        yield from accepted("CARD-04", service.create(card(**{name: "first"})))
    yield from accepted("CARD-05", service.create(card(dynamic_descriptor="PROBE")))
    wrong = (
        ("CARD-10", "one_click_type", {"one_click_type": "second"}),
        ("CARD-11", "recurring_type", {"recurring_type": "second"}),
        ("CARD-12", "vault_token", {"one_click_type": "one-click", "cvc": "123"}),
        ("CARD-13", "vault_token", {"recurring_type": "recurring"}),
        ("CARD-14", "cvc", {"one_click_type": "one-click", "vault_token": "no-such-token"}),
        ("LIM-11", "cvc", {"one_click_type": "one-click", "vault_token": "no-such-token"}),
    )
    for rule, name, details in wrong:
        yield from refused(rule, service.create(card(**details)), 400, "ValidationError", f"{DETAILS}.{name}")
    yield from (absent("CARD-20", service.order(card(one_click_type="first")), f"{DETAILS}.vault_token"),)


@probe("CAP-02")
def captures_before_authorization(service: Service) -> Checks:
    """Nothing can be captured before the customer has authorized."""
    order = service.order(by(CARD, capture_mode="manual"))
    answer = service.take(order, "captures/", {})
    yield from refused("CAP-02", answer, 409, "AuthorizationMissing")


@probe("SET-31")
def lines_that_do_not_add_up(service: Service) -> Checks:
    """They are accepted."""
    answer = service.create(amount=LINES_TOTAL + 1, order_lines=LINES)
    yield holds("SET-31", answer.is_success, f"they are {answer.summary}")


CARD_DETAILS: Final = "transactions[0].payment_method_details."
PAGE: Final = "transactions[0].payment_url"


def _stored(service: Service, **details: Any) -> tuple[ServiceAnswer, str]:
    """A first payment, and its token."""
    order, _ = service.paid(card(**details))
    token = order.at(f"{CARD_DETAILS}vault_token")
    if not isinstance(token, str):
        raise CannotTell(f"after a first payment the order is {order.at('status')}, without vault_token")
    return order, token


@probe("STA-08", "FLOW-04", "CARD-15", "CARD-16", "CARD-17", "CARD-18", "CARD-19", "CARD-20", spends=True)
def a_first_payment(service: Service) -> Checks:
    """It completes, and shows its card and the token."""
    order, _ = service.paid(card(one_click_type="first"))
    for rule in ("STA-08", "FLOW-04"):
        yield same(rule, order, "status", "completed")
        yield kind(rule, order, f"{CARD_DETAILS}vault_token", TEXT)
    yield kind("CARD-20", order, f"{CARD_DETAILS}vault_token", TEXT)
    expiry = str(order.at(f"{CARD_DETAILS}card_expiry"))
    yield holds("CARD-15", len(expiry) in (6, 7) and expiry[-4:].isdigit(), f"card_expiry is {expiry}")
    yield kind("CARD-16", order, f"{CARD_DETAILS}cardholder_name", TEXT)
    yield kind("CARD-17", order, f"{CARD_DETAILS}liability_shift", BOOLEAN)
    pan = str(order.at(f"{CARD_DETAILS}truncated_pan"))
    masked = order.at(f"{CARD_DETAILS}truncated_pan") is not MISSING and not pan.isdigit()
    yield holds("CARD-18", masked, f"truncated_pan is {pan}")
    yield same("CARD-19", order, f"{CARD_DETAILS}one_click_type", "first")


@probe("STA-11", "FLOW-05", "FLOW-06", "LIM-10", "TX-13", "CARD-21", spends=True)
def one_click(service: Service) -> Checks:
    """A stored card pays at once, any amount, with its CVC."""
    first, token = _stored(service, one_click_type="first")
    actual = {"one_click_type": "one-click", "vault_token": token}
    without = service.create(card(**actual))
    yield from refused("LIM-11", without, 400, "ValidationError")
    order = service.create(card(**actual, cvc="123"), amount=1750)
    for rule in ("FLOW-05", "LIM-10"):
        yield holds(rule, order.is_success, f"another amount is {order.summary}: {order.at('error.value')}")
    if not order.is_success:
        raise CannotTell(f"a one-click payment is {order.summary}")
    yield same("STA-11", order, "status", "completed")
    for rule in ("FLOW-06", "TX-13"):
        yield absent(rule, order, PAGE)
    place = f"{CARD_DETAILS}first_authorised_transaction_id"
    yield same("CARD-21", order, place, first.at("transactions[0].id"))


@probe("STA-09", "FLOW-07", "STA-12", "FLOW-08", "FLOW-09", "LIM-07", "SET-64", spends=True)
def recurring(service: Service) -> Checks:
    """A series charges the amount of its first payment, without anybody."""
    first, token = _stored(service, recurring_type="first")
    for rule in ("STA-09", "FLOW-07"):
        yield same(rule, first, "status", "completed")
    actual = card(recurring_type="recurring", vault_token=token)
    other = service.create(actual, amount=1750)
    for rule in ("LIM-07", "SET-64"):
        yield from refused(rule, other, 400, "ValidationError", "amount")
    order = service.create(actual)
    yield holds("FLOW-08", order.is_success, f"a recurring payment is {order.summary}")
    if not order.is_success:
        raise CannotTell(f"a recurring payment is {order.summary}")
    yield same("STA-12", order, "status", "processing")
    yield absent("FLOW-09", order, PAGE)


SHORT: Final = "PT3S"
SHORT_SECONDS: Final = 3.0
MARGIN_SECONDS: Final = 1.5
ENDED: Final = ("CAP-03", "CAP-04", "ERR-03", "TRQ-05", "SET-41", "SET-42", "ORD-12")
CAPTURED: Final = ("CAP-05", "CAP-07", "SET-44")


def _authorized(service: Service) -> tuple[ServiceAnswer, ServiceAnswer]:
    """Two invoices that expire soon; of the second a part is captured."""
    first = service.with_lines(INVOICE, expiration_period=SHORT)
    second = service.with_lines(INVOICE, expiration_period=SHORT)
    if first.at("status") not in ("accepted", "completed"):
        raise CannotTell(f"the screening of the test customer says {first.at('status')}")
    service.take(second, "captures/amount/", BY_AMOUNT)
    return first, second


def _delayed(service: Service) -> ServiceAnswer | str:
    """An authorization that is captured by itself soon, less a part; or why there is none."""
    try:
        order, _ = service.paid(by(CARD, capture_mode="delayed", expiration_period=SHORT))
    except CannotTell as why:
        return str(why)
    voided = service.take(order, "voids/amount/", BY_AMOUNT)
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
