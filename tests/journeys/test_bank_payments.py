"""Bank redirects and transfers: issuers, and credits that arrive late or with a wrong amount."""

import re

import pytest

from tests.support.driver import Sandbox, by, refused, violations


@pytest.mark.rule("IDR-01", "IDR-06")
def test_a_bank_redirect_needs_an_issuer_of_the_list(sandbox: Sandbox) -> None:
    """A missing and an unknown issuer have different messages; the refusal lists the issuers."""
    path = "transactions[0].payment_method_details.issuer_id"
    without = sandbox.create({"payment_method": "bank-redirect-nl"})
    assert "required" in violations(without)[path]
    unknown = sandbox.create(by("bank-redirect-nl", payment_method_details={"issuer_id": "NOSUCHBANK"}))
    assert "issuers list" in violations(unknown)[path]
    issuers = [issuer["id"] for issuer in sandbox.get("/v1/bank-redirect-nl/issuers/").json()]
    assert unknown.json()["error"]["violations"][0]["allowed"] == issuers


@pytest.mark.rule("END-17", "ISS-01", "ISS-02")
def test_issuers_are_a_bare_array(sandbox: Sandbox) -> None:
    """Each issuer has a BIC, a name and the type of its list."""
    issuers = sandbox.get("/v1/bank-redirect-nl/issuers/").json()
    assert isinstance(issuers, list)
    for issuer in issuers:
        assert re.fullmatch(r"[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?", issuer["id"])
        assert issuer["name"]
        assert issuer["list_type"]


@pytest.mark.rule("IDR-03", "IDR-04", "IDR-05")
def test_a_bank_redirect_shows_bank_and_payer(sandbox: Sandbox) -> None:
    """Before payment the details describe the bank, after it the payer, too."""
    order = sandbox.place(by("bank-redirect-nl", payment_method_details={"issuer_id": "POLDNL2R"}))
    before = order["transactions"][0]["payment_method_details"]
    assert before["issuer_id"] == "POLDNL2R"
    assert before["issuer_authentication_url"].startswith("http://")
    assert before["status"] == "Open"
    assert re.fullmatch(r"\d{16}", before["transaction_id"])
    after = sandbox.pay(order)["transactions"][0]["payment_method_details"]
    assert after["status"] == "Success"
    assert (after["issuer_id"], after["consumer_bic"]) == ("POLDNL2R", "POLDNL2R")
    assert after["consumer_city"] == "Utrecht"
    assert after["consumer_name"] is None or isinstance(after["consumer_name"], str)
    assert iban_remainder(after["consumer_iban"]) == 1


def iban_remainder(iban: str) -> int:
    """Return the remainder of an IBAN modulo 97, which is 1 for a valid IBAN (ISO 13616)."""
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97


@pytest.mark.rule("SEPA-01", "SEPA-03", "SEPA-05", "SEPA-06", "SEPA-08", "STA-10")
def test_a_transfer_is_created_pending_with_where_to_pay_to(sandbox: Sandbox) -> None:
    """A transfer needs no details; it returns a reference and the creditor."""
    order = sandbox.place(by("bank-transfer"))
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("processing", "pending")
    shown = transaction["payment_method_details"]
    assert isinstance(shown["reference"], str)
    assert shown["reference"]
    for key in ("bic", "account_holder_name", "account_holder_city", "account_holder_country"):
        assert shown[f"creditor_{key}"]
    assert iban_remainder(shown["creditor_iban"]) == 1


@pytest.mark.rule("SEPA-04", "SET-62")
def test_test_mode_never_completes_a_transfer(sandbox: Sandbox) -> None:
    """A credit is refused, and the order stays pending until it expires."""
    order = sandbox.place(by("bank-transfer"))
    answer = sandbox.act(order, "bank credit")
    refused(answer, 409, "NotCompletableInTestMode")
    assert "set the project's mode to live" in answer.json()["error"]["value"]
    sandbox.advance("P29D")
    assert sandbox.status(order) == ("processing", "pending")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("expired", "expired")
    refused(sandbox.act(order, "bank credit"), 409, "NotCompletableInTestMode")


@pytest.mark.rule("SET-63", "SEPA-07", "A29")
def test_a_credit_completes_a_live_transfer(live: Sandbox) -> None:
    """After the credit, the details describe the payer."""
    order = live.place(by("bank-transfer"))
    paid = live.acted(order, "bank credit")
    shown = paid["transactions"][0]["payment_method_details"]
    assert paid["status"] == "completed"
    assert shown["consumer_name"]
    assert shown["consumer_bic"]
    assert iban_remainder(shown["consumer_iban"]) == 1


@pytest.mark.rule("A29")
def test_a_late_credit_completes_an_expired_transfer(live: Sandbox) -> None:
    """A credit that arrives after expiry completes the order."""
    order = live.place(by("bank-transfer"))
    live.advance("P31D")
    assert live.status(order) == ("expired", "expired")
    live.acted(order, "bank credit")
    assert live.status(order) == ("completed", "completed")
