"""Requests that public plugins send, and the messages that their authors read."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.support.driver import LINES, Sandbox, violations


@pytest.mark.rule("A18")
def test_a_negative_physical_line_lowers_what_an_order_costs(sandbox: Sandbox) -> None:
    """A coupon sent as a physical line is accepted, while the amount of the order stays at least 1."""
    coupon = {**LINES[0], "amount": -250, "quantity": 1, "merchant_order_line_id": "coupon"}
    order = sandbox.authorized(amount=1250, order_lines=[LINES[0], coupon])
    assert sandbox.take(order, "captures", {}).json()["is_fully_captured"] is True
    assert "amount" in violations(sandbox.create(amount=0, order_lines=[coupon]))


@pytest.mark.rule("A19")
def test_two_lines_with_the_same_id_are_refused_with_both_paths(sandbox: Sandbox) -> None:
    """Creating and updating an order refuse it alike; each path names the other line."""
    shared = [LINES[0], {**LINES[1], "merchant_order_line_id": "other"}, {**LINES[0], "amount": 100}]
    order = sandbox.place(amount=2000, order_lines=LINES)
    for answer in (
        sandbox.create(order_lines=shared),
        sandbox.put(f"/v1/orders/{order['id']}/", {"order_lines": shared}),
    ):
        assert answer.status_code == 400
        problems = violations(answer)
        first, second = (f"order_lines[{index}].merchant_order_line_id" for index in (0, 2))
        assert set(problems) == {first, second}
        assert second in problems[first]
        assert first in problems[second]


def test_lines_without_an_id_are_not_compared(sandbox: Sandbox) -> None:
    """Lines may have no id; several such lines do not share one."""
    anonymous = {"amount": 500, "quantity": 1}
    assert len(sandbox.place(amount=1000, order_lines=[anonymous, anonymous])["order_lines"]) == 2


@pytest.mark.rule("A63")
@pytest.mark.parametrize(
    ("sent", "nearest"),
    [
        ("nl_NL", "nl"),
        ("de_DE", "de"),
        ("en_US", "en-GB"),
        ("fr_FR", "fr-BE"),
        ("nl_BE", "nl-BE"),
        ("xx", None),
    ],
)
def test_a_refused_locale_names_the_nearest_allowed_one(
    sandbox: Sandbox, sent: str, nearest: str | None
) -> None:
    """The language decides, and then the region."""
    answer = sandbox.create(customer={"locale": sent})
    assert answer.json()["error"]["violations"][0].get("nearest") == nearest
    message = violations(answer)["customer.locale"]
    assert message.endswith(f"got {sent!r}" if nearest is None else f"did you mean {nearest!r}?")


@pytest.mark.rule("A63")
def test_an_unknown_locale_can_be_ignored(project: Callable[..., Sandbox]) -> None:
    """With unknown_locale ignore it counts as absent, in new orders and updates; others are stored."""
    sandbox = project(unknown_locale="ignore")
    answer = sandbox.create(customer={"locale": "en_US", "country": "NL"})
    assert (answer.status_code, answer.headers["Sandbox-Ignored-Fields"]) == (201, "customer.locale")
    assert answer.json()["customer"] == {"country": "NL"}
    changed = sandbox.put(
        f"/v1/orders/{answer.json()['id']}/", {"customer": {"locale": "de_DE", "country": "DE"}}
    )
    assert changed.json()["customer"] == {"country": "DE"}
    assert sandbox.place(customer={"locale": "de"})["customer"] == {"locale": "de"}
    assert "customer.locale" in violations(sandbox.create(customer={"locale": 7}))


@pytest.mark.rule("A61")
@pytest.mark.parametrize(
    ("percentage", "is_warned"), [(0, False), (1, True), (21, True), (99, True), (100, False)]
)
def test_a_vat_percentage_in_percent_gets_a_warning(
    sandbox: Sandbox, percentage: int, is_warned: bool
) -> None:
    """The header, the journal and the explanation name the likely value; 0 is a rate."""
    line = {**LINES[0], "vat_percentage": percentage}
    order = sandbox.place(amount=2000, order_lines=LINES)
    for answer in (
        sandbox.create(amount=1500, order_lines=[line]),
        sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1500, "order_lines": [line]}),
    ):
        assert answer.ok
        warning = f"for {percentage}% send {percentage * 100}"
        assert (warning in answer.headers.get("Sandbox-Warnings", "")) == is_warned
        journal = sandbox.get(f"/control/journal/?order_id={answer.json()['id']}").json()["items"]
        explained = sandbox.get(f"/control/report/?order_id={answer.json()['id']}").json()["text"]
        assert [warning in str(journal[-1]["headers"]["response"]), warning in explained] == [is_warned] * 2


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("amount", 1000.0, "must be a whole number of cents, such as 1295; got 1000.0"),
        ("amount", "1295", "must be a whole number of cents, such as 1295; got '1295'"),
        ("amount", True, "must be a whole number of cents, such as 1295; got true"),
        ("amount", 0, "must be at least 1 and at most 9007199254740991; got 0"),
        ("currency", "USD", "must be one of: EUR; got 'USD'"),
        ("description", {"a": 1}, "must be a string; got an object"),
        ("expiration_period", "x" * 1000, "such as PT30M or P7D; got 1,000 characters"),
        ("expiration_period", "in half an hour " * 10, "; got 'in half an hour in half an hour in half...'"),
    ],
)
def test_a_refusal_shows_the_value_that_it_got(
    sandbox: Sandbox, field: str, value: object, shown: str
) -> None:
    """The value is shown once, and cut after at most 40 characters, between two words."""
    message = violations(sandbox.create(**{field: value}))[field]
    assert shown in message
    assert message.count("got ") <= 1
    assert len(message) < 200


def test_a_refusal_shows_nothing_of_a_key_with_the_digits_of_a_card(sandbox: Sandbox) -> None:
    """A value with a card number is not shown in part: the rest could be that of a key, which nobody would mask."""
    message = violations(sandbox.create(expiration_period="7d0b5ffa4111111111111111ab"))["expiration_period"]
    assert message.endswith("; got ***")


@pytest.mark.parametrize("code", ["98765", 98765, 98765.5, ["98765"], {"a": "98765"}])
@pytest.mark.parametrize("space", range(0, 48, 3))
def test_a_refusal_shows_no_secret(sandbox: Sandbox, code: object, space: int) -> None:
    """A card number, a card code and the API key are masked, wherever the value is cut."""
    shown = f"{'- ' * (space // 2)}4111111111111111 {sandbox.key}"
    details = {"cvc": code, "one_click_type": shown}
    transaction = {"payment_method": "credit-card", "payment_method_details": details}
    text = sandbox.create(transaction).text
    assert "got" in text
    assert not [secret for secret in ("98765", "41111111", sandbox.key[:8]) if secret in text]


@pytest.mark.parametrize(
    "field", ["extra", "client", "customer", "transactions[0].payment_method_details", "transactions[0]"]
)
def test_an_empty_list_for_an_object_names_the_case_of_php(sandbox: Sandbox, field: str) -> None:
    """PHP encodes an empty array as a list."""
    details: Any = {"transactions": [{"payment_method": "credit-card", "payment_method_details": []}]}
    body: Any = {
        "transactions[0].payment_method_details": details,
        "transactions[0]": {"transactions": [[]]},
    }.get(field, {field: []})
    message = violations(sandbox.post("/v1/orders/", {"currency": "EUR", "amount": 1, **body}))[field]
    assert message == "must be an object; got [] (in PHP, an empty object is new stdClass() or (object) [])"


@pytest.mark.rule("A62")
def test_json_with_a_byte_order_mark_is_read(sandbox: Sandbox) -> None:
    """The mark at the beginning is skipped."""
    body = b"\xef\xbb\xbf" + json.dumps({"currency": "EUR", "amount": 1295}).encode()
    headers = {"Content-Type": "application/json"}
    answer = requests.post(f"{sandbox.url}/v1/orders/", data=body, headers=headers, auth=(sandbox.key, ""))
    assert (answer.status_code, answer.json()["amount"]) == (201, 1295)
