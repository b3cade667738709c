"""Faults and resets of a project during a rehearsal."""

from collections.abc import Callable
from contextlib import closing

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.project import Services
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.projects.rehearsal_hooks import Rehearsal
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.services import ServerServices
from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from tests.support.in_process import place, project_of
from tests.support.servers import make_server
from tests.support.shop import Received, Shop

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
AUTH = (FIRST_API_KEY, "")


def post_order(server: Server) -> requests.Response:
    """Create an order, and return the response."""
    return requests.post(f"{server.url}/v1/orders/", json=ORDER, auth=AUTH, timeout=60)


def test_a_fault_after_processing_is_answered_as_configured() -> None:
    """A fault after processing loses the response, and the order is new."""
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        (project,) = server.registry.all()
        project.rehearse(RehearsedRun(project))
        client.faults([{"when": {"method": "POST"}, "then": {"status": 503, "phase": "after"}}])
        assert post_order(server).status_code == 503
        (order,) = client.orders()
        client.faults()
        read = requests.get(f"{server.url}/v1/orders/{order['id']}/", auth=AUTH, timeout=60)
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


def test_a_stale_answer_is_an_earlier_state_rendered_for_its_call(payment_sandbox: PaymentSandbox) -> None:
    """A stale answer has the query's blocks and the ETag of its state, which the shop has not yet passed."""
    project, order_id = project_of(payment_sandbox), place(payment_sandbox)
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
    project.rehearse(
        RehearsedRun(project, [parse_changed_step(f"read:{number}:overtaken") for number in (2, 4)])
    )
    new = payment_sandbox.session.get(url, timeout=60)
    payment_sandbox.act(order_id)
    reads = [payment_sandbox.session.get(f"{url}?fields[]=amount_details", timeout=60) for _ in range(3)]
    assert [each.json()["status"] for each in reads] == ["new", "completed", "completed"]
    assert all("amount_details" in each.json() for each in reads)
    etags = [each.headers["ETag"] for each in (new, *reads)]
    assert etags == sorted(etags)
    assert len(set(etags)) == 2


def crash(received: Received) -> int:
    """Close the connection without a response."""
    raise BrokenPipeError


def start_crashing(sandbox: PaymentSandbox, shop: Shop) -> None:
    """Make each handler of a running shop crash."""
    shop.answer = crash


def move_away(sandbox: PaymentSandbox, shop: Shop) -> None:
    """Set an address to which the webhooks of tests are not sent."""
    sandbox.client.change_settings(webhook_url="https://shop.example/webhook")


@pytest.mark.parametrize(
    ("end", "has_ended"), [(lambda _, shop: shop.close(), True), (start_crashing, False), (move_away, False)]
)
def test_only_a_server_that_is_gone_has_ended(
    payment_sandbox: PaymentSandbox, end: Callable[[PaymentSandbox, Shop], None], has_ended: bool
) -> None:
    """A server that refuses connections after the test has ended; one that closes them has a mistake."""
    shop, project = Shop(), project_of(payment_sandbox)
    payment_sandbox.client.change_settings(webhook_url=shop.url)
    run = RehearsedRun(project)
    project.rehearse(run)
    payment_sandbox.act(place(payment_sandbox))
    payment_sandbox.client.wait(idle=True)
    run.end_test()
    end(payment_sandbox, shop)
    payment_sandbox.act(place(payment_sandbox))
    payment_sandbox.clock.advance("P2D")
    assert run.has_shop_ended is has_ended
    if not has_ended:
        shop.close()


@pytest.mark.parametrize(("hooks", "implementation"), [(Services, ServerServices), (Rehearsal, RehearsedRun)])
def test_no_hook_is_left_to_its_default(hooks: type, implementation: type) -> None:
    """A server and a run of a rehearsal implement every hook, whose default does nothing."""
    names = {name for name, hook in vars(hooks).items() if callable(hook) and not name.startswith("_")}
    assert len(names) > 3
    assert names - vars(implementation).keys() == set()
