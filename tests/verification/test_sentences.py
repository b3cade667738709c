"""Each of these deviations has its own rule and its own sentence."""

from typing import Any

import pytest

from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.samples import UNKNOWN_ID
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


def _respell_periods(x: Exchange) -> None:
    if isinstance(x.data, dict) and x.data.get("expiration_period") == "PT60M":
        x.data["expiration_period"] = "PT1H"


def _return_last_block(x: Exchange) -> None:
    if x.path.endswith("order_line_details&fields[]=amount_details") and isinstance(x.data, dict):
        x.data.pop("order_line_details", None)


def _return_page(x: Exchange) -> None:
    if x.response is not None and x.response.status_code == 404:
        x.response.headers["Content-Type"] = "text/html"
        x.data = "<h1>Not found</h1>"


def _weaken_etags(x: Exchange) -> None:
    if x.response is not None and "ETag" in x.response.headers:
        x.response.headers["ETag"] = f"W/{x.response.headers['ETag']}"


def _drop_header(name: str, path_end: str) -> Alteration:
    def alter(x: Exchange) -> None:
        if x.path.endswith(path_end):
            x.options["headers"].pop(name, None)

    return alter


def _ignore_visit(x: Exchange) -> None:
    """Show an order as new after a visit, until it has another status."""
    for record in (x.data, *x.data["transactions"]) if x.is_order else ():
        if x.data["transactions"] and record.get("status") == "processing":
            record["status"] = "new"


def _complete_early(x: Exchange) -> None:
    """Complete an invoice with its first capture."""
    if "/captures/" in x.path and isinstance(x.data, dict) and x.data.get("status") == "accepted":
        x.data["status"] = "completed"


def _stay_completed(x: Exchange) -> None:
    if "/voids/" in x.path and isinstance(x.data, dict) and x.data.get("status") == "cancelled":
        x.data["status"] = "completed"


def _find_no_order_first(x: Exchange) -> None:
    if UNKNOWN_ID in x.path and x.error.get("type") == "ValidationError":
        x.reply(404, type="NotFound", value="no such order")


def _refund_more_than_captured(x: Exchange) -> None:
    if x.path.endswith("/refunds/") and x.body.get("amount") == 401:
        x.body["amount"] = 400


IGNORE_IF_MATCH = _drop_header("If-Match", "/captures/orderlines/")
AUTHORIZATION = "credit-card authorization, "
VOIDED, BY_LINES = f"{AUTHORIZATION}voided by amount", f"{AUTHORIZATION}captured by lines"
IN_PART = f"{AUTHORIZATION}captured in part, then refunded"


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
        (None, _respell_periods, "order: expiration_period", "SET-20", "'PT1H', not 'PT60M'"),
        (None, _return_last_block, "new invoice-later-b order", "END-06", "order_line_details is missing"),
        (None, _return_page, "calls on an unknown order", "SET-03", "no error report, but text/html"),
        (None, _weaken_etags, "conditions", "SET-32", "the etag is <weak ETag 1 of step 1>"),
        (IGNORE_IF_MATCH, None, BY_LINES, "IFM-02", "stale ETag: 200, not 412 PreconditionFailed"),
        (_drop_header("Idempotency-Key", ""), None, "repeated requests", "SET-71", "id is <id 1 of step 3"),
        (None, _ignore_visit, "wallet-web given up", "STA-07", "visited: status is 'new'"),
        (None, _complete_early, "new invoice-later-b order", "SET-40", "'completed', not 'accepted'"),
        (None, _stay_completed, VOIDED, "SET-43", "status is 'completed', not 'cancelled'"),
        (None, _find_no_order_first, "calls on an unknown order", "SET-08", "404 NotFound, not 400"),
        (_refund_more_than_captured, None, IN_PART, "SET-49", "refund of 401 cents"),
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
