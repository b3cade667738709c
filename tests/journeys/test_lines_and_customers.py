"""The fields of order lines and customers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import LINES, LINES_TOTAL, Sandbox, card, violations


@pytest.mark.rule("SET-31", "LINE-08", "A17")
def test_lines_that_do_not_add_up_are_accepted_with_a_warning(sandbox: Sandbox) -> None:
    """The header of a new or changed order names both sums; lines that add up give no warning."""
    for amount in (1999, 2001):
        odd = sandbox.create(amount=amount, order_lines=LINES)
        assert odd.status_code == 201
        warning = f"order_lines add up to 2000 cents and amount is {amount}"
        assert odd.headers["Sandbox-Warnings"] == warning
        path = f"/v1/orders/{sandbox.place(amount=2000, order_lines=LINES)['id']}/"
        for change in ({"amount": amount}, {"amount": amount, "order_lines": LINES}):
            assert sandbox.put(path, change).headers["Sandbox-Warnings"] == warning
        assert "Sandbox-Warnings" not in sandbox.put(path, {"description": "x"}).headers
        lines_of_one = sandbox.put(path, {"order_lines": LINES[:1]}).headers["Sandbox-Warnings"]
        assert lines_of_one.endswith(f"amount is {amount}")
        assert "Sandbox-Warnings" not in sandbox.put(path, {"amount": 2000, "order_lines": LINES}).headers
    assert "Sandbox-Warnings" not in sandbox.create(amount=2000, order_lines=LINES).headers


@pytest.mark.rule("LINE-01", "LINE-02", "LINE-03", "LINE-04", "LINE-05", "LINE-06", "LINE-07", "SET-30")
def test_every_field_of_a_line_has_its_form(sandbox: Sandbox) -> None:
    """The path of each violation contains the index of the line."""
    wrong = {
        "type": "magic",
        "amount": 9.5,
        "currency": "USD",
        "merchant_order_line_id": 7,
        "name": False,
        "quantity": 0,
        "vat_percentage": 10001,
    }
    answer = sandbox.create(order_lines=[LINES[0], wrong, "socks"])
    assert set(violations(answer)) == {f"order_lines[1].{key}" for key in wrong} | {"order_lines[2]"}
    assert sandbox.place(amount=LINES_TOTAL, order_lines=LINES)["order_lines"] == LINES


@pytest.mark.rule("LINE-01", "A18")
@pytest.mark.parametrize(
    "kind",
    [
        "physical",
        "discount",
        "shipping_fee",
        "sales_tax",
        "digital",
        "gift_card",
        "store_credit",
        "surcharge",
    ],
)
def test_all_eight_line_types_are_taken(sandbox: Sandbox, kind: str) -> None:
    """Only discounts, gift cards, store credits and physical lines may be negative."""
    line = {**LINES[0], "type": kind}
    assert sandbox.place(amount=1500, order_lines=[line])["order_lines"][0]["type"] == kind
    answer = sandbox.create(amount=1500, order_lines=[{**line, "amount": -500}])
    assert (answer.status_code == 201) == (kind in ("discount", "gift_card", "physical", "store_credit"))


CUSTOMER_FULL: dict[str, Any] = {
    "first_name": "Jan",
    "last_name": "de Vries",
    "gender": "male",
    "birthdate": "1980-02-29",
    "email_address": "jan@example.com",
    "phone_numbers": ["+31612345678"],
    "address": "Kade 1\n1011 AB Amsterdam",
    "address_type": "customer",
    "additional_addresses": [{"address": "Steeg 2", "address_type": "billing", "country": "BE"}],
    "country": "NL",
    "ip_address": "10.0.0.1",
    "locale": "nl",
    "postal_code": "1011 AB",
    "housenumber": 1,
    "merchant_customer_id": "c-9",
    "user_agent": "Mozilla/5.0",
    "forwarded_ip": "10.0.0.2",
}


@pytest.mark.rule(
    "CUS-01", "CUS-02", "CUS-03", "CUS-04", "CUS-05", "CUS-06", "CUS-07", "CUS-08", "CUS-09", "CUS-10", "CUS-11",
    "SET-16", "SET-25",
)  # fmt: skip
def test_a_customer_is_echoed_in_full(sandbox: Sandbox) -> None:
    """All documented keys and the additional ones are accepted; none is reported as ignored."""
    answer = sandbox.create(customer=CUSTOMER_FULL)
    assert answer.json()["customer"] == CUSTOMER_FULL
    assert "Sandbox-Ignored-Fields" not in answer.headers


@pytest.mark.rule("CUS-02", "CUS-07", "A06")
@pytest.mark.parametrize(
    ("gender", "address_type"),
    [("male", "customer"), ("female", "billing"), ("prefers not to say", "summer house")],
)
def test_both_documented_words_are_taken(sandbox: Sandbox, gender: str, address_type: str) -> None:
    """Both documented values of gender and address type are accepted, and any other text."""
    customer = {"gender": gender, "address_type": address_type}
    assert sandbox.place(customer=customer)["customer"] == customer


@pytest.mark.rule(
    "CUS-01", "CUS-02", "CUS-03", "CUS-04", "CUS-05", "CUS-06", "CUS-07", "CUS-08", "CUS-09", "CUS-10", "CUS-11"
)  # fmt: skip
@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("first_name", 7, "first_name"),
        ("last_name", 7, "last_name"),
        ("gender", 1, "gender"),
        ("email_address", 7, "email_address"),
        ("address", 7, "address"),
        ("address_type", 7, "address_type"),
        ("ip_address", 7, "ip_address"),
        ("birthdate", "29-02-1980", "birthdate"),
        ("birthdate", "1981-02-29", "birthdate"),
        ("birthdate", "19800229", "birthdate"),
        ("phone_numbers", "+31612345678", "phone_numbers"),
        ("phone_numbers", ["+31612345678", 7], "phone_numbers[1]"),
        ("additional_addresses", [{"country": "Belgium"}], "additional_addresses[0].country"),
        ("country", "NLD", "country"),
        ("country", "N\n", "country"),
        ("locale", "fr", "locale"),
        ("locale", "en-gb", "locale"),
        ("email_address", [], "email_address"),
    ],
)
def test_a_wrong_customer_field_is_named(sandbox: Sandbox, field: str, value: Any, path: str) -> None:
    """The path of the violation points into the customer."""
    assert list(violations(sandbox.create(customer={field: value}))) == [f"customer.{path}"]


@pytest.mark.rule("SET-15")
def test_nulls_in_a_customer_are_absent(sandbox: Sandbox) -> None:
    """Keys and items with null are dropped: shop plugins send null for unknown values."""
    order = sandbox.place(
        customer={
            "country": "NL",
            "gender": None,
            "phone_numbers": [None, "+316"],
            "additional_addresses": [None, {"country": None, "address": "A"}],
        }
    )
    assert order["customer"] == {
        "country": "NL",
        "phone_numbers": ["+316"],
        "additional_addresses": [{"address": "A"}],
    }


@pytest.mark.rule("CUS-13", "SET-25")
def test_reduced_customer_answers_country_and_address_only(project: Callable[..., Sandbox]) -> None:
    """Accounts with a reduced customer read two fields, and writing an order back loses no data."""
    sandbox = project(reduced_customer=True)
    order = sandbox.place(customer=CUSTOMER_FULL)
    assert order["customer"] == {"country": "NL", "ip_address": "10.0.0.1"}
    assert sandbox.place(card(), customer=CUSTOMER_FULL)["customer"] == order["customer"]
    assert sandbox.put(f"/v1/orders/{order['id']}/", order).json() == order
    sandbox.settings(reduced_customer=False)
    assert sandbox.read(order)["customer"] == CUSTOMER_FULL
