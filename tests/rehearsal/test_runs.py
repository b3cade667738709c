"""Faults and resets of a project during a rehearsal."""

from contextlib import closing

import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.server import Server
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from tests.support.servers import make_server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
AUTH = (FIRST_API_KEY, "")


def post_order(server: Server) -> requests.Response:
    """Create an order, and return the response."""
    return requests.post(f"{server.url}/v1/orders/", json=ORDER, auth=AUTH, timeout=10)


def test_a_fault_after_processing_is_answered_as_configured() -> None:
    """A fault after processing loses the response, and the order is new."""
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        (project,) = server.registry.all()
        project.rehearse(RehearsedRun(project))
        client.faults([{"when": {"method": "POST"}, "then": {"status": 503, "phase": "after"}}])
        assert post_order(server).status_code == 503
        (order,) = client.orders()
        client.faults()
        read = requests.get(f"{server.url}/v1/orders/{order['id']}/", auth=AUTH, timeout=10)
        assert read.json()["status"] == "new"


def test_a_reset_keeps_the_rehearsal() -> None:
    """Calls after a reset are steps, too."""
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        (project,) = server.registry.all()
        run = RehearsedRun(project)
        project.rehearse(run)
        post_order(server)
        client.reset()
        post_order(server)
        assert [step.name for step in run.steps if step.kind == "create"] == ["create:1", "create:2"]
