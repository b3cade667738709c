"""Every sequence up to a length, for each method, on a small alphabet; equal states are merged."""

from collections import Counter

import pytest

from payment_sandbox.fidelity.ledger import assumptions, rule_texts
from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox_verify.model.records import METHODS
from tests.model.exploring import PLACES, exercised, explored_from, explored_in_a_project

HOSTED_OR_METHOD = ("", *METHODS)
EXERCISED_MIN = 90


@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_two_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and whatever can follow."""
    mode = "live" if method in METHODS and not METHODS[method].is_testable else "test"
    explored = explored_in_a_project(payment_sandbox_server, method, mode, length=2, most=40)
    print(f"{method or 'hosted page'}: {explored}")


@pytest.mark.prove
@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_four_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and three further steps."""
    explored = explored_in_a_project(payment_sandbox_server, method, "live", length=4, most=400)
    print(f"{method or 'hosted page'}: {explored}")


@pytest.mark.parametrize("place", PLACES)
def test_what_follows_agrees(place: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """One step from a state that a walk seldom reaches."""
    print(f"{place}: {explored_from(payment_sandbox_server, place, length=1, most=30)}")


@pytest.mark.prove
@pytest.mark.parametrize("place", PLACES)
def test_all_that_follows_agrees(place: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """Three steps from there."""
    print(f"{place}: {explored_from(payment_sandbox_server, place, length=3, most=300)}")


def test_many_rules_are_exercised() -> None:
    """The model names rules and assumptions of the ledger only; these many decide a step of an exploration."""
    rules = sum((exercised(method, length=3, most=800) for method in HOSTED_OR_METHOD), Counter[str]())
    known = {*rule_texts(), *(assumption["id"] for assumption in assumptions())}
    assert rules.keys() <= known
    assert len(rules) >= EXERCISED_MIN, sorted(rules)
    print(f"{len(rules)} of {len(known)} rules and assumptions")
