"""Methods that a customer can choose, and methods that a merchant can use."""

from collections.abc import Callable

import pytest

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, card, violations


@pytest.mark.rule("ORD-13", "GEN-04")
def test_the_allow_list_narrows_what_a_customer_can_choose(sandbox: Sandbox) -> None:
    """A method outside the list is not offered."""
    order = sandbox.place(payment_methods=["wallet-web", "pay-later-a"])
    answer = sandbox.act(order, "customer choose", payment_method="credit-card")
    assert answer.json()["error"]["violations"][0]["allowed"] == ["wallet-web"]
    chosen = sandbox.acted(order, "customer choose", payment_method="wallet-web")
    assert chosen["transactions"][0]["payment_method"] == "wallet-web"


@pytest.mark.rule("GEN-04")
def test_a_list_of_methods_that_the_merchant_may_not_use_is_refused(project: Callable[..., Sandbox]) -> None:
    """A method that lacks a required feature is refused, also in a transaction, and is not offered."""
    sandbox = project(cards_approved=False)
    assert set(violations(sandbox.create(card()))) == {"transactions[0].payment_method"}
    answer = sandbox.act(sandbox.place(), "customer choose", payment_method="credit-card")
    assert "credit-card" not in answer.json()["error"]["violations"][0]["allowed"]
    answer = sandbox.create(payment_methods=["credit-card"])
    assert set(violations(answer)) == {"payment_methods"}
    assert "credit-card" not in answer.json()["error"]["violations"][0]["allowed"]
    assert sandbox.create(payment_methods=["credit-card", "wallet-web"]).status_code == 201


@pytest.mark.rule("ORD-14", "GEN-03", "SET-61")
def test_without_an_allow_list_every_usable_method_is_offered(sandbox: Sandbox) -> None:
    """All enabled methods are offered that test mode supports and whose required fields the order has."""
    order = sandbox.place()
    answer = sandbox.act(order, "customer choose", payment_method="carrier-pigeon")
    assert answer.json()["error"]["violations"][0]["allowed"] == [
        "credit-card",
        "bank-transfer",
        "bank-redirect-nl",
        "bank-redirect-de",
        "wallet-qr",
        "wallet-web",
        "wallet-google",
    ]


@pytest.mark.rule("FLOW-12", "FLOW-13")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_screened_methods_can_be_asked_for_by_allow_list(sandbox: Sandbox, method: str) -> None:
    """With lines and customer the list is accepted, and the customer can choose the method."""
    order = sandbox.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, payment_methods=[method])
    chosen = sandbox.acted(order, "customer choose", payment_method=method)
    assert chosen["transactions"][0]["payment_method"] == method


@pytest.mark.parametrize(
    "methods", [["pay-later-a"], ["invoice-later-b", "pay-later-a"], [], ["bank-redirect-be"]]
)
def test_an_allow_list_without_a_usable_method_is_refused(sandbox: Sandbox, methods: list[str]) -> None:
    """An order that no method could pay is refused."""
    assert list(violations(sandbox.create(payment_methods=methods))) == ["payment_methods"]


def test_an_allow_list_names_each_unknown_method(sandbox: Sandbox) -> None:
    """Every unknown method has its own path, and the refusal lists the known methods."""
    answer = sandbox.create(payment_methods=["credit-card", "cash", "cheque"])
    assert list(violations(answer)) == ["payment_methods[1]", "payment_methods[2]"]
    assert "wallet-qr" in answer.json()["error"]["violations"][0]["allowed"]


@pytest.mark.rule("ORD-16", "PLA-01", "INV-01", "INV-02")
@pytest.mark.parametrize(
    ("method", "missing"),
    [("pay-later-a", {"order_lines"}), ("invoice-later-b", {"order_lines", "customer"})],
)
def test_screened_methods_need_lines_and_customer(sandbox: Sandbox, method: str, missing: set[str]) -> None:
    """All missing fields are reported together."""
    assert set(violations(sandbox.create(by(method)))) == missing


@pytest.mark.rule("SET-54")
def test_currencies_lists_the_enabled_methods(project: Callable[..., Sandbox]) -> None:
    """The response lists exactly the enabled methods with their currency."""
    sandbox = project(payment_methods=["wallet-qr", "credit-card"])
    assert sandbox.get("/v1/merchants/self/projects/self/currencies/").json() == {
        "payment_methods": {"credit-card": {"currencies": ["EUR"]}, "wallet-qr": {"currencies": ["EUR"]}}
    }


@pytest.mark.rule("CTL-03")
def test_a_method_that_is_switched_off_is_refused(project: Callable[..., Sandbox]) -> None:
    """A creation with a disabled method is refused, and the page does not offer it."""
    sandbox = project(payment_methods=["wallet-qr"])
    answer = sandbox.create(card())
    assert "not enabled" in violations(answer)["transactions[0].payment_method"]
    assert answer.json()["error"]["violations"][0]["allowed"] == ["wallet-qr"]
    order = sandbox.place()
    assert sandbox.act(order, "customer choose", payment_method="credit-card").status_code == 400


@pytest.mark.rule("CTL-02")
def test_aliases_are_accepted_and_echoed_as_sent(project: Callable[..., Sandbox]) -> None:
    """Aliases are accepted wherever a method is named."""
    sandbox = project(aliases={"my-bank-button": "bank-redirect-nl", "plastic": "credit-card"})
    order = sandbox.place(
        {"payment_method": "my-bank-button", "payment_method_details": {"issuer_id": "SBXANL2A"}}
    )
    assert order["transactions"][0]["payment_method"] == "my-bank-button"
    assert sandbox.pay(order)["status"] == "completed"
    assert (
        sandbox.get("/v1/my-bank-button/issuers/").json()
        == sandbox.get("/v1/bank-redirect-nl/issuers/").json()
    )
    hosted = sandbox.place(payment_methods=["plastic"])
    assert hosted["payment_methods"] == ["plastic"]
    chosen = sandbox.acted(hosted, "customer choose", payment_method="plastic")
    assert chosen["transactions"][0]["payment_method"] == "plastic"
    assert sandbox.get("/v1/plastic/issuers/").status_code == 404
