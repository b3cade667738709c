"""The rules that name differences: of calls, of fields, of statuses, and those that no client can check."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.web.answers.order_tables import FIELD_RULES, RECORD_RULES
from payment_sandbox.web.answers.qr_tables import QR
from payment_sandbox_verify.steps import CODES_PATH

RULES_BY_CALL: Final = (  # the first match counts
    ("POST", r"/v1/orders/?", "END-02"),
    ("GET", r"/v1/orders/[^/]+/?", "END-03"),
    ("DELETE", r"/v1/orders/[^/]+/?", "END-07"),
    ("PUT", r"/v1/orders/[^/]+/?", "SET-51"),
    ("POST", r".*/refunds/?", "END-10"),
    ("POST", r".*/captures/?", "END-11"),
    ("POST", r".*/captures/orderlines/?", "END-13"),
    ("POST", r".*/captures/amount/?", "END-14"),
    ("POST", r".*/voids/orderlines/?", "END-15"),
    ("POST", r".*/voids/amount/?", "END-16"),
    ("GET", r".*/issuers/?", "END-17"),
    ("POST", r"/v1/bankqr/?", "END-18"),
    ("GET", r".*/currencies/?", "SET-54"),
)
OTHER_CALL_RULE: Final = "VER-02"
DETAILS: Final = "transactions.payment_method_details"
DETAIL_RULES: Final = {
    "card_expiry": "CARD-15",
    "cardholder_name": "CARD-16",
    "liability_shift": "CARD-17",
    "truncated_pan": "CARD-18",
    "one_click_type": "CARD-19",
    "recurring_type": "CARD-19",
    "vault_token": "CARD-20",
    "first_authorised_transaction_id": "CARD-21",
    "issuer_id": "IDR-03",
    "issuer_authentication_url": "IDR-05",
    "status": "IDR-05",
    "transaction_id": "IDR-05",
    "reference": "SEPA-06",
}
SENT_DETAIL_RULES: Final = {
    field.name: field.rule for method in ALL_METHODS for field in method.capabilities.details
}
PARTY_RULES: Final = {  # details of the customer's and of the merchant's account, by prefix
    "creditor_": {"bank-transfer": "SEPA-08"},
    "consumer_": {"bank-transfer": "SEPA-07", "bank-redirect-nl": "IDR-04"},
}
REFUND_RULE: Final = "SET-48"
ALSO_SHOWN: Final = {  # rules that say the same in another section, by the rule that names a difference
    "ORD-03": "LIM-01",
    "SET-11": "ORD-05 LIM-02",
    "SET-25": "CUS-13",
    "SET-30": "LINE-07",
    "STA-01": "ORD-23",
    "TRQ-02": "TX-09",
    "TRQ-03": "TX-08 TRQ-04 SET-20",
    "TRQ-07": "TX-11",
    "TX-01": "ORD-17",
    "TX-15": "STA-18",
    "EVT-03": "TX-16 TEV-01",
    "CAP-04": "ERR-03",
    "CAP-06": "ERR-05",
    "CAP-08": "ERR-04",
}
RULES_BY_OTHER_RECORD: Final = {  # by the rule of the call
    "END-17": {"id": "ISS-01", "list_type": "ISS-02", "name": "ISS-02"},
    "END-18": {**QR.all_rules(), "amount": "QR-01"},
    "SET-54": {},
}
TRANSACTION_CALLS: Final = ("END-11", "END-13", "END-14", "END-15", "END-16")  # these answer the transaction
SPELLING_RULE: Final = "SET-19"  # of times

INITIAL_RULES: Final = {
    "": "STA-03 GEN-01 END-02",
    "bank-transfer": "STA-10 SEPA-01 SEPA-03 SEPA-05",
    "pay-later-a": "SET-37 FLOW-12 PLA-01",
    "invoice-later-b": "STA-17 FLOW-13 INV-01 INV-02 INV-06",
    "bank-redirect-be": "BRB-01 SET-61",
    "wallet-apple": "WAPP-01 WAPP-02 SET-61",
    "wallet-google": "GPAY-01 STA-02",
    "credit-card": "STA-02 CARD-01 GEN-02",
    "other": "STA-02 GEN-02",
}
"""The rules of a new order by its method; the first is that of its status."""
VISIT_RULES: Final = {
    "": "SET-36 GEN-06",
    "credit-card": "STA-04 SET-36 GEN-06",
    "bank-redirect-nl": "STA-05 SET-36 GEN-06",
    "wallet-qr": "STA-06 SET-36 GEN-06",
    "wallet-web": "STA-07 SET-36 GEN-06",
}
PAID_RULES: Final = {
    "credit-card": "CARD-06 GEN-05",
    "bank-redirect-nl": "IDR-02 GEN-05",
    "bank-redirect-de": "BRD-01 GEN-05",
    "wallet-qr": "WQR-02 GEN-05",
    "wallet-web": "WWEB-01 GEN-05",
    "wallet-google": "GPAY-05 GEN-05",
    "pay-later-a": "SET-38 PLA-02 PLA-05",
}
PERIOD_RULES: Final = {
    "credit-card": "LIM-12",
    "bank-redirect-nl": "LIM-13",
    "bank-transfer": "LIM-14",
    "bank-redirect-de": "SET-66",
    "invoice-later-b": "SET-67",
    "pay-later-a": "SET-68",
}
OTHER_PERIOD_RULE: Final = "SET-65"
METHOD_RULES: Final = {  # what a method supports, by the method and the kind of call
    ("pay-later-a", "captures"): "PLA-03",
    ("pay-later-a", "voids"): "PLA-04",
    ("invoice-later-b", "captures"): "INV-03",
    ("invoice-later-b", "refunds"): "INV-04 REF-01",
    ("invoice-later-b", ""): "INV-05 REF-02",
    ("credit-card", "captures"): "CARD-03",
}
STATUS_RULES: Final = {
    401: "SET-02",
    404: "SET-08",
    405: "SET-08",
    412: "SET-33",
    413: "SET-09",
    415: "SET-09",
}
OTHER_STATUS_RULE: Final = "SET-08"
GENERAL_RULES: Final = {"IFM-01": "SET-33", "IFM-02": "SET-33"}
"""Rules that say the same as a general one for one call: if the general one differs, they say nothing new."""
REFUSAL_RULES: Final = ("SET-03", "SET-04", "SET-05", "END-01")
SUCCESS_RULES: Final = ("SET-06", "SET-07", "END-01", "VER-01")
ETAG_RULE: Final = "SET-32"

CONTROL_API_ONLY: Final = "concerns the sandbox's control API, not the service"
CONTROL_PREFIXES: Final = ("CTL-", "SCN-")
REASONS_UNCHECKED: Final[Mapping[str, str]] = {
    "needs a shop that is down, or the shop's address in the project's settings": "HOOK-03 SET-56 SET-59",
    "needs a bank transfer that arrives, or fails to arrive": "HOOK-13 SEPA-02 SEPA-04 SET-62",
    "needs a customer whom the screening declines or defers": (
        "ERR-01 ERR-02 ORD-25 STA-13 STA-14 STA-15 STA-16"
    ),
    "needs a person to scan a code": "FLOW-03 ORD-26 ORD-27 QR-13 QR-14 QR-17 QR-27 WQR-01",
    "needs a wallet with real cards": "GPAY-02 GPAY-03 GPAY-04 GPAY-05",
    "needs a card of each kind, typed by a person": "CARD-02",
    "needs an account with different permissions": "CARD-09 FLOW-10 FLOW-11 SET-13",
    "needs a different sandbox setting": "CUS-14 SET-23 SET-39 SET-60 SET-63",
    "needs days or years to pass": "LIM-08 LIM-09 SET-22 SET-45 SET-69",
    "concerns the sandbox's ledger": "SET-70",
    "needs half an hour: try --patient, with --webhook-url": (
        "HOOK-09 HOOK-10 HOOK-11 HOOK-12 LIM-06 SET-57 SET-58"
    ),
}
INDEX: Final = re.compile(r"\[-?\d+\]")


@cache
def rule_of_call(method: str, path: str) -> str:
    """Return the rule for a call."""
    plain = path.partition("?")[0]
    for known, pattern, rule in RULES_BY_CALL:
        if method == known and re.fullmatch(pattern, plain):
            return rule
    return OTHER_CALL_RULE


def initial_rules(method: object) -> list[str]:
    """Return the rules of a new order with a method; the first is that of its status."""
    return INITIAL_RULES.get(method if isinstance(method, str) else "", INITIAL_RULES["other"]).split()


def rule_of_path(call_path: str, path: str) -> str:
    """Return the rule of a field in a request: that of its own row, or of the nearest row above."""
    return _nearest(QR.rules() if call_path == CODES_PATH else FIELD_RULES, path) or OTHER_STATUS_RULE


def rule_of_field(method: str, call_path: str, path: str, record: object) -> str:
    """Return the rule of a field in an answer; if no row has one, return the rule of the call."""
    call = rule_of_call(method, call_path)
    plain = INDEX.sub("", path).strip(".")
    if isinstance(record, dict) and record.get("refund_of_order_id") and "." not in plain:
        return REFUND_RULE
    if call in RULES_BY_OTHER_RECORD:
        return _nearest(RULES_BY_OTHER_RECORD[call], plain) or call
    if call in TRANSACTION_CALLS:
        plain = f"transactions.{plain}"
    if plain.startswith(f"{DETAILS}."):
        return _rule_of_detail(plain.rpartition(".")[2], record)
    return _nearest(RECORD_RULES, plain) or call


def _rule_of_detail(name: str, record: object) -> str:
    for prefix, rules in PARTY_RULES.items():
        if name.startswith(prefix):
            method = next((method for method in rules if method in str(record)), "")
            return rules.get(method, "TX-11")
    return DETAIL_RULES.get(name) or SENT_DETAIL_RULES.get(name, "TX-11")


def _nearest(rules: Mapping[str, str], path: str) -> str | None:
    name = INDEX.sub("", path)
    while name and name not in rules:
        name = name.rpartition(".")[0]
    return rules.get(name)


def unchecked_rules(known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the rules that no client can check, each with the reason."""
    reasons = {rule: reason for reason, rules in REASONS_UNCHECKED.items() for rule in rules.split()}
    for rule in known:
        if rule.startswith(CONTROL_PREFIXES):
            yield rule, CONTROL_API_ONLY
        elif rule in reasons:
            yield rule, reasons[rule]
