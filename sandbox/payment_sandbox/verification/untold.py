"""The rules that no caller can show from outside, and why."""

from collections.abc import Iterator, Mapping
from typing import Final

from payment_sandbox.fidelity.ledger import Rule

OWN: Final = "it is about the control API of the sandbox, not about the service"
WHY: Final[Mapping[str, str]] = {
    "needs a shop that is out of order for minutes, or the address in the project's settings": (
        "HOOK-03 HOOK-09 HOOK-10 HOOK-11 HOOK-12 LIM-06 SET-56 SET-57 SET-58 SET-59"
    ),
    "needs a bank that sends money, or does not": "HOOK-13 SEPA-02 SEPA-04 SET-62",
    "needs a customer whom the screening declines, or who has to wait": (
        "ERR-01 ERR-02 ORD-25 STA-13 STA-14 STA-15 STA-16"
    ),
    "needs somebody who scans a code": "FLOW-03 ORD-26 ORD-27 QR-13 QR-17 QR-27 WQR-01",
    "needs a wallet with real cards": "GPAY-01 GPAY-02 GPAY-03 GPAY-04 GPAY-05",
    "needs a card of each kind, typed by a person": "CARD-02 CARD-07 CARD-08 GEN-02 SET-18 SET-28",
    "needs an account with other rights": "CARD-09 FLOW-10 FLOW-11 SET-13",
    "needs another setting of the sandbox": "SET-23 SET-39 SET-60 SET-63",
    "takes days or years": "LIM-08 LIM-09 SET-22 SET-45 SET-69",
    "is about the sandbox's ledger": "SET-70",
}
PREFIXES: Final = ("CTL-", "SCN-")


def untold(rules: list[Rule]) -> Iterator[tuple[str, str]]:
    """The ids of the rules that no probe asks about, each with its reason."""
    reasons = {rule: why for why, found in WHY.items() for rule in found.split()}
    for rule in rules:
        if rule.id.startswith(PREFIXES):
            yield rule.id, OWN
        elif rule.id in reasons:
            yield rule.id, reasons[rule.id]
