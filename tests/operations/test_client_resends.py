"""Requests that an HTTP client sends again by itself are not held against the shop's code."""

from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import Finding, review
from payment_sandbox.projects.http_clients import HTTP_CLIENTS, HttpClient
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card

TRIES = 40  # until two requests arrive within a tenth of a second, on a busy machine too
ORDER = b'{"currency": "EUR", "amount": 2450, "transactions": [{"payment_method": "credit-card"}]}'
MANUAL = card(capture_mode="manual", expiration_period="P7D")


def send(sandbox: Sandbox, method: str, path: str, body: bytes, agent: str, **headers: str) -> int | None:
    """Send a request with only these headers; None without a response."""
    key = b64encode(f"{sandbox.key}:".encode()).decode()
    agents = {"User-Agent": agent} if agent else {}
    every = {**agents, "Authorization": f"Basic {key}", "Content-Type": "application/json", **headers}
    connection = HTTPConnection(sandbox.url.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body, every)
        return connection.getresponse().status
    except (HTTPException, OSError):
        return None
    finally:
        connection.close()


def lose(sandbox: Sandbox, method: str, path: str, phase: str = "after") -> None:
    """Lose the next response."""
    when = {"method": method, "path": path, "nth": 1}
    sandbox.put("/control/faults/", {"faults": [{"when": when, "then": {"reset": True, "phase": phase}}]})


def marks(sandbox: Sandbox, method: str) -> list[dict[str, Any]]:
    """Return the two newest requests with a method."""
    items: list[dict[str, Any]] = sandbox.get(f"/control/journal/?method={method}").json()["items"]
    return items[-2:]


def resend(
    sandbox: Sandbox, method: str, agent: str, prepare: Callable[[], tuple[str, bytes]], phase: str = "after"
) -> None:
    """Send a request again at once after its response was lost, until the journal marks the second."""
    for _ in range(TRIES):
        sandbox.post("/control/reset/")
        path, body = prepare()
        lose(sandbox, method, path, phase)
        assert send(sandbox, method, path, body, agent) is None
        send(sandbox, method, path, body, agent)
        first, second = marks(sandbox, method)
        if second["resent_of"] is not None:
            assert second["resent_of"] == first["id"]
            assert first["resent_of"] is None
            return
    pytest.fail("no second request was marked")


def creates() -> tuple[str, bytes]:
    """Create an order."""
    return "/v1/orders/", ORDER


def findings(sandbox: Sandbox) -> list[Finding]:
    """Return the mistakes in the review, except that the project has no address for webhooks."""
    every = review(SandboxClient(sandbox.url, sandbox.key))
    return [each for each in every if each.is_open and each.rule != "HOOK-03"]


AGENTS = {"": "", "aiohttp/": "Python/3.11 aiohttp/3.14.5", "libcurl/": "PycURL/7.45 libcurl/7.88"}


REPEATING = [each for each in HTTP_CLIENTS if each.posts > 1 and not each.header]


@pytest.mark.parametrize("client", REPEATING, ids=lambda client: client.name)
def test_a_creation_that_the_client_sends_again_is_told_so(sandbox: Sandbox, client: HttpClient) -> None:
    """The finding names the client and its setting, not the shop, and there is no second finding."""
    resend(sandbox, "POST", AGENTS.get(client.agent, f"{client.agent}1.0"), creates)
    (finding,) = findings(sandbox)
    assert finding.rule == "CTL-23"
    assert "your shop's code was not told" in finding.problem
    assert "Your shop created" not in finding.problem
    assert client.name in finding.problem
    assert client.remedy in finding.advice
    assert finding.amount == 2450
    resent = marks(sandbox, "POST")[1]
    assert (
        "sent again by the HTTP client"
        in Dashboard(sandbox).open(f"orders/{resent['order_id']}/").answer.text
    )


def test_a_capture_that_the_client_sends_again_is_told_so(sandbox: Sandbox) -> None:
    """A capture by amount takes the money twice; a capture of everything is refused although it worked."""

    def authorizes(kind: str, body: bytes) -> tuple[str, bytes]:
        order = sandbox.acted(sandbox.place(MANUAL, amount=2450), "customer pay")
        return f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/{kind}/", body

    resend(sandbox, "POST", "Java/17", lambda: authorizes("captures/amount", b'{"amount": 400}'))
    (finding,) = findings(sandbox)
    assert (finding.amount, "captured €4.00 again" in finding.problem) == (400, True)
    resend(sandbox, "POST", "Java/17", lambda: authorizes("captures", b""))
    (finding,) = findings(sandbox)
    assert (finding.amount, "was refused, although the call had worked" in finding.problem) == (0, True)


@pytest.mark.parametrize("agent", ["python-urllib3/2.8.0", "Apache-HttpClient/4.5 (Java/17)"])
def test_a_cancellation_that_the_client_sends_again_is_told_so(sandbox: Sandbox, agent: str) -> None:
    """A cancellation that worked, and is refused when it comes again, is not the shop's mistake."""
    resend(sandbox, "DELETE", agent, lambda: (f"/v1/orders/{sandbox.place(card())['id']}/", b""))
    assert {"your shop's code was not told" in each.problem for each in findings(sandbox)} == {True}


def test_a_request_that_was_not_processed_may_come_again(sandbox: Sandbox) -> None:
    """Without a first order, a second request does no harm."""
    resend(sandbox, "POST", "Java/17", creates, phase="before")
    assert findings(sandbox) == []


@pytest.mark.parametrize(
    ("agent", "second", "headers"),
    [
        ("python-requests/2.34.2", ORDER, {}),
        ("Apache-HttpClient/4.5 (Java/17)", ORDER, {}),
        ("Java/17", ORDER.replace(b"EUR", b"EUR "), {}),
        ("Java/17", ORDER, {"X-Attempt": "2"}),
        ("JavaScript/17", ORDER, {}),
    ],
)
def test_what_no_client_sends_again_is_the_shops(
    sandbox: Sandbox, agent: str, second: bytes, headers: dict[str, str]
) -> None:
    """Another client, body or header shows that the shop's own code has made the second call."""
    lose(sandbox, "POST", "/v1/orders/")
    send(sandbox, "POST", "/v1/orders/", ORDER, agent)
    send(sandbox, "POST", "/v1/orders/", second, agent, **headers)
    assert [each["resent_of"] for each in marks(sandbox, "POST")] == [None, None]


def test_an_answered_request_is_never_marked(sandbox: Sandbox) -> None:
    """Without a lost response, an equal request is a double click of the shop."""
    sandbox.put("/control/faults/", {"faults": [{"when": {"path": "/x/"}, "then": {"reset": True}}]})
    for _ in range(2):
        send(sandbox, "POST", "/v1/orders/", ORDER, "Java/17")
    assert [each["resent_of"] for each in marks(sandbox, "POST")] == [None, None]
