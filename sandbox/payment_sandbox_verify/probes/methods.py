"""The table of payment methods and stored cards."""

from collections.abc import Sequence
from typing import Final

from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.checks import BOOLEAN, OBJECT, TEXT, CannotTell, ValueKind
from payment_sandbox_verify.samples import (
    CARD,
    CUSTOMER,
    INVOICE,
    LINES,
    LINES_TOTAL,
    PAY_LATER,
    REDIRECT_DE,
    REDIRECT_NL,
    TRANSFER,
    WALLET_QR,
    WALLET_WEB,
    by,
    card,
)
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.table import (
    ABSENT,
    ATTEMPT,
    SENT,
    AnyOf,
    Ask,
    At,
    Fields,
    Prepare,
    TableRow,
    TableSection,
    asks,
    created,
    creates,
    needed,
    pays,
    succeeds,
    wrong_at,
)

OWN: Final = f"{ATTEMPT}payment_method_details."
PERIOD: Final = f"{ATTEMPT}expiration_period"
PAGE: Final = f"{ATTEMPT}payment_url"
IS_THERE: Final = ValueKind("there", lambda value: value is not MISSING)
MONTH_AND_YEAR: Final = ValueKind(
    "a month and a year", lambda value: len(str(value)) in (6, 7) and str(value)[-4:].isdigit()
)
MASKED: Final = ValueKind("masked", lambda value: value is not MISSING and not str(value).isdigit())
NO_TOKEN: Final = {f"CARD-20 {OWN}vault_token": ABSENT}
NEEDS: Final = {"amount": LINES_TOTAL, "customer": CUSTOMER}
NO_END: Final = ("new", "processing", "accepted")


def with_bank(service: Service) -> ServiceAnswer:
    """An order with the first bank of the list."""
    return service.order(by(REDIRECT_NL, payment_method_details={"issuer_id": service.issuer}))


def with_pay_later(service: Service) -> ServiceAnswer:
    """An order whose customer has passed the screening.

    Raises:
        CannotTell: they have not.
    """
    order = service.with_lines(PAY_LATER)
    if order.at("status") != "new":
        raise CannotTell(f"the screening of the test customer says {order.at('status')}")
    return order


def stored(**details: object) -> Prepare:
    """A first payment that has stored its card.

    Raises:
        CannotTell: the order has no token.
    """

    def prepared(service: Service) -> ServiceAnswer:
        order = pays(card(**details))(service)
        if not isinstance(order.at(f"{OWN}vault_token"), str):
            status = order.at("status")
            raise CannotTell(f"after a first payment the order is {status}, without vault_token")
        return order

    return prepared


def charges(*, amount: int = 1000, **details: object) -> Ask:
    """Pay another order with the card that the prepared one has stored."""
    return lambda service, order: service.create(
        card(vault_token=order.at(f"{OWN}vault_token"), **details), amount=amount
    )


WRONG_CARDS: Final[Sequence[tuple[str, str, Fields]]] = (
    ("CARD-10", "one_click_type", {"one_click_type": "second"}),
    ("CARD-11", "recurring_type", {"recurring_type": "second"}),
    ("CARD-12", "vault_token", {"one_click_type": "one-click", "cvc": "123"}),
    ("CARD-13", "vault_token", {"recurring_type": "recurring"}),
    ("CARD-14 LIM-11", "cvc", {"one_click_type": "one-click", "vault_token": "no-such-token"}),
)

TABLE: Final = (
    TableSection(
        "a card",
        None,
        rows=[
            TableRow(
                "CARD-01",
                creates(by(CARD)),
                needed,
                {
                    "STA-02 status": "new",
                    f"STA-02 {ATTEMPT}status": "new",
                    f"STA-02 {PAGE}": TEXT,
                    f"LIM-12 SET-65 {PERIOD}": "PT30M",
                    "SET-24 order_url": TEXT,
                },
            )
        ],
    ),
    TableSection(
        "a transfer",
        None,
        rows=[
            TableRow(
                "SEPA-03 SEPA-05",
                creates(by(TRANSFER)),
                needed,
                {
                    "SEPA-01 status": AnyOf(NO_END),
                    "STA-10 status": "processing",
                    f"STA-10 {ATTEMPT}status": "pending",
                    f"SEPA-06 {OWN}reference": TEXT,
                    **{f"SEPA-07 {OWN}consumer_{name}": IS_THERE for name in ("bic", "iban", "name")},
                    f"SEPA-08 {OWN}creditor_bic": TEXT,
                    f"SEPA-08 {OWN}creditor_iban": TEXT,
                    f"SEPA-08 {OWN}creditor_account_holder_name": TEXT,
                    f"SEPA-08 {OWN}creditor_account_holder_city": TEXT,
                    f"SEPA-08 {OWN}creditor_account_holder_country": TEXT,
                    f"TX-10 {ATTEMPT}payment_method_brand": "sepa",
                    f"LIM-14 SET-67 {PERIOD}": "P30D",
                },
            )
        ],
    ),
    TableSection(
        "the banks",
        None,
        rows=[
            TableRow(
                "END-17",
                asks("GET", "/v1/bank-redirect-nl/issuers/"),
                succeeds,
                {"ISS-01 [0].id": TEXT, "ISS-02 [0].list_type": TEXT, "ISS-02 [0].name": TEXT},
            ),
            TableRow("IDR-01", creates(by(REDIRECT_NL)), wrong_at(f"{OWN}issuer_id")),
            TableRow(
                "IDR-06",
                creates(by(REDIRECT_NL, payment_method_details={"issuer_id": "NOBANKXX"})),
                wrong_at(f"{OWN}issuer_id"),
            ),
        ],
    ),
    TableSection(
        "a redirect to a bank",
        with_bank,
        {
            f"IDR-03 {OWN}issuer_id": SENT,
            f"IDR-05 {OWN}issuer_authentication_url": TEXT,
            f"IDR-05 {OWN}status": TEXT,
            f"IDR-05 {OWN}transaction_id": TEXT,
            f"LIM-13 SET-66 {PERIOD}": "PT60M",
        },
    ),
    TableSection(
        "methods that test mode takes",
        None,
        rows=[
            TableRow("BRD-01", creates(by(REDIRECT_DE)), created, {f"SET-66 {PERIOD}": "PT60M"}),
            TableRow("WQR-02", creates(by(WALLET_QR)), created, {f"SET-65 {PERIOD}": "PT30M"}),
            TableRow("WWEB-01", creates(by(WALLET_WEB)), created, {f"SET-65 {PERIOD}": "PT30M"}),
        ],
    ),
    TableSection(
        "what later methods need",
        None,
        rows=[
            TableRow("PLA-01 ORD-16", creates(by(PAY_LATER), **NEEDS), wrong_at("order_lines")),
            TableRow("FLOW-12", creates(**NEEDS, order_lines=LINES, payment_methods=[PAY_LATER]), created),
            TableRow("INV-01 ORD-16", creates(by(INVOICE), **NEEDS), wrong_at("order_lines")),
            TableRow("INV-02", creates(by(INVOICE), order_lines=LINES), wrong_at("customer")),
            TableRow("FLOW-13", creates(**NEEDS, order_lines=LINES, payment_methods=[INVOICE]), created),
        ],
    ),
    TableSection(
        "pay-later-a",
        with_pay_later,
        {f"SET-37 {PAGE}": TEXT, f"SET-68 {PERIOD}": "PT48H", f"PLA-02 {ATTEMPT}capture_mode": "manual"},
        spends=True,
    ),
    TableSection(
        "currencies",
        None,
        rows=[
            TableRow(
                "SET-54",
                asks("GET", "/v1/merchants/self/projects/self/currencies/"),
                succeeds,
                {"SET-54 payment_methods": OBJECT, f"SET-54 payment_methods.{CARD}.currencies": ["EUR"]},
            )
        ],
    ),
    TableSection(
        "cards before payment",
        None,
        rows=[
            *(
                TableRow("CARD-03 CAP-01", creates(by(CARD, capture_mode=mode)), created)
                for mode in ("manual", "delayed")
            ),
            TableRow(
                "CARD-04",
                creates(card(one_click_type="first")),
                created,
                {f"CARD-20 {OWN}vault_token": ABSENT},
            ),
            TableRow("CARD-04", creates(card(recurring_type="first")), created),
            TableRow("CARD-05", creates(card(dynamic_descriptor="PROBE")), created),
            *(
                TableRow(rules, creates(card(**details)), wrong_at(f"{OWN}{name}"))
                for rules, name, details in WRONG_CARDS
            ),
        ],
    ),
    TableSection(
        "a first payment",
        pays(card(one_click_type="first")),
        {
            "FLOW-04 STA-08 status": "completed",
            f"FLOW-04 STA-08 CARD-20 {OWN}vault_token": TEXT,
            f"CARD-15 {OWN}card_expiry": MONTH_AND_YEAR,
            f"CARD-16 {OWN}cardholder_name": TEXT,
            f"CARD-17 {OWN}liability_shift": BOOLEAN,
            f"CARD-18 {OWN}truncated_pan": MASKED,
            f"CARD-19 {OWN}one_click_type": "first",
        },
        spends=True,
    ),
    TableSection(
        "one-click",
        stored(one_click_type="first"),
        {},
        [
            TableRow("LIM-11", charges(one_click_type="one-click"), wrong_at()),
            TableRow(
                "FLOW-05 LIM-10",
                charges(one_click_type="one-click", cvc="123", amount=1750),
                needed,
                {
                    "STA-11 status": "completed",
                    f"FLOW-06 TX-13 {PAGE}": ABSENT,
                    f"CARD-21 {OWN}first_authorised_transaction_id": At(f"{ATTEMPT}id"),
                },
            ),
            TableRow("LIM-10", charges(one_click_type="one-click", cvc="123", amount=1), succeeds),
        ],
        spends=True,
    ),
    TableSection(
        "recurring",
        stored(recurring_type="first"),
        {"FLOW-07 STA-09 status": "completed"},
        [
            TableRow("LIM-07 SET-64", charges(recurring_type="recurring", amount=1750), wrong_at("amount")),
            TableRow("LIM-07 SET-64", charges(recurring_type="recurring", amount=999), wrong_at("amount")),
            TableRow(
                "FLOW-08",
                charges(recurring_type="recurring"),
                needed,
                {"STA-12 status": "processing", f"FLOW-09 {PAGE}": ABSENT},
            ),
        ],
        spends=True,
    ),
)
