"""Every sequence up to a length, for each method, on a small alphabet; equal states are merged."""

import pytest

from payment_sandbox.fidelity.ledger import assumptions, rule_texts
from payment_sandbox.model.records import METHODS
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.exploring import explore_all, explored_in_a_project

EXERCISED_MIN = 90


@pytest.mark.parametrize("method", ["", *METHODS])
def test_two_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and whatever can follow."""
    mode = "live" if method in METHODS and not METHODS[method].is_testable else "test"
    explored = explored_in_a_project(payment_sandbox_server, method, mode, length=2, most=40)
    print(f"{method or 'hosted page'}: {explored}")


@pytest.mark.prove
def test_four_steps_agree(payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and three further steps, for every method, and the year of a recurring series."""
    explored = explore_all(payment_sandbox_server)
    known = {*rule_texts(), *(assumption.id for assumption in assumptions())}
    assert explored.rules.keys() <= known
    assert len(explored.rules) >= EXERCISED_MIN, sorted(known - explored.rules.keys())
    print(f"in all: {explored} of {len(known)}")
