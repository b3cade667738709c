"""Failed webhooks are retried, ten attempts at most."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import pytest

from tests.support.driver import Sandbox, by
from tests.support.shop import Shop


@pytest.mark.rule("HOOK-09", "HOOK-10", "HOOK-11")
@pytest.mark.parametrize("status", [400, 404, 410, 500, 503])
def test_refused_webhooks_are_tried_again_two_minutes_apart(
    watched: Sandbox, shop: Shop, status: int
) -> None:
    """Retries continue until an attempt succeeds."""
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
    """After ten attempts in eighteen minutes the webhook has failed."""
    shop.answer = lambda received: 500
    watched.place(by("bank-transfer"))
    watched.advance("P1D")
    (delivery,) = watched.webhooks(state="failed")
    assert [attempt["at"][14:16] for attempt in delivery["attempts"]] == [f"{2 * n:02d}" for n in range(10)]
    assert len(shop.received) == 10


@pytest.mark.rule("SET-56", "A30")
def test_a_refused_connection_is_tried_again(watched: Sandbox, shop: Shop) -> None:
    """The attempt is recorded with its error and without a response."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    order = watched.place(by("bank-transfer"), webhook_url=nowhere)
    watched.settle()
    watched.put(f"/v1/orders/{order['id']}/", {"webhook_url": shop.url})
    watched.advance("PT2M")
    (delivery,) = watched.webhooks()
    assert [attempt["response"] for attempt in delivery["attempts"]] == [None, None]
    error = f"connection refused: no server listens on {nowhere.removeprefix('http://').strip('/')}"
    assert delivery["attempts"][0]["error"] == error
    watched.read(order)
    assert error in watched.get("/control/report/").json()["text"]


@pytest.mark.rule("SET-56")
def test_a_failed_tls_handshake_is_tried_again(watched: Sandbox, shop: Shop) -> None:
    """The error names a receiver that speaks plain http under an https address."""
    watched.place(by("bank-transfer"), webhook_url=shop.url.replace("http://", "https://"))
    watched.settle()
    (delivery,) = watched.webhooks(state="pending")
    assert "serves plain http, but the address says https" in delivery["attempts"][0]["error"]


@contextmanager
def dripping_receiver() -> Iterator[str]:
    """A receiver that sends its response one byte at a time, each within the read timeout."""
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
    """A response that is incomplete after five seconds is a failure; the project is not blocked."""
    with dripping_receiver() as url:
        watched.place(by("bank-transfer"), webhook_url=url)
        assert watched.get("/control/clock/").status_code == 200
        watched.settle()
    (delivery,) = watched.webhooks(state="pending")
    assert "5 seconds" in delivery["attempts"][0]["error"]
    assert delivery["attempts"][0]["duration_ms"] > 4_900


@pytest.mark.rule("SET-57")
def test_the_time_for_an_answer_is_a_setting(watched: Sandbox) -> None:
    """The setting ``webhook_timeout`` replaces the five seconds."""
    watched.settings(webhook_timeout=0.2)
    with dripping_receiver() as url:
        watched.place(by("bank-transfer"), webhook_url=url)
        watched.settle()
    (delivery,) = watched.webhooks(state="pending")
    assert delivery["attempts"][0]["error"] == "no answer within 0.2 seconds"


@pytest.mark.rule("SET-58", "A30")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(watched: Sandbox, shop: Shop, status: int) -> None:
    """A redirect counts as delivered, with a warning."""
    shop.answer = lambda received: (status, {"Location": f"{shop.url}/elsewhere"})
    watched.place(by("bank-transfer"))
    watched.settle()
    (delivery,) = watched.webhooks(state="delivered")
    assert delivery["attempts"][0]["warning"].startswith("redirects are not followed: this one leads to ")
    assert [received.path for received in shop.received] == ["/webhook"]


def test_no_proxy_is_taken_from_the_environment(
    watched: Sandbox, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy settings of the environment do not apply to webhooks."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    watched.place(by("bank-transfer"))
    watched.settle()
    assert len(shop.received) == 1
