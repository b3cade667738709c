"""The server and the model agree on every sequence of calls up to a length, for each payment method."""

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.attack import FULL
from tests.model.exploring import START_STATES, explore_from, explore_method
from tests.model.specification.records import METHODS

HOSTED_OR_METHOD = ("", *METHODS)


@pytest.mark.parametrize(
    ("length", "transitions_max"), [(2, 40), pytest.param(4, 400 if FULL else 160, marks=pytest.mark.prove)]
)
@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_calls_from_a_creation_agree(
    method: str, length: int, transitions_max: int, payment_sandbox_server: PaymentSandboxServer
) -> None:
    """The server and the model agree on a creation and every next call, or three further calls."""
    is_live = length > 2 or (method in METHODS and not METHODS[method].is_testable)
    mode = "live" if is_live else "test"
    print(method, explore_method(payment_sandbox_server, method, mode, length, transitions_max))


@pytest.mark.parametrize(
    ("length", "transitions_max"), [(1, 30), pytest.param(3, 300 if FULL else 120, marks=pytest.mark.prove)]
)
@pytest.mark.parametrize("start", START_STATES)
def test_calls_from_a_rare_state_agree(
    start: str, length: int, transitions_max: int, payment_sandbox_server: PaymentSandboxServer
) -> None:
    """The server and the model agree on every call, or three calls, in a rarely reached state."""
    print(start, explore_from(payment_sandbox_server, start, length, transitions_max))
