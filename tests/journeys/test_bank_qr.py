"""Bank QR: requests, machine-readable images, and scans that create orders."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.support.codes import read_code
from tests.support.driver import Sandbox, refused, violations


def create_request(sandbox: Sandbox, **fields: Any) -> dict[str, Any]:
    """Create a QR request."""
    answer = sandbox.post("/v1/bankqr/", {"amount": 1295, **fields})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def scan(sandbox: Sandbox, request: dict[str, Any], **fields: Any) -> requests.Response:
    """Scan the code of a request as a payer."""
    return sandbox.post(f"/control/bankqr/{request['id']}/scan/", fields)


@pytest.mark.rule(
    "END-18", "QR-01", "QR-03", "QR-10", "QR-11", "QR-12", "QR-15", "QR-16", "QR-18", "QR-19", "QR-21", "QR-22",
    "QR-23", "QR-24", "QR-25", "LIM-03", "LIM-04",
)  # fmt: skip
def test_a_request_is_answered_with_its_defaults(sandbox: Sandbox) -> None:
    """The amount is sent in cents and returned in decimals; defaults are one-off, 200 pixels, one year."""
    sent = {
        "description": "Coffee",
        "merchant_order_id": "table-4",
        "return_url": "https://shop.example/thanks",
        "webhook_url": "https://shop.example/webhook",
    }
    request = create_request(sandbox, **sent)
    expected = {
        **sent,
        "amount": "12.95",
        "amount_changeable": False,
        "currency": "EUR",
        "one_off": True,
        "size": 200,
        "expiration": "2027-03-01 12:00",
        "merchant_id": sandbox.project["merchant_id"],
        "project_id": sandbox.project["project_id"],
    }
    assert {key: request[key] for key in expected} == expected
    assert isinstance(request["id"], str)
    assert isinstance(request["merchant_sub_id"], int)
    assert isinstance(request["beneficiary"], str)


@pytest.mark.rule("QR-01")
@pytest.mark.parametrize(
    ("cents", "euros"), [(5, "0.05"), (100, "1.00"), (1205, "12.05"), (123456, "1234.56")]
)
def test_an_amount_is_shown_in_euros_with_two_decimals(sandbox: Sandbox, cents: int, euros: str) -> None:
    """An amount in cents is returned in euros with two decimals."""
    assert create_request(sandbox, amount=cents)["amount"] == euros


@pytest.mark.rule("LIM-04", "QR-15")
def test_a_default_year_is_a_calendar_year(project: Callable[..., Sandbox]) -> None:
    """The default expiration is the same date a year later, also across a leap day."""
    request = create_request(project(clock="frozen@2028-02-01T12:00:00Z"))
    assert request["expiration"] == "2029-02-01 12:00"


@pytest.mark.rule(
    "QR-02", "QR-03", "QR-06", "QR-07", "QR-08", "QR-09", "QR-10", "QR-12", "QR-16", "QR-20", "QR-21", "QR-22",
    "LIM-03", "LIM-05", "A25",
)  # fmt: skip
@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"amount": ...}, {"amount"}),
        ({"amount": 0}, {"amount"}),
        ({"amount_min": 1, "amount_max": 2000}, {"amount_min", "amount_max"}),
        ({"amount_changeable": True, "amount_max": 1295}, {"amount_max"}),
        ({"amount_changeable": True, "amount_max": 0}, {"amount_max"}),
        ({"amount_changeable": True, "amount_min": 1295}, {"amount_min"}),
        ({"amount_changeable": True, "amount_min": 0}, {"amount_min"}),
        ({"amount": ..., "amount_changeable": True, "amount_min": 9, "amount_max": 8}, {"amount_min"}),
        ({"size": 99}, {"size"}),
        ({"size": 2001}, {"size"}),
        ({"size": "200"}, {"size"}),
        (
            {"one_off": "no", "amount_changeable": 1, "currency": "USD"},
            {"one_off", "amount_changeable", "currency"},
        ),
        ({"expiration": "2026-03-01T11:59:00Z"}, {"expiration"}),
        ({"expiration": "soon"}, {"expiration"}),
        ({"webhook_url": "javascript:1", "return_url": "x"}, {"webhook_url", "return_url"}),
    ],
)
def test_a_wrong_request_names_what_is_wrong(
    sandbox: Sandbox, fields: dict[str, Any], paths: set[str]
) -> None:
    """All violations are reported together."""
    body = {key: value for key, value in {"amount": 1295, **fields}.items() if value is not ...}
    assert set(violations(sandbox.post("/v1/bankqr/", body))) == paths


@pytest.mark.rule("QR-20", "QR-26", "LIM-03", "A24")
@pytest.mark.parametrize("size", [100, 101, 200, 333, 777, 2000])
def test_the_image_has_the_asked_size_and_can_be_read(sandbox: Sandbox, size: int) -> None:
    """The PNG has exactly the requested size, and its code contains the address of the request's page."""
    request = create_request(sandbox, size=size)
    answer = requests.get(request["qr_url"])
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", answer.content[16:24]) == (size, size)
    assert read_code(answer.content) == request["qr_url"].removesuffix(".png") + "/"


def test_an_image_needs_project_and_request(sandbox: Sandbox) -> None:
    """An unknown project or an unknown request gets 404."""
    request = create_request(sandbox)
    address = request["qr_url"]
    for wrong in (
        address.replace(sandbox.project["project_id"], "nobody"),
        address.replace(request["id"], "nothing"),
    ):
        assert requests.get(wrong).status_code == 404


@pytest.mark.rule("QR-05", "QR-22", "ORD-26", "ORD-27", "SET-26")
def test_a_scan_makes_an_order_on_its_way(sandbox: Sandbox) -> None:
    """A scan creates a processing order with one bank-redirect transaction and the flag from-bankqr."""
    request = create_request(sandbox, webhook_url="https://shop.example/qr", description="Coffee")
    answer = scan(sandbox, request, issuer_id="DUINNL2U")
    assert answer.status_code == 201
    order = answer.json()
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("processing", "processing")
    assert (order["amount"], order["description"]) == (1295, "Coffee")
    assert transaction["payment_method"] == "bank-redirect-nl"
    assert transaction["payment_method_details"]["issuer_id"] == "DUINNL2U"
    assert "from-bankqr" in order["flags"]
    assert order["extra"]["bankqr_id"] == request["id"]
    assert order["webhook_url"] == "https://shop.example/qr"
    assert sandbox.pay(order)["status"] == "completed"


@pytest.mark.rule("QR-05")
def test_a_fixed_amount_stays(sandbox: Sandbox) -> None:
    """Another amount is refused, and the code can still be scanned."""
    request = create_request(sandbox)
    for amount in (1, 1294, 1296, 9999):
        refused(scan(sandbox, request, amount=amount), 409, "QrAmountRefused")
    assert scan(sandbox, request, amount=1295).status_code == 201


@pytest.mark.rule("QR-03", "QR-04", "LIM-05", "A23")
def test_a_changeable_amount_keeps_its_bounds(sandbox: Sandbox) -> None:
    """The bounds are inclusive; a request without an amount needs one from the payer."""
    request = create_request(
        sandbox, amount=1000, amount_changeable=True, amount_min=500, amount_max=2000, one_off=False
    )
    assert request["amount_changeable"] is True
    for amount in (500, 2000, 777):
        assert scan(sandbox, request, amount=amount).json()["amount"] == amount
    assert scan(sandbox, request).json()["amount"] == 1000
    for amount in (499, 2001):
        refused(scan(sandbox, request, amount=amount), 409, "QrAmountRefused")
    free = sandbox.post("/v1/bankqr/", {"amount_changeable": True, "amount": 0}).json()
    assert "amount" not in free
    refused(scan(sandbox, free), 409, "QrAmountRefused")
    assert scan(sandbox, free, amount=1).status_code == 201


@pytest.mark.rule("QR-13", "QR-14")
def test_a_one_off_request_is_scanned_once(sandbox: Sandbox) -> None:
    """The second scan of a one-off request is refused; each scan of another request creates an order."""
    request, reusable = create_request(sandbox), create_request(sandbox, one_off=False)
    assert scan(sandbox, request).status_code == 201
    refused(scan(sandbox, request), 409, "QrUsed")
    assert len({scan(sandbox, reusable).json()["id"] for _ in range(3)}) == 3


@pytest.mark.rule("QR-17", "QR-16")
@pytest.mark.parametrize(
    "expiration", ["2026-03-01T13:00:00Z", "2026-03-01T14:00:00+01:00", "2026-03-01 13:00"]
)
def test_a_request_cannot_be_scanned_after_its_expiration(sandbox: Sandbox, expiration: str) -> None:
    """The expiration is returned in UTC, to the minute; a scan at or after it is refused."""
    request = create_request(sandbox, expiration=expiration, one_off=False)
    assert request["expiration"] == "2026-03-01 13:00"
    sandbox.advance("PT59M59S")
    assert scan(sandbox, request).status_code == 201
    sandbox.advance("PT1S")
    refused(scan(sandbox, request), 409, "QrExpired")


def test_a_scan_is_checked(sandbox: Sandbox) -> None:
    """An unknown bank, an unknown request and a wrong amount are refused."""
    request = create_request(sandbox)
    assert set(violations(scan(sandbox, request, issuer_id="NOBANK"))) == {"issuer_id"}
    assert set(violations(scan(sandbox, request, amount="1", colour="red"))) == {"amount", "colour"}
    refused(sandbox.post("/control/bankqr/nothing/scan/"), 404, "NotFound")
    sandbox.settings(payment_methods=["credit-card"])
    assert scan(sandbox, request).status_code == 400
