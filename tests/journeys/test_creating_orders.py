"""Accepted and refused values of a new order."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import LINES, Sandbox, by, card, violations

FULL = {
    "description": "Two pairs of socks",
    "merchant_order_id": "shop-1001",
    "return_url": "https://shop.example/thanks?basket=7#top",
    "webhook_url": "https://shop.example/webhook",
    "expiration_period": "PT90M",
    "payment_methods": ["credit-card", "wallet-web"],
    "customer": {"locale": "nl-BE"},
}


@pytest.mark.rule("GEN-01", "STA-03", "END-02", "SET-07", "ORD-15")
def test_amount_and_currency_alone_make_an_order(sandbox: Sandbox) -> None:
    """The smallest order is new, and has a hosted page and no transaction."""
    answer = sandbox.post("/v1/orders/", {"currency": "EUR", "amount": 1295})
    assert answer.status_code == 201
    order = answer.json()
    assert (order["status"], order["amount"], order["transactions"]) == ("new", 1295, [])
    assert order["order_url"]


@pytest.mark.rule("FLOW-01", "ORD-06", "ORD-07", "ORD-08", "ORD-11", "ORD-13", "ORD-15")
def test_a_hosted_order_takes_and_echoes_all_its_fields(sandbox: Sandbox) -> None:
    """All fields of a hosted order are stored and returned unchanged."""
    order = sandbox.place(**FULL)
    assert order["status"] == "new"
    assert {key: order[key] for key in FULL} == FULL
    assert sandbox.read(order) == order


@pytest.mark.rule("ORD-02", "ORD-04")
def test_currency_and_amount_are_required(sandbox: Sandbox) -> None:
    """Both missing fields are reported together."""
    assert violations(sandbox.post("/v1/orders/", {})) == {
        "currency": "is required",
        "amount": "is required",
    }


@pytest.mark.rule("ORD-03", "LIM-01")
@pytest.mark.parametrize("currency", ["USD", "GBP", "CHF", "eur", "", 978, None])
def test_only_euros_are_taken(sandbox: Sandbox, currency: Any) -> None:
    """Any other currency is refused by name."""
    assert "currency" in violations(sandbox.create(currency=currency))


@pytest.mark.rule("ORD-05", "SET-11", "LIM-02")
@pytest.mark.parametrize("amount", [12.95, 1295.0, "1295", True, None, 0, -1, 2**53, 10**400, [], {}])
def test_an_amount_is_whole_cents_and_never_rounded(sandbox: Sandbox, amount: Any) -> None:
    """Anything but an integer from 1 to 2^53-1 is refused."""
    assert "amount" in violations(sandbox.create(amount=amount))


@pytest.mark.rule("A08", "ORD-05")
@pytest.mark.parametrize("amount", [1, 2**53 - 1])
def test_the_bounds_of_amounts_are_amounts(sandbox: Sandbox, amount: int) -> None:
    """The smallest and the largest amount are accepted."""
    assert sandbox.place(amount=amount)["amount"] == amount


@pytest.mark.rule("ORD-08", "ORD-10", "A54", "A55")
@pytest.mark.parametrize("field", ["return_url", "webhook_url"])
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://shop.example/",
        "myapp://paid",
        "https://",
        "https:///path",
        "//shop.example/",
        "shop.example",
        "https://user:secret@shop.example/",
        "https://shop.example:99999/",
        "https://shop.example/a b",
        "https://shop.example/\n",
        "https://[::1/",
        "http://shop.example\\@evil.example/",
        "",
        7,
        None,
        "https://shop.example/" + "x" * 3000,
        "http://․/",
        "http://a․․b/",
        "http://a..b/",
        "http://.a/",
        "http://a<b/",
        "http://a%41/",
        "http://256.1.1.1/",
        "http://1.2.3.4.5/",
        "http://a.0x7f/",
        "http://xn--/",
        "http://[fe80::1%25eth0]/",
        "http://[v1.x]/",
        f"http://{'a' * 64}/",
        f"http://{'a.' * 127}a/",
        f"http://{'ü' * 80}.example/",
    ],
)
def test_only_web_addresses_are_taken(sandbox: Sandbox, field: str, url: Any) -> None:
    """Another scheme, such as an app's, a host that no browser finds, credentials and controls are refused."""
    assert list(violations(sandbox.create(**{field: url}))) == [field]


@pytest.mark.rule("SET-17", "A10")
def test_an_order_is_created_with_one_transaction_or_none(sandbox: Sandbox) -> None:
    """Two transactions are refused; violations inside them are reported as well."""
    answer = sandbox.create(card(), {"capture_mode": "later"})
    assert set(violations(answer)) == {
        "transactions",
        "transactions[1].payment_method",
        "transactions[1].capture_mode",
    }
    assert sandbox.place(transactions=[])["order_url"]


@pytest.mark.rule("GEN-02", "TRQ-01", "TRQ-02")
def test_a_transaction_needs_a_known_method(sandbox: Sandbox) -> None:
    """A missing method is required; an unknown one is refused with the list of known methods."""
    assert violations(sandbox.create({})) == {"transactions[0].payment_method": "is required"}
    answer = sandbox.create(by("cash"))
    assert list(violations(answer)) == ["transactions[0].payment_method"]
    assert "credit-card" in answer.json()["error"]["violations"][0]["allowed"]


@pytest.mark.rule("TRQ-06", "TRQ-07")
@pytest.mark.parametrize("mode", ["instant", "automatic", "immediate", "Manual", "", 1])
def test_capture_mode_and_details_have_their_form(sandbox: Sandbox, mode: Any) -> None:
    """The capture mode is manual or delayed; details are an object."""
    answer = sandbox.create(card(capture_mode=mode, payment_method_details=[]))
    assert set(violations(answer)) == {
        "transactions[0].capture_mode",
        "transactions[0].payment_method_details",
    }


@pytest.mark.parametrize("method", ["bank-transfer", "bank-redirect-nl", "wallet-qr", "wallet-google"])
def test_capture_mode_is_refused_where_nothing_is_authorized(sandbox: Sandbox, method: str) -> None:
    """A method without authorizations accepts no capture mode."""
    answer = sandbox.create(by(method, capture_mode="manual"))
    assert list(violations(answer)) == ["transactions[0].capture_mode"]


@pytest.mark.rule("SET-12", "A09")
def test_unknown_keys_are_dropped_and_named(sandbox: Sandbox) -> None:
    """The header and the journal name them; the header has the syntax of paths in violations."""
    answer = sandbox.create(
        card(colour="red"), nonsense=1, customer={"shoe, size": 42}, order_lines=[{**LINES[0], "weight": 2}]
    )
    assert answer.headers["Sandbox-Ignored-Fields"] == (
        "nonsense, customer.shoe%2C%20size, order_lines[0].weight, transactions[0].colour"
    )
    assert "nonsense" not in answer.json()
    entry = sandbox.get("/control/journal/").json()["items"][-1]
    assert entry["ignored"] == [
        "nonsense", "customer.shoe, size", "order_lines[0].weight", "transactions[0].colour"
    ]  # fmt: skip


@pytest.mark.rule("SET-12")
def test_details_of_another_method_are_named(project: Callable[..., Sandbox]) -> None:
    """Details of another method are ignored, or refused with unknown_fields reject."""
    details = {"issuer_id": "bank-1", "cvc": "123", "one_click_type": "first"}
    transaction = {"payment_method": "credit-card", "payment_method_details": details}
    answer = project().create(transaction)
    assert answer.headers["Sandbox-Ignored-Fields"] == "transactions[0].payment_method_details.issuer_id"
    assert "issuer_id" not in answer.json()["transactions"][0]["payment_method_details"]
    refused = project(unknown_fields="reject").create(transaction)
    (violation,) = refused.json()["error"]["violations"]
    assert violation["path"] == "transactions[0].payment_method_details.issuer_id"
    assert "one_click_type" in violation["allowed"]


@pytest.mark.rule("SET-13", "A09")
def test_unknown_keys_can_be_refused(project: Callable[..., Sandbox]) -> None:
    """With unknown_fields reject, each is a violation that suggests the nearest known key."""
    sandbox = project(unknown_fields="reject")
    answer = sandbox.create(descripton="Socks", customer={"mail": "x"}, id="1")
    messages = violations(answer)
    assert messages.keys() == {"descripton", "customer.mail", "id"}
    assert "did you mean 'description'?" in messages["descripton"]
    assert messages["id"] == "is read-only: the service sets it; your own number belongs in merchant_order_id"
    order = sandbox.pay(sandbox.place(card()))
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"id": "1"})
    assert violations(refund) == {"id": "is not a known key"}


@pytest.mark.parametrize(
    ("name", "suffix"), [("creditcard", "; did you mean 'credit-card'?"), ("cash", "is not a payment method")]
)
def test_a_method_that_is_nearly_one_is_suggested(sandbox: Sandbox, name: str, suffix: str) -> None:
    """A misspelled method suggests the nearest usable one, in a transaction and in the list of methods."""
    for order, path in (
        ({"transactions": [{"payment_method": name}]}, "transactions[0].payment_method"),
        ({"payment_methods": [name]}, "payment_methods[0]"),
    ):
        answer = sandbox.post("/v1/orders/", {"currency": "EUR", "amount": 5, **order})
        assert violations(answer)[path].endswith(suffix)
