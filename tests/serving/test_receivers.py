"""A server that delivers webhooks only to allowed hosts."""

import socket
from threading import Thread

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import review
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server
from tests.support.shop import Shop


def error_and_advice(hosts: tuple[str, ...], url: str) -> tuple[str | None, list[str]]:
    """Deliver a webhook to this address; return its recorded error and the advice of the review."""
    with make_server(deliver_to=hosts, clock="frozen") as server:
        sandbox = Sandbox(server, webhook_url=url)
        order = sandbox.place(card())
        sandbox.pay(order)
        sandbox.settle()
        client = SandboxClient(sandbox.url, sandbox.key)
        explained = "\n".join(str(timeline_entry["label"]) for timeline_entry in client.timeline(order["id"]))
        advice = [finding.advice for finding in review(client) if finding.rule == "HOOK-09"]
        attempt = sandbox.webhooks()[0]["attempts"][0]
        assert attempt["error"] is None or "not sent" in explained
        return attempt["error"], advice


def test_another_host_gets_no_webhook(shop: Shop) -> None:
    """The record, the history and the review name the allowed hosts and the option that allows this one."""
    error, advice = error_and_advice(("shop.example", "127.0.0.2"), shop.url)
    host = shop.url.split("/")[2].partition(":")[0]
    assert error == (
        "not sent: this server delivers webhooks only to shop.example, 127.0.0.2; "
        f"to allow {host}, add serve --deliver-to {host}"
    )
    assert set(advice) == {
        "Correct the address, or start the server with serve --deliver-to HOST for its host."
    }
    assert shop.received == []


@pytest.mark.parametrize("host", ["shop.localhost", "localhost.", "a.shop.localhost."])
def test_names_below_localhost_are_this_machine(shop: Shop, host: str) -> None:
    """Webhooks reach this machine under these names, whichever resolver it has; the Host stays as written."""
    assert error_and_advice((), shop.url.replace("127.0.0.1", host)) == (None, [])
    assert shop.received[0].headers["Host"].startswith(f"{host}:")


@pytest.mark.parametrize("write", [str, str.upper, "{}.".format])
def test_a_host_that_is_named_gets_them(shop: Shop, write: type[str]) -> None:
    """A host is allowed in any spelling, and every host if none is named."""
    url = shop.url.replace("127.0.0.1", "localhost")
    for hosts in ((write("localhost"), "shop.example"), ()):
        assert error_and_advice(hosts, url) == (None, [])
    assert len(shop.received) > 1


@pytest.mark.parametrize(
    ("interim", "status"),
    [("103 Early Hints", 500), ("102 Processing", 204), ("101 Switching Protocols", None)],
)
def test_an_interim_answer_is_no_answer(interim: str, status: int | None) -> None:
    """The status is that of the final answer; a switch of protocols is none."""
    heads = [f"HTTP/1.1 {line}\r\n" for line in ("100 Continue", interim, f"{status or 200} Final")]

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall("\r\n".join((*heads, "")).encode())

    with socket.create_server(("127.0.0.1", 0)) as listening, make_server(clock="frozen") as server:
        Thread(target=answer, daemon=True).start()
        sandbox = Sandbox(server, webhook_url=f"http://127.0.0.1:{listening.getsockname()[1]}/")
        sandbox.acted(sandbox.place(card()), "customer visit")
        sandbox.settle()
        attempt = sandbox.webhooks()[0]["attempts"][0]
    assert (attempt["response"] or {}).get("status") == status
    assert ("answered 101" in (attempt["error"] or "")) == (status is None)
