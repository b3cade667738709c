"""The server and the model agree on every sequence of calls up to a length, for each payment method."""

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.exploring import START_STATES, explore_from, explore_method
from tests.model.specification.records import METHODS

HOSTED_OR_METHOD = ("", *METHODS)


@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_two_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on a creation and every next call."""
    mode = "live" if method in METHODS and not METHODS[method].is_testable else "test"
    exploration = explore_method(payment_sandbox_server, method, mode, length=2, transitions_max=40)
    print(f"{method or 'hosted page'}: {exploration}")


@pytest.mark.prove
@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_four_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on a creation and three further calls."""
    exploration = explore_method(payment_sandbox_server, method, "live", length=4, transitions_max=400)
    print(f"{method or 'hosted page'}: {exploration}")


@pytest.mark.parametrize("start", START_STATES)
def test_every_next_call_agrees(start: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on every call in a rarely reached state."""
    print(f"{start}: {explore_from(payment_sandbox_server, start, length=1, transitions_max=30)}")


@pytest.mark.prove
@pytest.mark.parametrize("start", START_STATES)
def test_three_further_calls_agree(start: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on three calls from a rarely reached state."""
    print(f"{start}: {explore_from(payment_sandbox_server, start, length=3, transitions_max=300)}")
