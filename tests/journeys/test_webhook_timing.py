"""Timing and order of webhooks, and isolation from slow receivers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import requests

from payment_sandbox.projects.rehearsal import NO_REHEARSAL, Rehearsal
from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop


@pytest.mark.rule("SET-59")
def test_a_webhook_is_sent_after_its_response(watched: Sandbox, shop: Shop) -> None:
    """The client has the response before the receiver gets the webhook."""
    answered, in_time = Event(), list[bool]()

    def await_response(received: Received) -> int:
        in_time.append(answered.wait(3))
        return 200

    shop.answer = await_response
    for _ in range(20):
        answered.clear()
        watched.place(by("bank-transfer"))
        answered.set()
        watched.settle()
    assert in_time == [True] * 20


@pytest.mark.rule("SET-60")
def test_a_webhook_can_be_sent_before_its_response(project: Callable[..., Sandbox], shop: Shop) -> None:
    """The receiver answers before the response, and can read the order meanwhile."""
    sandbox = project(webhook_url=shop.url, webhook_timing="before_response")
    seen: list[str] = []

    def read_back(received: Received) -> int:
        seen.append(sandbox.read(received.body["order_id"])["status"])
        return 200

    shop.answer = read_back
    order = sandbox.place(by("bank-transfer"))
    assert shop.orders() == [order["id"]]
    assert seen == ["processing"]
    assert sandbox.webhooks()[0]["state"] == "delivered"


class Unchanged(Rehearsal):
    """A rehearsal that changes nothing."""


@pytest.mark.rule("SET-60")
@pytest.mark.parametrize("rehearsal", [NO_REHEARSAL, Unchanged()], ids=["usual", "rehearsed"])
def test_no_response_comes_before_the_receiver_has_answered(
    project: Callable[..., Sandbox], shop: Shop, rehearsal: Rehearsal
) -> None:
    """The response is held until the receiver answers, however long that takes, in a rehearsal, too."""
    sandbox = project(webhook_url=shop.url, webhook_timing="before_response")
    rehearsed = sandbox.project_in_process
    rehearsed.rehearse(rehearsal)
    responded, was_early = Event(), list[bool]()

    def await_response(received: Received) -> int:
        was_early.append(responded.wait(0.5))
        return 200

    shop.answer = await_response
    sandbox.place(by("bank-transfer"))
    responded.set()
    assert was_early == [False]


def test_a_handler_that_changes_things_before_the_response_does_not_deadlock(
    project: Callable[..., Sandbox], shop: Shop
) -> None:
    """Webhooks of changes that a handler makes are sent later, without a deadlock."""
    sandbox = project(webhook_url=shop.url, webhook_timing="before_response")

    def cancel_order(received: Received) -> int:
        sandbox.delete(f"/v1/orders/{received.body['order_id']}/")
        return 200

    shop.answer = cancel_order
    order = sandbox.place(by("bank-transfer"))
    sandbox.settle()
    assert sandbox.read(order)["status"] == "cancelled"
    assert {attempt["error"] for item in sandbox.webhooks() for attempt in item["attempts"]} == {None}


@pytest.mark.rule("CTL-14")
def test_a_handler_sees_the_clock_at_its_webhooks_time(watched: Sandbox, shop: Shop) -> None:
    """Changes that a handler makes belong to the same advance."""
    times: list[str] = []
    started: list[str] = []

    def place_order_once(received: Received) -> int:
        times.append(watched.now())
        if not started:
            started.append(watched.place(card(expiration_period="PT5M"))["id"])
        return 200

    shop.answer = place_order_once
    first = watched.place(card(expiration_period="PT10M"))
    events = watched.advance("PT1H")
    assert times == ["2026-03-01T12:10:00.000000+00:00", "2026-03-01T12:15:00.000000+00:00"]
    assert [(event["kind"], event["order_id"], event["at"][14:16]) for event in events] == [
        ("expiry", first["id"], "10"),
        ("webhook", first["id"], "10"),
        ("expiry", started[0], "15"),
        ("webhook", started[0], "15"),
    ]
    assert watched.now() == "2026-03-01T13:00:00.000000+00:00"


def test_webhooks_come_in_the_order_of_their_changes(watched: Sandbox, shop: Shop) -> None:
    """The webhooks of fifty orders arrive in the order of creation."""
    orders = [watched.place(by("bank-transfer"))["id"] for _ in range(50)]
    watched.settle()
    assert shop.orders() == orders


@pytest.mark.rule("CTL-08")
def test_an_advance_holds_up_no_other_project(project: Callable[..., Sandbox], shop: Shop) -> None:
    """While one project waits for its shop, another one can advance its clock."""
    one, other = project(webhook_url=shop.url), project()
    moved: list[int] = []

    def advance_other(received: Received) -> int:
        moved.append(other.post("/control/clock/advance/", {"by": "PT1H"}).status_code)
        return 200

    shop.answer = advance_other
    one.place(card())
    one.advance("PT1H")
    assert moved == [200]


@pytest.mark.rule("CTL-08")
def test_a_slow_receiver_delays_no_other_project(project: Callable[..., Sandbox], shop: Shop) -> None:
    """Another project's webhook arrives while a slow receiver is still working."""
    slow_shop = Shop()
    blocked, released = slow_shop.hold()
    slow, quick = project(webhook_url=slow_shop.url), project(webhook_url=shop.url)
    slow.place(by("bank-transfer"))
    assert blocked.wait(60)
    quick.place(by("bank-transfer"))
    quick.settle()
    assert len(shop.received) == 1
    released.set()
    slow.settle()
    slow_shop.close()
    assert slow.webhooks()[0]["state"] == "delivered"


def test_64_projects_advance_at_once_with_handlers_that_read_back(server: Server) -> None:
    """Handlers can read orders from the server while the advance waits for them."""
    shop, keys, statuses = Shop(), dict[str, str](), list[str]()

    def read_back(received: Received) -> int:
        body = received.body
        answer = requests.get(
            f"{server.url}/v1/orders/{body['order_id']}/", auth=(keys[body["project_id"]], "")
        )
        statuses.append(answer.json()["status"])
        return 200

    shop.answer = read_back
    projects = [Sandbox(server, webhook_url=shop.url) for _ in range(64)]
    for sandbox in projects:
        keys[sandbox.project["project_id"]] = sandbox.key
        sandbox.place(card())
    with ThreadPoolExecutor(64) as threads:
        events = list(threads.map(lambda sandbox: sandbox.advance("PT30M"), projects))
    assert [[event["kind"] for event in project_events] for project_events in events] == [
        ["expiry", "webhook"]
    ] * 64
    assert statuses == ["expired"] * 64
    shop.close()
