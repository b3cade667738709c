"""The server and the model agree on every sequence of calls up to a length, for each payment method.

``make test`` takes a third of the short sequences, other ones each day; ``make prove`` takes all, and longer ones.
"""

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.attack import FULL
from tests.model.exploring import START_STATES, explore_from, explore_method
from tests.model.specification.records import METHODS
from tests.support.samples import of_the_day

HOSTED_OR_METHOD = ("", *METHODS)
METHODS_OF_THE_DAY = of_the_day(HOSTED_OR_METHOD, len(HOSTED_OR_METHOD) // 3)
STATES_OF_THE_DAY = of_the_day(START_STATES, len(START_STATES) // 3)


@pytest.mark.parametrize("method", METHODS_OF_THE_DAY)
def test_calls_after_a_creation_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on a creation and every next call."""
    mode = "live" if method and not METHODS[method].is_testable else "test"
    assert explore_method(payment_sandbox_server, method, mode, 2, 40) >= 20


@pytest.mark.parametrize("start", STATES_OF_THE_DAY)
def test_calls_in_a_rare_state_agree(start: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on every call in a rarely reached state."""
    assert explore_from(payment_sandbox_server, start, 1, 30) >= 5


@pytest.mark.prove
@pytest.mark.parametrize("method", HOSTED_OR_METHOD)
def test_sequences_after_a_creation_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on a creation and three further calls."""
    assert explore_method(payment_sandbox_server, method, "live", 4, 400 if FULL else 160) >= 20


@pytest.mark.prove
@pytest.mark.parametrize("start", START_STATES)
def test_sequences_in_a_rare_state_agree(start: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """The server and the model agree on three calls in a rarely reached state."""
    assert explore_from(payment_sandbox_server, start, 3, 300 if FULL else 120) >= 5
