"""The control API performs possible actions on orders and refuses impossible ones."""

import pytest

from tests.support.driver import Sandbox, card, refused, violations


@pytest.mark.rule("CTL-20")
def test_an_impossible_action_names_the_possible_ones(sandbox: Sandbox) -> None:
    """The error message and ``allowed`` name the possible actions; nothing changes."""
    order = sandbox.place(card())
    error = refused(sandbox.act(order, "bank credit"), 409, "ActionNotPossible")
    assert error["allowed"] == ["visit", "pay", "cancel", "fail"]
    assert "customer pay" in error["value"]
    assert sandbox.read(order) == order
    hosted = sandbox.place()
    assert refused(sandbox.act(hosted, "customer pay"), 409, "ActionNotPossible")["allowed"] == [
        "visit",
        "choose",
    ]


def test_a_choice_is_checked(sandbox: Sandbox) -> None:
    """A choice needs an available method and a listed issuer."""
    order = sandbox.place()
    assert set(violations(sandbox.act(order, "customer choose"))) == {"payment_method"}
    answer = sandbox.act(order, "customer choose", payment_method="bank-redirect-nl", issuer_id="NOBANK")
    assert set(violations(answer)) == {"issuer_id"}
    assert sandbox.read(order) == order
