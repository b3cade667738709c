"""Invented bank accounts with valid check digits, and the banks that issue them."""

from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.ids import Ids


class Issuer(NamedTuple):
    """A bank where a customer can pay by online banking."""

    id: str
    name: str
    list_type: str = "Nederland"


ISSUERS: Final = (
    Issuer("SBXANL2A", "Sandbank"),
    Issuer("DUINNL2U", "Duinbank"),
    Issuer("POLDNL2R", "Polderbank"),
    Issuer("TERPNL2G", "Terp & Zoon"),
    Issuer("WADDNL2L", "Waddenbank"),
)

CREDITOR: Final = {
    "creditor_account_holder_name": "Stichting Sandbox Payments",
    "creditor_account_holder_city": "Amsterdam",
    "creditor_account_holder_country": "NL",
    "creditor_bic": "SBXANL2A",
}


def iban(country: str, account: str) -> str:
    """Build an IBAN with its ISO 13616 check digits; the account has letters and digits."""
    digits = "".join(str(int(character, 36)) for character in f"{account}{country}00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


def dutch_iban(bic: str, ids: Ids) -> str:
    """A new account at the bank of this BIC."""
    return iban("NL", bic[:4] + ids.digits("account", 10))


def payer(bic: str, ids: Ids) -> dict[str, Any]:
    """Who paid, from which account."""
    return {"consumer_bic": bic, "consumer_iban": dutch_iban(bic, ids), "consumer_name": "J. de Vries"}
