"""What the sandbox does where the specification is silent, as the assumptions say it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, card


def test_a_method_that_is_not_on_the_order_s_list(sandbox: Sandbox) -> None:
    """A50: the list is for the page."""
    order = sandbox.place(card(), payment_methods=["wallet-qr"])
    assert order["transactions"][0]["payment_method"] == "credit-card"
    assert order["payment_methods"] == ["wallet-qr"]


@pytest.mark.parametrize("customer", [{"country": "ZZ"}, {"birthdate": "2090-01-01"}])
def test_countries_and_birthdates(sandbox: Sandbox, customer: dict[str, str]) -> None:
    """A51: the format decides."""
    assert sandbox.place(card(), customer=customer)["customer"] == customer


@pytest.mark.parametrize("customer", [{"country": "Zed"}, {"birthdate": "2090-13-01"}])
def test_no_countries_and_birthdates(sandbox: Sandbox, customer: dict[str, str]) -> None:
    """A51: and nothing else does."""
    assert sandbox.create(card(), customer=customer).status_code == 400


def scanned(sandbox: Sandbox, **fields: Any) -> tuple[str, dict[str, Any]]:
    """A QR request, and the order of its first scan."""
    body = {"amount": 1000, "description": "Coffee", **fields}
    code = sandbox.post("/v1/bankqr/", body).json()["id"]
    return code, sandbox.post(f"/control/bankqr/{code}/scan/").json()


def test_a_one_off_code_is_used_up_by_a_payment_that_fails(sandbox: Sandbox) -> None:
    """A52: and one that is not can be scanned again."""
    for is_one_off, status in ((True, 409), (False, 201)):
        code, order = scanned(sandbox, one_off=is_one_off)
        sandbox.acted(order, "customer fail")
        assert sandbox.post(f"/control/bankqr/{code}/scan/").status_code == status


def test_how_long_the_payment_after_a_scan_lasts(sandbox: Sandbox) -> None:
    """A53: as long as any of its method; a wallet-qr has thirty minutes."""
    _, order = scanned(sandbox)
    assert order["transactions"][0]["expiration_period"] == "PT60M"
    wallet = sandbox.place({"payment_method": "wallet-qr"})
    assert wallet["transactions"][0]["expiration_period"] == "PT30M"
    sandbox.advance("PT59M")
    assert sandbox.read(order)["status"] == "processing"
    sandbox.advance("PT1M")
    assert sandbox.read(order)["status"] == "expired"


def test_the_scheme_of_an_app(sandbox: Sandbox) -> None:
    """A54: is refused by name."""
    refused = sandbox.create(card(), return_url="myapp://paid")
    (violation,) = refused.json()["error"]["violations"]
    assert (refused.status_code, violation["path"]) == (400, "return_url")


def test_an_unknown_path_without_a_key(sandbox: Sandbox) -> None:
    """A55: with and without one."""
    for auth in (None, (sandbox.key, ""), ("wrong", "")):
        answer = requests.get(f"{sandbox.url}/v1/nothing/", auth=auth, timeout=5)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NotFound")


def test_the_period_of_an_order_beside_a_transaction(sandbox: Sandbox) -> None:
    """A56: the transaction's own decides."""
    order = sandbox.place(card(expiration_period="PT10M"), expiration_period="PT5M")
    assert order["expiration_period"] == "PT5M"
    (due,) = sandbox.get("/control/agenda/").json()["items"]
    assert due["kind"] == "expiry"
    made, ends = (datetime.fromisoformat(at) for at in (order["created"], due["at"]))
    assert ends - made == timedelta(minutes=10)
