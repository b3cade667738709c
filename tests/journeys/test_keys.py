"""One Idempotency-Key has one effect: for concurrent calls, under faults, and after a restart."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from payment_sandbox.projects.caller import SAVED_ANSWERS_MAX, TrackedRequest
from payment_sandbox.serving.server import Server
from payment_sandbox.web.call import CONNECTION, ClientConnection
from tests.support.driver import Sandbox, card
from tests.support.projects import save_answer
from tests.support.servers import make_server
from tests.support.state_files import reconnect, snapshot_of

ORDER = {"currency": "EUR", "amount": 1295}
PATH = "/v1/orders/"


def key(name: str) -> dict[str, str]:
    """Return the header for a key."""
    return {"Idempotency-Key": name}


def create(sandbox: Sandbox, name: str) -> requests.Response:
    """Create an order with a key, on a connection of its own."""
    auth, headers = (sandbox.key, ""), key(name)
    return requests.post(
        f"{sandbox.url}{PATH}", json={**ORDER, "merchant_order_id": name}, auth=auth, headers=headers
    )


def order_count(sandbox: Sandbox) -> int:
    """Return the number of orders."""
    return len(sandbox.get("/control/orders/").json()["items"])


@pytest.fixture(params=["memory", "sqlite"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """A project of a server, on each store in turn."""
    state: dict[str, object] = {}
    if request.param == "sqlite":
        state = {"state": tmp_path / "state.db"}
    with make_server(**state) as server:
        yield Sandbox(server)


@pytest.mark.rule("A57", "SET-71")
def test_concurrent_calls_with_one_key_create_one_order(stored: Sandbox) -> None:
    """Of concurrent calls with a key, one creates the order, and all get its answer."""
    for number in range(5):
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(create, [stored] * 4, [f"order-{number}"] * 4))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 3
    assert order_count(stored) == 5


def test_a_slow_call_and_its_retry_create_one_order(sandbox: Sandbox) -> None:
    """A slow call and its retry get one answer: the retry waits for the slow call."""
    slow = {"when": {"method": "POST", "nth": 1}, "then": {"latency": 0.5}}
    sandbox.put("/control/faults/", {"faults": [slow]})
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(sandbox.post, PATH, ORDER, headers=key("slow")) for _ in range(2)]
        answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert ["Idempotency-Replayed" in answer.headers for answer in answers].count(True) == 1
    assert order_count(sandbox) == 1


@pytest.mark.parametrize("fault", ["reset", "hang", "status"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_retry_after_a_lost_answer(sandbox: Sandbox, fault: str, phase: str) -> None:
    """Whether a fault loses the request or its answer, the retry leaves one order."""
    value = {"reset": True, "hang": 0.01, "status": 503}[fault]
    broken = {"when": {"method": "POST", "nth": 1}, "then": {fault: value, "phase": phase}}
    sandbox.put("/control/faults/", {"faults": [broken]})
    for _ in range(3):
        try:
            answer = sandbox.http.post(
                f"{sandbox.url}{PATH}", json=ORDER, auth=(sandbox.key, ""), headers=key("lost")
            )
        except requests.ConnectionError:
            continue
    assert answer.status_code == 201
    assert order_count(sandbox) == 1


def test_a_key_survives_a_restart(tmp_path: Path) -> None:
    """After a restart, a retry gets the first answer."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        sandbox = Sandbox(server)
        first = create(sandbox, "order-17")
    with make_server(state=state) as server:
        sandbox = reconnect(sandbox, server)
        again = create(sandbox, "order-17")
        assert (again.content, again.headers["ETag"]) == (first.content, first.headers["ETag"])
        assert order_count(sandbox) == 1


@pytest.mark.rule("A57")
def test_a_key_is_saved_for_an_hour_of_sandbox_time(stored: Sandbox) -> None:
    """Just before the hour is over, a retry is replayed; at its end, the key is free."""
    first = create(stored, "order-17").json()["id"]
    stored.advance("PT59M59S")
    assert create(stored, "order-17").json()["id"] == first
    stored.advance("PT1S")
    later = create(stored, "order-17").json()["id"]
    assert later != first
    stored.advance("PT59M59S")
    assert create(stored, "order-17").json()["id"] == later
    assert [saved.order_id for saved in stored.project_in_process.epoch.store.answers()] == [later]


@pytest.mark.rule("A57")
def test_a_reset_forgets_the_keys(stored: Sandbox) -> None:
    """After a reset, a key creates an order again."""
    create(stored, "order-17")
    stored.post("/control/reset/")
    assert "Idempotency-Replayed" not in create(stored, "order-17").headers
    assert order_count(stored) == 1


@pytest.mark.rule("A57")
def test_a_refused_call_claims_nothing(sandbox: Sandbox) -> None:
    """The key of a refused call can be used for another request."""
    refused = sandbox.post(PATH, {**ORDER, "amount": -1}, headers=key("order-17"))
    assert refused.status_code == 400
    assert sandbox.post(PATH, ORDER, headers=key("order-17")).status_code == 201


@pytest.mark.rule("A57")
def test_the_oldest_of_a_thousand_keys_is_forgotten(sandbox: Sandbox) -> None:
    """Beyond the limit, each new key replaces the oldest."""
    project = sandbox.project_in_process
    for number in range(SAVED_ANSWERS_MAX + 2):
        save_answer(project, number)
    answers = [int(saved.id) for saved in project.epoch.store.answers()]
    assert answers == list(range(2, SAVED_ANSWERS_MAX + 2))


class Impatient(ClientConnection):
    """A connection whose calls do not wait for other calls."""

    repeat_seconds = 0.01


@pytest.mark.rule("A57")
def test_a_call_that_waits_too_long_does_nothing(sandbox: Sandbox) -> None:
    """While another call with its key runs, a call waits for a limited time, and is then refused."""
    running = TrackedRequest("", lambda edit: None, "order-17")
    assert running.begin(sandbox.project_in_process.epoch.running_requests) is None
    headers = list(key("order-17").items())
    refused = sandbox.server.app.test_client().post(
        PATH, json=ORDER, auth=(sandbox.key, ""), headers=headers, environ_overrides={CONNECTION: Impatient()}
    )
    assert refused.status_code == 409
    assert refused.get_json()["error"]["type"] == "KeyInUse"
    assert "ask again with this key" in refused.get_json()["error"]["value"]
    assert order_count(sandbox) == 0
    running.end()
    assert sandbox.post(PATH, ORDER, headers=key("order-17")).status_code == 201


def test_a_waiting_call_blocks_no_other_call(sandbox: Sandbox) -> None:
    """While a call waits for another call with its key, the project answers other calls."""
    running = TrackedRequest("", lambda edit: None, "order-17")
    running.begin(sandbox.project_in_process.epoch.running_requests)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(create, sandbox, "order-17") for _ in range(8)]
        assert sandbox.create(card()).status_code == 201
        assert sandbox.post(PATH, ORDER, headers=key("order-18")).status_code == 201
        running.end()
        answers = {call.result().json()["id"] for call in waiting}
    assert len(answers) == 1
    assert order_count(sandbox) == 3


def test_keys_travel_with_a_snapshot(sandbox: Sandbox, server: Server) -> None:
    """A restored project replays the answers of its snapshot, unchanged."""
    first = sandbox.post(PATH, {**ORDER, "merchant_order_id": "4111111111111111"}, headers=key("order-17"))
    other = Sandbox(server)
    other.put("/control/state/", snapshot_of(sandbox.project_in_process))
    again = other.post(PATH, {**ORDER, "merchant_order_id": "4111111111111111"}, headers=key("order-17"))
    assert again.content == first.content
    assert order_count(other) == 1
