"""Every sequence up to a length, for each method, on a small alphabet; equal states are merged."""

import pytest

from payment_sandbox.model.records import METHODS, Shop
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.driver import SessionDoor
from tests.model.exploring import Explored, explore, first_calls
from tests.model.judge import FROM_START, WEBHOOK_URL, Judge


def explored(server: PaymentSandboxServer, method: str, mode: str, length: int, most: int) -> Explored:
    """Explore the orders of a method in a project of its own."""
    project = server.project(clock=FROM_START, webhook_url=WEBHOOK_URL, mode=mode)
    with project:
        door = SessionDoor(project.session, project.base_url)
        return explore(Judge(door, Shop(mode=mode)), first_calls(method), length, most)


@pytest.mark.parametrize("method", ["", *METHODS])
def test_two_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and whatever can follow."""
    mode = "live" if not METHODS.get(method, METHODS["bank-redirect-de"]).is_testable else "test"
    report = explored(payment_sandbox_server, method, mode, length=2, most=60)
    print(f"{method or 'hosted page'}: {report}")


@pytest.mark.prove
@pytest.mark.parametrize("method", ["", *METHODS])
def test_four_steps_agree(method: str, payment_sandbox_server: PaymentSandboxServer) -> None:
    """A creation and three further steps."""
    report = explored(payment_sandbox_server, method, "live", length=4, most=700)
    print(f"{method or 'hosted page'}: {report}")
