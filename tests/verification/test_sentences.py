"""Each of these deviations has its own rule and its own sentence."""

from typing import Any

import pytest

from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.verifying import Verdict, reference_sandbox, verify
from tests.verification.exchanges import Alteration, AlteringSession, Exchange


def _details(x: Exchange) -> dict[str, Any]:
    """Return the details of the first transaction in a request."""
    transactions = x.body.get("transactions") if isinstance(x.body, dict) else None
    first = transactions[0] if isinstance(transactions, list) and transactions else {}
    details = first.get("payment_method_details") if isinstance(first, dict) else None
    return details if isinstance(details, dict) else {}


def _accept_upper_case_mode(x: Exchange) -> None:
    for each in x.body.get("transactions", []):
        if isinstance(each, dict) and each.get("capture_mode") == "MANUAL":
            each["capture_mode"] = "manual"


def _accept_empty_code(x: Exchange) -> None:
    if _details(x).get("cvc") == "":
        _details(x)["cvc"] = "123"


def _return_old_etag() -> Alteration:
    """Return an alteration by which a PUT answers the ETag from before the change."""
    etags: dict[str, str] = {}

    def alter(x: Exchange) -> None:
        if x.response is None or not x.is_order:
            return
        if x.method == "PUT" and x.data["id"] in etags:
            x.response.headers["ETag"] = etags[x.data["id"]]
        else:
            etags[x.data["id"]] = x.response.headers.get("ETag", "")

    return alter


def _refuse_last_bank() -> Alteration:
    banks: list[str] = []

    def alter(x: Exchange) -> None:
        if x.path.endswith("/issuers/"):
            banks[:] = [each["id"] for each in x.data]
        elif banks and _details(x).get("issuer_id") == banks[-1]:
            x.reply(400, type="ValidationError", value="no such bank")

    return alter


def _name_own_transaction(x: Exchange) -> None:
    for each in x.data["transactions"] if x.is_order else ():
        details = each.get("payment_method_details") or {}
        if details.get("first_authorised_transaction_id"):
            details["first_authorised_transaction_id"] = each["id"]


def _refuse_null_customer(x: Exchange) -> None:
    customer = x.body.get("customer") if isinstance(x.body, dict) else None
    if isinstance(customer, dict) and None in customer.values():
        x.reply(400, type="ValidationError", value="customer has null values")


def _refuse_other_customer_keys(x: Exchange) -> None:
    customer = x.body.get("customer") if isinstance(x.body, dict) else None
    if isinstance(customer, dict) and "shoe_size" in customer:
        x.reply(400, type="ValidationError", value="customer has unknown keys")


def _refuse_other_amount(x: Exchange) -> None:
    if _details(x).get("one_click_type") == "one-click" and x.body["amount"] != 1000:
        x.reply(400, type="ValidationError", value="amount differs from the first payment")


def _add_payment_url(x: Exchange) -> None:
    for each in x.data["transactions"] if x.is_order else ():
        if (each.get("payment_method_details") or {}).get("one_click_type") == "one-click":
            each["payment_url"] = "shop.invalid/pay/"


@pytest.mark.parametrize(
    ("before", "after", "scene", "rule", "words"),
    [
        (_accept_upper_case_mode, None, "transaction: capture_mode", "TRQ-06", "of 'MANUAL': 201, not 400"),
        (None, _return_old_etag(), "conditions", "SET-32", "a change: the etag is <ETag 1 of step"),
        (_accept_empty_code, None, "one-click", "CARD-14", "{'cvc': ''}: 201, not 400"),
        (None, _refuse_last_bank(), "banks", "IDR-06", "a bank of the list: 400 ValidationError, not 201"),
        (None, _name_own_transaction, "one-click", "CARD-21", "first_authorised_transaction_id is <id"),
        (None, _refuse_null_customer, "unknown keys", "SET-15", "null values: 400 ValidationError, not 201"),
        (None, _refuse_other_customer_keys, "unknown keys", "SET-16", "additional keys: 400 ValidationError"),
        (None, _refuse_other_amount, "one-click", "FLOW-05", "one-click of 1750 cents"),
        (None, _add_payment_url, "one-click", "TX-13", "payment_url is present, but not in the sandbox"),
    ],
    ids=lambda each: each if isinstance(each, str) and each.isupper() else None,
)
def test_a_deviation_has_its_own_rule_and_sentence(
    before: Alteration | None, after: Alteration | None, scene: str, rule: str, words: str
) -> None:
    """Each deviation is named by one rule, in words that say which call differs in what."""
    scenes = [each for each in all_scenes() if each.name == scene]
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(before, after)
        reports = verify(reference, {}, live=False, scenes=scenes).reports
    differing = {known: each.reason for known, each in reports.items() if each.verdict is Verdict.DIFFERS}
    assert list(differing) == [rule]
    assert words in differing[rule]
