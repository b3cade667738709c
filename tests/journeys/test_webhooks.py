"""Webhooks: what is sent when, what is tried again, and what nobody delays."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event, Thread
from typing import Any

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop


@pytest.mark.rule("HOOK-01", "HOOK-03", "HOOK-05", "HOOK-06", "HOOK-07", "HOOK-08", "AUTH-03")
def test_a_webhook_says_which_order_and_nothing_else(watched: Sandbox, shop: Shop) -> None:
    """A POST with three fields in JSON; no status, no credentials."""
    order = watched.place(card())
    watched.acted(order, "customer visit")
    watched.settle()
    (received,) = shop.received
    assert received.headers["Content-Type"] == "application/json"
    assert received.body == {
        "event": "status_changed",
        "order_id": order["id"],
        "project_id": order["project_id"],
    }
    assert "Authorization" not in received.headers
    assert received.path == "/webhook"


@pytest.mark.rule("HOOK-02")
def test_every_change_of_an_orders_status_is_sent(watched: Sandbox, shop: Shop) -> None:
    """A payment without a visit before is a visit and a payment: two changes."""
    order = watched.place(card())
    watched.pay(order)
    watched.settle()
    assert shop.orders() == [order["id"]] * 2
    watched.put(f"/v1/orders/{order['id']}/", {"description": "no change of status"})
    watched.settle()
    assert len(shop.received) == 2


@pytest.mark.rule("SET-55")
def test_a_creation_sends_one_unless_the_order_is_new(watched: Sandbox, shop: Shop) -> None:
    """Processing, accepted, cancelled: one each; new: none."""
    orders = [
        watched.place(card()),
        watched.place(),
        watched.place(by("bank-transfer")),
        watched.place_with_lines("invoice-later-b"),
        watched.place_with_lines("pay-later-a", amount=66601),
    ]
    watched.settle()
    assert shop.orders() == [order["id"] for order in orders[2:]]


@pytest.mark.rule("HOOK-04", "ORD-10")
def test_an_orders_address_beats_the_projects_for_that_order(watched: Sandbox, shop: Shop) -> None:
    """Other orders keep the project's; a later update counts as well."""
    own = watched.place(card(), webhook_url=f"{shop.url}/own")
    other, updated = watched.place(card()), watched.place(card())
    watched.put(f"/v1/orders/{updated['id']}/", {"webhook_url": f"{shop.url}/new"})
    for order in (own, other, updated):
        watched.acted(order, "customer visit")
    watched.settle()
    assert [received.path for received in shop.received] == ["/webhook/own", "/webhook", "/webhook/new"]


def test_without_an_address_nothing_is_sent(sandbox: Sandbox) -> None:
    """And nothing is owed."""
    sandbox.pay(sandbox.place(card()))
    assert sandbox.webhooks() == []


@pytest.mark.rule("HOOK-13", "SEPA-02")
def test_a_transfer_reports_by_webhook(project: Callable[..., Sandbox], shop: Shop) -> None:
    """The credit two days later is told at its own time."""
    live = project(mode="live", webhook_url=shop.url)
    live.scenario({"then": {"credit": {"after": "P2D"}}})
    order = live.place(by("bank-transfer"))
    live.advance("P3D")
    assert shop.orders() == [order["id"]] * 2
    assert live.webhooks()[-1]["attempts"][0]["at"] == "2026-03-03T12:00:00.000000+00:00"


@pytest.mark.rule("HOOK-09", "HOOK-10", "HOOK-11")
@pytest.mark.parametrize("status", [400, 404, 410, 500, 503])
def test_refused_webhooks_are_tried_again_two_minutes_apart(
    watched: Sandbox, shop: Shop, status: int
) -> None:
    """Until one is taken."""
    answers = iter([status, status, 200])
    shop.answer = lambda received: next(answers)
    order = watched.place(by("bank-transfer"))
    watched.settle()
    assert watched.webhooks()[0]["state"] == "pending"
    assert [(item["kind"], item["at"]) for item in watched.agenda() if item["kind"] == "webhook"] == [
        ("webhook", "2026-03-01T12:02:00.000000+00:00")
    ]
    watched.advance("PT1H")
    (delivery,) = watched.webhooks()
    assert (delivery["state"], delivery["order_id"], delivery["url"]) == ("delivered", order["id"], shop.url)
    assert [(a["number"], a["at"][14:19], a["response"]["status"]) for a in delivery["attempts"]] == [
        (1, "00:00", status), (2, "02:00", status), (3, "04:00", 200)
    ]  # fmt: skip


@pytest.mark.rule("HOOK-12", "LIM-06")
def test_the_tenth_failed_delivery_is_the_last(watched: Sandbox, shop: Shop) -> None:
    """Ten attempts in eighteen minutes, then the webhook has failed for good."""
    shop.answer = lambda received: 500
    watched.place(by("bank-transfer"))
    watched.advance("P1D")
    (delivery,) = watched.webhooks(state="failed")
    assert [attempt["at"][14:16] for attempt in delivery["attempts"]] == [f"{2 * n:02d}" for n in range(10)]
    assert len(shop.received) == 10


@pytest.mark.rule("SET-56")
def test_a_refused_connection_is_tried_again(watched: Sandbox, shop: Shop) -> None:
    """The attempt is recorded with its error and without an answer."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    order = watched.place(by("bank-transfer"), webhook_url=nowhere)
    watched.settle()
    watched.put(f"/v1/orders/{order['id']}/", {"webhook_url": shop.url})
    watched.advance("PT2M")
    (delivery,) = watched.webhooks()
    assert [attempt["response"] for attempt in delivery["attempts"]] == [None, None]
    assert "refused" in delivery["attempts"][0]["error"].lower()


@pytest.mark.rule("SET-56")
def test_a_failed_tls_handshake_is_tried_again(watched: Sandbox, shop: Shop) -> None:
    """A receiver that speaks no TLS under https."""
    watched.place(by("bank-transfer"), webhook_url=shop.url.replace("http://", "https://"))
    watched.settle()
    (delivery,) = watched.webhooks(state="pending")
    assert "SSL" in delivery["attempts"][0]["error"]


@contextmanager
def dripping_receiver() -> Iterator[str]:
    """A receiver that answers a byte at a time, each well within any limit for one read."""
    stopped = Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with closing(connection):
                while not stopped.wait(0.2):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        stopped.set()
        thread.join()


@pytest.mark.rule("SET-57")
def test_five_seconds_without_an_answer_are_a_failed_delivery(watched: Sandbox) -> None:
    """However slowly the receiver goes on answering; and meanwhile the project answers."""
    with dripping_receiver() as url:
        watched.place(by("bank-transfer"), webhook_url=url)
        assert watched.get("/control/clock/").status_code == 200
        watched.settle()
    (delivery,) = watched.webhooks(state="pending")
    assert "5 seconds" in delivery["attempts"][0]["error"]
    assert 4_900 < delivery["attempts"][0]["duration_ms"] < 8_000


@pytest.mark.rule("SET-58")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(watched: Sandbox, shop: Shop, status: int) -> None:
    """They count as delivered, with a warning."""
    shop.answer = lambda received: (status, {"Location": f"{shop.url}/elsewhere"})
    watched.place(by("bank-transfer"))
    watched.settle()
    (delivery,) = watched.webhooks(state="delivered")
    assert delivery["attempts"][0]["warning"] == "redirects are not followed"
    assert [received.path for received in shop.received] == ["/webhook"]


def test_no_proxy_is_taken_from_the_environment(
    watched: Sandbox, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook goes to the shop, whatever the developer's machine is set to."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    watched.place(by("bank-transfer"))
    watched.settle()
    assert len(shop.received) == 1


@pytest.mark.rule("SET-59")
def test_a_webhook_is_sent_after_its_response(watched: Sandbox, shop: Shop) -> None:
    """A receiver that asks for the response finds it there, each time."""
    answered, in_time = Event(), list[bool]()

    def ask_for_the_response(received: Received) -> int:
        in_time.append(answered.wait(3))
        return 200

    shop.answer = ask_for_the_response
    for _ in range(20):
        answered.clear()
        watched.place(by("bank-transfer"))
        answered.set()
        watched.settle()
    assert in_time == [True] * 20


@pytest.mark.rule("SET-60")
def test_a_webhook_can_be_sent_before_its_response(project: Callable[..., Sandbox], shop: Shop) -> None:
    """When the response comes, the receiver has answered; it could read the order meanwhile."""
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


def test_a_handler_that_changes_things_before_the_response_does_not_deadlock(
    project: Callable[..., Sandbox], shop: Shop
) -> None:
    """Its own webhooks follow; nobody waits for himself."""
    sandbox = project(webhook_url=shop.url, webhook_timing="before_response")

    def cancel_back(received: Received) -> int:
        sandbox.delete(f"/v1/orders/{received.body['order_id']}/")
        return 200

    shop.answer = cancel_back
    order = sandbox.place(by("bank-transfer"))
    sandbox.settle()
    assert sandbox.read(order)["status"] == "cancelled"
    assert all(attempt["duration_ms"] < 4000 for item in sandbox.webhooks() for attempt in item["attempts"])


@pytest.mark.rule("CTL-14")
def test_a_handler_sees_the_clock_at_its_webhooks_time(watched: Sandbox, shop: Shop) -> None:
    """What it starts is part of the same advance."""
    times: list[str] = []
    started: list[str] = []

    def act_back(received: Received) -> int:
        times.append(watched.now())
        if not started:
            started.append(watched.place(card(expiration_period="PT5M"))["id"])
        return 200

    shop.answer = act_back
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
    """Fifty orders, fifty webhooks, first in, first out."""
    orders = [watched.place(by("bank-transfer"))["id"] for _ in range(50)]
    watched.settle()
    assert shop.orders() == orders


def test_a_slow_receiver_delays_no_other_project(project: Callable[..., Sandbox], shop: Shop) -> None:
    """One shop is still thinking when the other has had its webhook."""
    thinking, done = Event(), Event()

    def think(received: Received) -> int:
        thinking.set()
        return 200 if done.wait(4) else 500

    slow_shop = Shop()
    slow_shop.answer = think
    slow, quick = project(webhook_url=slow_shop.url), project(webhook_url=shop.url)
    slow.place(by("bank-transfer"))
    assert thinking.wait(4)
    quick.place(by("bank-transfer"))
    quick.settle()
    assert len(shop.received) == 1
    done.set()
    slow.settle()
    slow_shop.close()
    assert slow.webhooks()[0]["state"] == "delivered"


def test_64_projects_advance_at_once_with_handlers_that_read_back(server: Server) -> None:
    """Every handler reads its order from the very server that its project's advance keeps waiting."""
    shop, keys, statuses = Shop(), dict[str, str](), list[str]()

    def read_back(received: Received) -> int:
        body = received.body
        answer = requests.get(
            f"{server.url}/v1/orders/{body['order_id']}/", auth=(keys[body["project_id"]], ""), timeout=4
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
    assert [[event["kind"] for event in found] for found in events] == [["expiry", "webhook"]] * 64
    assert statuses == ["expired"] * 64
    shop.close()


@pytest.mark.rule("CTL-21")
def test_webhooks_can_be_filtered(watched: Sandbox, shop: Shop) -> None:
    """By order and by state; an unknown state is refused with the known ones."""
    first, second = watched.place(by("bank-transfer")), watched.place(by("bank-transfer"))
    watched.settle()
    shop.answer = lambda received: 500
    third = watched.place(by("bank-transfer"))
    watched.settle()
    assert [item["order_id"] for item in watched.webhooks()] == [first["id"], second["id"], third["id"]]
    assert [item["order_id"] for item in watched.webhooks(order_id=second["id"])] == [second["id"]]
    assert [item["order_id"] for item in watched.webhooks(state="pending")] == [third["id"]]
    assert watched.webhooks(state="failed") == []
    assert watched.get("/control/webhooks/?state=lost").status_code == 400


@pytest.mark.rule("CTL-21")
def test_an_attempt_records_what_was_sent_and_answered(watched: Sandbox, shop: Shop) -> None:
    """Headers, body, answer and both times; a long answer is cut."""
    order = watched.place(by("bank-transfer"))
    watched.settle()
    (attempt,) = watched.webhooks()[0]["attempts"]
    assert order["id"] in attempt["request"]["body"]
    assert attempt["request"]["headers"]["Content-Type"] == "application/json"
    assert attempt["response"] == {"status": 200, "body": "noted"}
    assert attempt["at"] == "2026-03-01T12:00:00.000000+00:00"
    assert attempt["real_at"] > "2026"
    assert attempt["duration_ms"] > 0


def effect(sandbox: Sandbox, then: dict[str, Any], **when: Any) -> None:
    """Let webhooks fare so."""
    sandbox.scenario(webhooks=[{"when": when, "then": then}])


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_answer_for_the_shop(watched: Sandbox, shop: Shop) -> None:
    """The first attempt gets a 503 without reaching the shop, the second reaches it."""
    effect(watched, {"answer": 503}, attempt=1, status="processing")
    watched.place(by("bank-transfer"))
    watched.advance("PT2M")
    statuses = [attempt["response"]["status"] for attempt in watched.webhooks()[0]["attempts"]]
    assert (statuses, len(shop.received)) == ([503, 200], 1)


@pytest.mark.rule("SCN-06")
@pytest.mark.parametrize(("then", "state"), [({"drop": True}, "delivered"), ({"timeout": True}, "pending")])
def test_a_scenario_can_lose_a_webhook(
    watched: Sandbox, shop: Shop, then: dict[str, Any], state: str
) -> None:
    """Dropped counts as delivered, timed out as failed; the shop hears of neither."""
    effect(watched, then)
    watched.place(by("bank-transfer"))
    watched.settle()
    assert (watched.webhooks()[0]["state"], shop.received) == (state, [])


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_repeat_a_webhook(watched: Sandbox, shop: Shop) -> None:
    """The shop gets it three times."""
    effect(watched, {"duplicate": 3})
    order = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.orders() == [order["id"]] * 3


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_delay_a_webhook(watched: Sandbox, shop: Shop) -> None:
    """It goes out ten minutes later, once."""
    effect(watched, {"delay": "PT10M"})
    watched.place(by("bank-transfer"))
    watched.advance("PT9M59S")
    assert shop.received == []
    watched.advance("PT1H")
    assert len(shop.received) == 1
    assert watched.webhooks()[0]["attempts"][0]["at"] == "2026-03-01T12:10:00.000000+00:00"


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_swap_webhooks(watched: Sandbox, shop: Shop) -> None:
    """The first waits until the second has gone."""
    effect(watched, {"swap": True}, status="processing")
    first = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.received == []
    second = watched.place_with_lines("invoice-later-b")
    watched.settle()
    assert shop.orders() == [second["id"], first["id"]]
