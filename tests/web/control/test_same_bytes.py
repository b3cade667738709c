"""The same seed and calls give the same bytes in every response, on any server."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from payment_sandbox.serving.lazy_servers import LazyServer
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox.testing.clients.with_requests import create_session
from tests.model.answers import ServiceAnswer
from tests.model.driver import SessionCaller
from tests.model.walking import WalkedProject, walk
from tests.support.servers import make_server

PUBLIC_URL: Final = "http://sandbox.example"
SEED: Final = 7
HOST: Final = {"Host": PUBLIC_URL.partition("//")[2]}
REAL_TIME_FIELDS: Final = re.compile(r'"(real_at|duration_ms)": ?("[^"]*"|[\d.e-]+|null)')
"""The fields that hold real time and so differ; the documentation lists them."""
CONNECTION_HEADERS: Final = (
    *("date", "server", "connection", "keep-alive", "transfer-encoding", "content-length"),
)
CONTROL_LISTS: Final = (
    *("actions", "agenda", "bankqr", "cards", "clock", "faults", "fidelity", "journal", "orders"),
    *("project", "review", "scenario", "scenarios", "servers", "state", "timeline", "webhooks"),
)
PAYS, FAILS = {"customer": "pays", "after": "PT2M"}, {"customer": "fails", "after": "PT2M", "reason": "x"}
BUSY: Final = {
    "name": "busy",
    "rules": [{"when": {"amount": 777}, "then": PAYS}, {"when": {"amount": 778}, "then": FAILS}],
    "webhooks": [
        {"when": {"status": "expired", "attempt": 1}, "then": {"answer": 503}},
        {"when": {"status": "cancelled"}, "then": {"delay": "PT2M"}},
        {"when": {"status": "error"}, "then": {"duplicate": 2}},
    ],
}


class Recording:
    """A session that records the response to each request."""

    def __init__(self, session: requests.Session, lines: list[tuple[str, str]]) -> None:
        self._session, self._lines = session, lines

    def request(
        self, method: str, url: str, *, json: Any = None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """Make a call, and record its response without the fields that hold real time."""
        answer = self._session.request(method, url, json=json, headers={**HOST, **(headers or {})})
        names = sorted(name for name in answer.headers if name.lower() not in CONNECTION_HEADERS)
        head = "\n".join(f"{name}: {answer.headers[name]}" for name in names)
        path = "/".join(url.split("/")[3:])
        body = REAL_TIME_FIELDS.sub(r'"\1": …', answer.text)
        self._lines.append((f"{method} /{path}", f"{answer.status_code}\n{head}\n\n{body}"))
        return answer


class SettledCaller(SessionCaller):
    """Waits after each change until its webhooks are answered, because real time decides when they are."""

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> ServiceAnswer:
        """Make a call, and wait."""
        answer = super().__call__(method, path, body, headers=headers)
        if method != "GET":
            super().__call__("GET", "/control/wait/?idle=1")
        return answer


def record_walks(
    *, examples: int = 1, in_process: bool = False, timing: str = "after_response", **options: Any
) -> list[tuple[str, str]]:
    """Record random walks of the model on a new server, each with an end of its own."""
    lines: list[tuple[str, str]] = []
    if in_process:
        options["listener"] = LazyServer()
    with make_server(seed=SEED, public_url=PUBLIC_URL, **options) as server:
        url = server.url if in_process else server.local_url

        def open_session(key: str) -> Recording:
            return Recording(create_session(server, key) if in_process else direct_session(key), lines)

        def create_project(settings: dict[str, Any]) -> WalkedProject:
            body = {**settings, "webhook_timing": timing}
            created = open_session("").request("POST", f"{url}/control/projects/", json=body).json()
            caller = SettledCaller(open_session(created["api_key"]), url)
            return WalkedProject(caller, lambda: end_walk(caller))

        walk(create_project, examples=examples, steps=5 if in_process else 20, shrinks=False)
    return lines


def end_walk(call: SessionCaller) -> None:
    """Read everything, then make calls that no walk makes, and read everything again."""
    read_everything(call)
    let_events_coincide(call)
    path = f"/v1/orders/{create(call)['id']}/"
    call("POST", "/v1/orders/", {"currency": "USD", "amount": "1", "transactions": [{}]})
    for _ in range(2):
        call("POST", "/v1/orders/", {"currency": "EUR", "amount": 5}, headers={"Idempotency-Key": "one"})
    call(
        "PUT",
        "/control/faults/",
        {"faults": [{"when": {"method": "GET", "nth": 2}, "then": {"status": 503}}]},
    )
    for _ in range(3):
        call("GET", path)
    call("DELETE", "/control/faults/")
    state = call("GET", "/control/state/").data
    create(call)
    call("PUT", "/control/state/", state)
    newest = call("GET", "/control/webhooks/").data["items"][-1]
    call("POST", f"/control/webhooks/{newest['id']}/redeliver/", {})
    call("GET", f"/control/webhooks/{newest['id']}/")
    read_everything(call)
    call("POST", "/control/reset/")
    create(call)
    read_everything(call)


def create(call: SessionCaller, amount: int = 1000, **attempt: Any) -> Any:
    """Create a card order."""
    attempts = [{"payment_method": "credit-card", **attempt}]
    body = {"currency": "EUR", "amount": amount, "transactions": attempts, "extra": {"note": "1"}}
    return call("POST", "/v1/orders/", body).data


def let_events_coincide(call: SessionCaller) -> None:
    """Let customers, retries, delayed webhooks and expiries coincide."""
    call("PUT", "/control/scenario/", BUSY)
    for amount in (777, 778, 777, 778):
        create(call, amount)
        create(call, expiration_period="PT2M")
        call("DELETE", f"/v1/orders/{create(call)['id']}/")
    call("GET", "/control/agenda/")
    for target in ({"by": "PT2M"}, {"by": "PT2M"}, {"by": "PT30M"}, {"until": "idle"}):
        call("POST", "/control/clock/advance/", target)


def read_everything(call: SessionCaller) -> None:
    """Read every list, order and request of the control API."""
    for name in CONTROL_LISTS:
        call("GET", f"/control/{name}/")
    for order in call("GET", "/control/orders/?limit=1000").data["items"]:
        for path in ("/v1/orders/{id}/", "/control/orders/{id}/", "/control/timeline/?order_id={id}"):
            call("GET", path.format(**order))
    for entry in call("GET", "/control/journal/").data["items"][-10:]:
        call("GET", f"/control/journal/{entry['id']}/")


def differences(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> list[str]:
    """Return the calls whose responses differ."""
    return [f"{a[0]}: {b[0]}" for a, b in zip(one, other, strict=True) if a != b]


@pytest.mark.prove
def test_same_bytes_over_http(tmp_path: Path) -> None:
    """Two servers, one with a state file, give the same bytes; another seed gives other identifiers.

    Two servers whose webhooks precede responses give the same bytes, too.
    """
    first, second = record_walks(examples=2), record_walks(examples=2, state=tmp_path / "state.db")
    assert differences(first, second) == []
    assert len(first) > 500
    with make_server(seed=SEED + 1, public_url=PUBLIC_URL) as server:
        created = direct_session("").post(f"{server.local_url}/control/projects/", json={}).json()
    assert created["api_key"] not in first[0][1]

    timing = "before_response"
    assert differences(record_walks(timing=timing), record_walks(timing=timing)) == []


def test_same_bytes_in_process() -> None:
    """Calls give the same bytes in process, too."""
    assert differences(record_walks(in_process=True), record_walks(in_process=True)) == []
