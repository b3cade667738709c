"""One-click and recurring payments with a stored card."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import Sandbox, card, details, refused, violations

PATH = "transactions[0].payment_method_details"
USES = {"one-click": "one_click_type", "recurring": "recurring_type"}


def store(sandbox: Sandbox, use: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Make a first payment; return its token and its order."""
    order = sandbox.pay(sandbox.place(details(**{USES[use]: "first"}), **more))
    return order["transactions"][0]["payment_method_details"]["vault_token"], order


def one_click(token: str, cvc: str | None = "123") -> dict[str, Any]:
    """Return a subsequent one-click transaction."""
    fields = {"one_click_type": "one-click", "vault_token": token, "cvc": cvc}
    return details(**{key: value for key, value in fields.items() if value is not None})


def recurring(token: str) -> dict[str, Any]:
    """Return a subsequent recurring transaction."""
    return details(recurring_type="recurring", vault_token=token)


@pytest.mark.rule("CARD-04", "CARD-19", "CARD-20", "STA-08", "STA-09", "FLOW-04", "FLOW-07")
@pytest.mark.parametrize("use", USES)
def test_a_first_payment_stores_its_card(sandbox: Sandbox, use: str) -> None:
    """The customer authenticates at payment_url; the completed order contains the token."""
    order = sandbox.place(details(**{USES[use]: "first"}))
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["payment_method_details"]) == ("new", {USES[use]: "first"})
    assert transaction["payment_url"]
    sandbox.acted(order, "customer visit")
    assert "vault_token" not in sandbox.read(order)["transactions"][0]["payment_method_details"]
    sandbox.pay(order, card="challenge")
    completed = sandbox.read(order)
    assert completed["status"] == "completed"
    assert completed["transactions"][0]["payment_method_details"]["vault_token"]


def test_a_first_payment_that_fails_stores_nothing(sandbox: Sandbox) -> None:
    """A failed first payment has no token."""
    order = sandbox.pay(sandbox.place(details(one_click_type="first")), card="declined")
    assert "vault_token" not in order["transactions"][0]["payment_method_details"]


@pytest.mark.rule("CARD-04", "STA-11", "FLOW-05", "FLOW-06", "LIM-10", "TX-13", "CARD-21", "CARD-19")
def test_a_one_click_payment_is_completed_at_once(sandbox: Sandbox) -> None:
    """It completes without a page, for any amount, and has the first transaction's id."""
    token, first = store(sandbox, "one-click", amount=1000)
    order = sandbox.place(one_click(token), amount=77)
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("completed", "completed")
    assert "payment_url" not in transaction
    assert "order_url" not in order
    shown = transaction["payment_method_details"]
    assert shown["one_click_type"] == "one-click"
    assert shown["first_authorised_transaction_id"] == first["transactions"][0]["id"]
    assert shown["truncated_pan"]


@pytest.mark.rule("CARD-12", "CARD-14", "LIM-11")
def test_a_one_click_payment_needs_token_and_cvc(sandbox: Sandbox) -> None:
    """Both are required for every one-click payment."""
    token, _ = store(sandbox, "one-click")
    missing = violations(sandbox.create(details(one_click_type="one-click")))
    assert set(missing) == {f"{PATH}.cvc", f"{PATH}.vault_token"}
    assert sandbox.create(one_click(token)).status_code == 201
    for amount in (1, 995, 100_000):
        answer = sandbox.create(one_click(token, cvc=None), amount=amount)
        assert set(violations(answer)) == {f"{PATH}.cvc"}


@pytest.mark.rule("CARD-14")
@pytest.mark.parametrize("cvc", ["12", "12345", "abc", "１２３", "123\n", 123, None, True])
def test_a_cvc_has_three_or_four_digits(sandbox: Sandbox, cvc: Any) -> None:
    """Any other value is refused."""
    body = details(one_click_type="one-click", vault_token="x", cvc=cvc)
    assert f"{PATH}.cvc" in violations(sandbox.create(body))


@pytest.mark.rule("CARD-04", "STA-12", "FLOW-08", "FLOW-09", "TX-13", "SET-64", "CARD-21")
def test_a_recurring_payment_settles_on_the_agenda(sandbox: Sandbox) -> None:
    """It is processing at creation, without CVC and page, and completes a minute later."""
    token, first = store(sandbox, "recurring")
    order = sandbox.place(recurring(token))
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("processing", "processing")
    assert "payment_url" not in transaction
    shown = transaction["payment_method_details"]
    assert (shown["recurring_type"], shown["first_authorised_transaction_id"]) == (
        "recurring", first["transactions"][0]["id"]
    )  # fmt: skip
    sandbox.advance("PT59S")
    assert sandbox.status(order) == ("processing", "processing")
    sandbox.advance("PT1S")
    assert sandbox.status(order) == ("completed", "completed")


@pytest.mark.parametrize(("action", "status"), [("settle", "completed"), ("fail", "error")])
def test_the_processor_can_be_played_by_hand(sandbox: Sandbox, action: str, status: str) -> None:
    """Only the processor can act on a recurring payment."""
    token, _ = store(sandbox, "recurring")
    order = sandbox.place(recurring(token))
    error = refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")
    assert error["allowed"] == ["settle", "fail"]
    assert sandbox.acted(order, f"processor {action}")["status"] == status


@pytest.mark.rule("CARD-13")
def test_a_recurring_payment_needs_a_token(sandbox: Sandbox) -> None:
    """A missing token is a violation."""
    assert set(violations(sandbox.create(details(recurring_type="recurring")))) == {f"{PATH}.vault_token"}


@pytest.mark.rule("CARD-10", "CARD-11")
def test_types_are_first_or_actual(sandbox: Sandbox) -> None:
    """Unknown types, types of the other kind and both types at once are refused."""
    for one_click_type, recurring_type in (("second", "second"), ("recurring", "one-click")):
        body = details(one_click_type=one_click_type, recurring_type=recurring_type)
        assert set(violations(sandbox.create(body))) == {f"{PATH}.one_click_type", f"{PATH}.recurring_type"}
    both = details(one_click_type="first", recurring_type="first")
    assert set(violations(sandbox.create(both))) == {f"{PATH}.recurring_type"}


@pytest.mark.rule("CARD-12", "CARD-13")
def test_a_token_is_good_for_its_use_and_project_only(project: Callable[..., Sandbox]) -> None:
    """Unknown tokens and those of another use or project are refused alike."""
    sandbox, other = project(), project()
    token, _ = store(sandbox, "one-click")
    for answer in (
        sandbox.create(recurring(token)),
        sandbox.create(one_click("no-such-token")),
        other.create(one_click(token)),
    ):
        assert set(violations(answer)) == {f"{PATH}.vault_token"}


@pytest.mark.rule("LIM-07", "SET-64")
def test_a_recurring_series_has_one_amount(sandbox: Sandbox) -> None:
    """Another amount is refused with the amount of the series."""
    token, _ = store(sandbox, "recurring", amount=1000)
    for amount in (999, 1001):
        answer = sandbox.create(recurring(token), amount=amount)
        assert set(violations(answer)) == {"amount"}
        assert answer.json()["error"]["violations"][0]["allowed"] == ["1000"]
    assert sandbox.create(recurring(token), amount=1000).status_code == 201


@pytest.mark.rule("LIM-08", "LIM-09")
@pytest.mark.parametrize(
    ("start", "last", "over"),
    [
        ("2027-03-01T12:00:00Z", "2028-03-01T11:59:59Z", "2028-03-01T12:00:00Z"),
        ("2028-02-29T12:00:00Z", "2029-02-28T11:59:59Z", "2029-02-28T12:00:00Z"),
    ],
)
def test_a_recurring_series_ends_after_a_calendar_year(
    project: Callable[..., Sandbox], start: str, last: str, over: str
) -> None:
    """A charge one second before the end succeeds; after it a new first payment starts a new series."""
    sandbox = project(clock=f"frozen@{start}")
    token, _ = store(sandbox, "recurring")
    sandbox.advance(to=last)
    assert sandbox.create(recurring(token)).status_code == 201
    sandbox.advance(to=over)
    refused(sandbox.create(recurring(token)), 409, "RecurringSeriesExpired")
    new_token, _ = store(sandbox, "recurring")
    assert sandbox.create(recurring(new_token)).status_code == 201


@pytest.mark.rule("A44")
@pytest.mark.parametrize("more", [{}, {"one_click_type": "first"}, {"recurring_type": "first"}])
def test_a_token_that_nothing_charges_is_refused(sandbox: Sandbox, more: dict[str, str]) -> None:
    """A token without a type that charges it is refused, whether it exists or not (A44)."""
    token, _ = store(sandbox, "one-click")
    for sent in (token, "no-such-token"):
        assert set(violations(sandbox.create(details(vault_token=sent, **more)))) == {f"{PATH}.vault_token"}


@pytest.mark.rule("FLOW-10", "FLOW-11", "CARD-09", "CARD-05")
@pytest.mark.parametrize(
    ("setting", "requested"),
    [
        ("cards_approved", {"one_click_type": "first"}),
        ("one_click_enabled", {"one_click_type": "first"}),
        ("cards_approved", {"recurring_type": "first"}),
        ("recurring_enabled", {"recurring_type": "first"}),
        ("dynamic_descriptor_enabled", {"dynamic_descriptor": "SHOP*SOCKS"}),
    ],
)
def test_features_are_for_merchants_that_have_them(
    project: Callable[..., Sandbox], setting: str, requested: dict[str, str]
) -> None:
    """The key of a feature is refused with the setting off and accepted with it on."""
    (key,) = requested
    messages = violations(project(**{setting: False}).create(details(**requested)))
    method = {"transactions[0].payment_method"} if setting == "cards_approved" else set()
    assert set(messages) == {f"{PATH}.{key}"} | method
    assert setting in messages[f"{PATH}.{key}"]
    shown = project().place(details(**requested))["transactions"][0]["payment_method_details"]
    assert shown[key] == requested[key]


def test_a_stored_card_can_be_authorized_for_capture(sandbox: Sandbox) -> None:
    """A one-click payment with capture_mode manual is authorized at once."""
    token, _ = store(sandbox, "one-click")
    order = sandbox.place(
        card(capture_mode="manual", payment_method_details=one_click(token)["payment_method_details"])
    )
    assert order["transactions"][0]["is_capturable"] is True
    assert sandbox.take(order, "captures").status_code == 200


@pytest.mark.rule("SCN-09")
@pytest.mark.parametrize(
    ("use", "then", "first", "later"),
    [
        ("one-click", {"processor": "fails"}, "error", "error"),
        ("one-click", {"processor": "settles", "after": "PT5M"}, "processing", "completed"),
        ("recurring", {"processor": "fails", "after": "PT5M"}, "processing", "error"),
    ],
)
def test_a_scenario_decides_stored_cards(
    sandbox: Sandbox, use: str, then: dict[str, str], first: str, later: str
) -> None:
    """A scenario can fail a stored card's payment or delay its settlement."""
    token, _ = store(sandbox, use)
    sandbox.scenario({"when": {"payment_method": "credit-card"}, "then": then})
    order = sandbox.place(one_click(token) if use == "one-click" else recurring(token))
    assert order["status"] == first
    sandbox.advance("PT5M")
    assert sandbox.read(order)["status"] == later
