"""The typed client covers the control API, and raises refusals as errors."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from traceback import format_exception_only

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.serving.server import Server
from tests.support.driver import START, Sandbox, card
from tests.support.servers import make_server
from tests.support.shop import Shop


@pytest.fixture
def client(server: Server, shop: Shop) -> Iterator[SandboxClient]:
    """A client of a new project whose webhooks go to a shop."""
    owner = SandboxClient(server.url, "sandbox-key")
    project_client = owner.create_project(clock=f"frozen@{START}", mode="live", webhook_url=shop.url)
    yield project_client
    project_client.delete_project()


def place_order(client: SandboxClient, **fields: object) -> str:
    """Create an order, and return its id."""
    order = client.call(
        "POST", "/v1/orders/", {"currency": "EUR", "amount": 1000, "transactions": [card()], **fields}
    )
    order_id: str = order["id"]
    return order_id


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.projects(),
        lambda client: client.create_project(),
    ],
    ids=["list", "create"],
)
def test_calls_about_the_whole_server_send_its_control_token(call: Callable[[SandboxClient], object]) -> None:
    """Calls about all projects send the control token; without it the server refuses them."""
    with make_server(control_token="let-me-in") as guarded:
        call(SandboxClient(guarded.url, "sandbox-key", control_token="let-me-in"))
        with pytest.raises(SandboxError, match="control token"):
            call(SandboxClient(guarded.url, "sandbox-key"))


def test_the_clock_is_read_and_advanced(client: SandboxClient) -> None:
    """The clock is read as a datetime, advanced by a period, to a time or until idle, run and frozen."""
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert (client.clock.now, client.clock.mode) == (start, "frozen")
    order_id = place_order(client)
    advance = client.clock.advance("PT30M")
    assert (advance.begun, advance.ended, advance.stopped) == (start, client.clock.now, False)
    assert advance.labels[0] == f"expiry of {order_id}"
    client.clock.advance(to=datetime(2026, 3, 2, tzinfo=UTC))
    assert client.clock.now == datetime(2026, 3, 2, tzinfo=UTC)
    place_order(client)
    place_order(client)
    assert client.clock.advance(until="idle", max_events=1).stopped
    client.clock.run(rate=60)
    assert client.clock.mode == "running"
    client.clock.freeze()
    assert client.clock.mode == "frozen"


def test_a_refusal_is_raised_with_all_violations(client: SandboxClient) -> None:
    """A refusal is raised with its status, type and violations, or with the allowed actions."""
    with pytest.raises(SandboxError) as refused:
        client.change_settings(mod="live", payment_methods=5)
    assert (refused.value.status, refused.value.type) == (400, "ValidationError")
    violations = {violation.path: violation for violation in refused.value.violations}
    assert violations["mod"].nearest == "mode"
    assert "must be a list" in violations["payment_methods"].message
    assert format_exception_only(refused.value)[0].startswith("payment_sandbox.SandboxError: ")
    with pytest.raises(SandboxError) as impossible:
        client.act(place_order(client), "bank", "credit")
    assert impossible.value.allowed == ["visit", "pay", "cancel", "fail"]
    assert "409 ActionNotPossible" in str(impossible.value)


def test_another_server_raises_an_error(shop: Shop) -> None:
    """A response from another kind of server raises a SandboxError."""
    shop.answer = lambda received: 500
    with pytest.raises(SandboxError) as refused:
        SandboxClient(shop.url, "key").health()
    assert refused.value.status == 500


def test_events_are_streamed(client: SandboxClient) -> None:
    """Events are streamed in order, each with its kind, until the iterator is closed."""
    events = client.events()
    order_id = place_order(client)
    created = next(event for event in events if event.kind == "status")
    assert (created.data["order_id"], created.data["before"], created.data["after"]) == (
        order_id,
        None,
        "new",
    )
    client.clock.set("2026-03-01T13:00:00Z")
    assert client.clock.now == datetime(2026, 3, 1, 13, tzinfo=UTC)
    expired = next(event for event in events if event.kind == "status")
    assert (expired.data["after"], expired.number > created.number) == ("expired", True)
    events.close()


def test_a_wrong_key_is_no_missing_order(sandbox: Sandbox, client: SandboxClient) -> None:
    """The status of an order that does not exist is None; a refused key is an error."""
    assert client.status("00000000-0000-4000-8000-000000000000") is None
    with pytest.raises(SandboxError) as refused:
        SandboxClient(sandbox.url, "wrong-key").status("00000000-0000-4000-8000-000000000000")
    assert refused.value.status == 401


@pytest.mark.parametrize("order_id", ["../../reset/#", "..", ".", "", "x/../../../reset/?", "%2e%2e/"])
def test_no_id_leads_to_another_path(sandbox: Sandbox, client: SandboxClient, order_id: str) -> None:
    """An id is one segment of a path, whatever characters it has."""
    order = sandbox.place(card())
    for call in (client.overview, client.order, client.redeliver):
        with pytest.raises((SandboxError, ValueError)):
            call(order_id)
    with pytest.raises((SandboxError, ValueError)):
        client.act(order_id, "customer", "pay")
    assert sandbox.read(order)["status"] == "new"
