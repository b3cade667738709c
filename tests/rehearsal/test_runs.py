"""What a project asks its rehearsal."""

from contextlib import closing

import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.server import Server
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from tests.support.servers import make_server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
AUTH = (FIRST_API_KEY, "")


def created(server: Server) -> requests.Response:
    """A new order, or the fault that comes instead."""
    return requests.post(f"{server.url}/v1/orders/", json=ORDER, auth=AUTH, timeout=10)


def test_a_fault_after_processing_is_answered_as_configured() -> None:
    """The order is made, its answer is lost, and the shop has not seen it."""
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        (project,) = server.registry.all()
        project.rehearse(RehearsedRun(project))
        client.faults([{"when": {"method": "POST"}, "then": {"status": 503, "phase": "after"}}])
        assert created(server).status_code == 503
        (order,) = client.orders()
        client.faults()
        read = requests.get(f"{server.url}/v1/orders/{order['id']}/", auth=AUTH, timeout=10)
        assert read.json()["status"] == "new"


def test_a_reset_keeps_the_rehearsal() -> None:
    """What happens afterwards is a step, too."""
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        (project,) = server.registry.all()
        run = RehearsedRun(project)
        project.rehearse(run)
        created(server)
        client.reset()
        created(server)
        assert [step.name for step in run.steps if step.kind == "create"] == ["create:1", "create:2"]
