"""One Idempotency-Key has one effect: concurrent calls, faults and kills, drawn at random."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.attack import scaled
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import card

ORDERS: Final = "/v1/orders/"
ANSWERS_MAX: Final = 50  # retries until an answer
CALLS_MAX: Final = 4
FAULTS: Final = (
    {"latency": 0.05},
    {"reset": True},
    {"reset": True, "phase": "after"},
    {"hang": 0.05},
    {"hang": 0.05, "phase": "after"},
    {"status": 503, "phase": "after"},
)


class Round(NamedTuple):
    """Concurrent calls with one key, the fault of some of them, and whether the server is killed meanwhile."""

    number: int  # of the key
    is_capture: bool  # of a cent; otherwise, an order is created
    calls: int
    fault: dict[str, Any] | None
    faulty: list[int]  # the numbers of the calls with the fault
    is_killed: bool

    @property
    def key(self) -> str:
        """The key of the calls."""
        return f"{'capture' if self.is_capture else 'order'} {self.number}"


ROUNDS: Final = st.lists(
    st.builds(
        Round,
        st.integers(0, 2),
        st.booleans(),
        st.integers(1, CALLS_MAX),
        st.none() | st.sampled_from(FAULTS),
        st.lists(st.integers(1, CALLS_MAX), min_size=1, max_size=2, unique=True),
        st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=5,
)


class Nursery:
    """A server that starts again after a kill, with the same state."""

    def __init__(self, state: str | None) -> None:
        self._options = ("--state", state) if state is not None else ()
        self._start()

    def _start(self) -> None:
        self._stack = ExitStack()
        self.server: ServerProcess = self._stack.enter_context(run_server(*self._options))

    def kill(self) -> None:
        """Kill the server, and start it again, if it has a state."""
        if self._options:
            os.kill(self.server.pid, signal.SIGKILL)
            self.stop()
            self._start()

    def stop(self) -> None:
        """Stop the server."""
        self._stack.close()


class Shop:
    """A project, and an authorized order to capture from; every call has a key."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        with nursery.server.project(clock="frozen") as project:
            self._api_key = project.key
            order = project.order(card(capture_mode="manual"))
            project.expect(
                "POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"}
            )
        self._order = f"{ORDERS}{order['id']}/"
        self._captures = f"{self._order}transactions/{order['transactions'][0]['id']}/captures/amount/"

    def client(self) -> Project:
        """Return a client of the server."""
        return Project(self._nursery.server.url, self._api_key)

    def call(self, project: Project, each: Round) -> requests.Response:
        """Create an order, or capture a cent, with the key."""
        path, body = (
            (self._captures, {"amount": 1}) if each.is_capture else (ORDERS, {"currency": "EUR", "amount": 5})
        )
        with project:
            return project.call("POST", path, body, headers={"Idempotency-Key": each.key})

    def play(self, each: Round) -> list[bytes]:
        """Play a round; return the successful answers."""
        rules = [{"when": {"method": "POST", "nth": nth}, "then": each.fault} for nth in each.faulty]
        self._set_faults(rules if each.fault is not None else [])
        with ThreadPoolExecutor(CALLS_MAX) as pool:
            calls = [pool.submit(self.call, self.client(), each) for _ in range(each.calls)]
            if each.is_killed:
                self._nursery.kill()
            return list(successes(calls))

    def settle(self, each: Round) -> bytes:
        """Retry a call until it succeeds."""
        self._set_faults([])
        for _ in range(ANSWERS_MAX):
            with suppress(requests.RequestException):
                answer = self.call(self.client(), each)
                if answer.status_code < 300:
                    return answer.content
                assert answer.status_code in (409, 503), answer.text
        raise AssertionError(f"{each.key} got no answer")

    def _set_faults(self, rules: list[Any]) -> None:
        for _ in range(ANSWERS_MAX):
            with suppress(requests.RequestException), self.client() as project:
                if project.call("PUT", "/control/faults/", {"faults": rules}).status_code == 200:
                    return
        raise AssertionError("the server does not answer")

    def counts(self) -> tuple[int, int]:
        """Return the number of orders, except the captured one, and the number of captured cents."""
        with self.client() as project:
            orders = project.expect("GET", "/control/orders/")["items"]
            order = project.expect("GET", f"{self._order}?fields[]=amount_details")
        return len(orders) - 1, order["amount_details"]["captured"]


def successes(calls: list[Future[requests.Response]]) -> Iterator[bytes]:
    """Yield the successful answers; a fault or a kill may lose any of them."""
    for call in calls:
        with suppress(requests.RequestException):
            answer = call.result()
            if answer.status_code < 300:
                yield answer.content
            else:
                assert answer.status_code in (409, 503), answer.text


@pytest.fixture(params=["memory", "sqlite"])
def nursery(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nursery]:
    """A server in memory, or with a state file."""
    started = Nursery(str(tmp_path / "state.db") if request.param == "sqlite" else None)
    try:
        yield started
    finally:
        started.stop()


@pytest.mark.timeout(3600)
def test_one_key_has_one_effect(nursery: Nursery) -> None:
    """Each key has created one order or captured one cent, and all its answers are the same."""

    @settings(
        max_examples=scaled(100, 8),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(ROUNDS)
    def play(rounds: list[Round]) -> None:
        shop, answers = Shop(nursery), dict[str, set[bytes]]()
        for each in rounds:
            answers.setdefault(each.key, set()).update(shop.play(each))
        for each in rounds:
            answers[each.key].add(shop.settle(each))
        assert all(len(bodies) == 1 for bodies in answers.values()), answers
        created = sum(key.startswith("order") for key in answers)
        assert shop.counts() == (created, len(answers) - created)

    play()
