"""Random walks of the model and a server, side by side; a disagreement shrinks to the shortest one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payment_sandbox.model.records import METHODS, Shop
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.alphabet import about_order, codes, creations, deadlines, scans, stored_cards
from tests.model.driver import Door, SessionDoor
from tests.model.judge import FROM_START, WEBHOOK_URL, Judge

Begin = Callable[[dict[str, Any]], tuple[Door, Callable[[], None]]]
"""Creates a project with settings; returns the way to it, and what closes it."""

METHOD_OR_PAGE = ("", *METHODS)
ORDERS = 3


class Walk(RuleBasedStateMachine):
    """One project, and the model of it."""

    begin: Begin
    judge: Judge
    close: Callable[[], None] = staticmethod(lambda: None)

    @initialize(mode=st.sampled_from(["test", "live"]), status=st.sampled_from(["completed", "accepted"]))
    def start(self, mode: str, status: str) -> None:
        asked = {"clock": FROM_START, "webhook_url": WEBHOOK_URL, "mode": mode, "authorized_status": status}
        door, self.close = type(self).begin(asked)
        self.judge = Judge(door, Shop(mode=mode, authorized_status=status))

    @precondition(lambda self: len(self.judge.shop.orders) < ORDERS)
    @rule(method=st.sampled_from(METHOD_OR_PAGE), data=st.data())
    def create(self, method: str, data: st.DataObject) -> None:
        self.judge.do(data.draw(st.sampled_from(creations(method))))

    @precondition(lambda self: 0 < len(self.judge.shop.orders) < ORDERS)
    @rule(data=st.data())
    def use_stored_card(self, data: st.DataObject) -> None:
        self.judge.do(data.draw(st.sampled_from(list(stored_cards(self.judge.shop)))))

    @precondition(lambda self: self.judge.shop.orders)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        self.try_something(data)

    @precondition(lambda self: self.judge.shop.orders)
    @rule(data=st.data())
    def go_further(self, data: st.DataObject) -> None:
        self.try_something(data)

    def try_something(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.judge.shop.orders) - 1))
        self.judge.do(data.draw(st.sampled_from(about_order(self.judge.shop, number))))

    @rule(data=st.data())
    def pass_time(self, data: st.DataObject) -> None:
        self.judge.do(data.draw(st.sampled_from(deadlines(self.judge.shop))))

    @precondition(lambda self: len(self.judge.shop.codes) < ORDERS)
    @rule(data=st.data())
    def make_code(self, data: st.DataObject) -> None:
        self.judge.do(data.draw(st.sampled_from(codes())))

    @precondition(lambda self: self.judge.shop.codes and len(self.judge.shop.orders) < ORDERS)
    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        self.judge.do(data.draw(st.sampled_from(list(scans(self.judge.shop)))))

    def teardown(self) -> None:
        self.close()


def walk(begin: Begin, examples: int, steps: int) -> None:
    """Walk at random: so many times, so far."""
    machine = type("WalkOfOneServer", (Walk,), {"begin": staticmethod(begin)})
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    run_state_machine_as_test(machine, settings=chosen)


@contextmanager
def in_process() -> Iterator[Begin]:
    """A server in this process, called without sockets."""
    server = PaymentSandboxServer()

    def begin(asked: dict[str, Any]) -> tuple[Door, Callable[[], None]]:
        project = server.project(asked)
        return SessionDoor(project.session, project.base_url), project.close

    try:
        yield begin
    finally:
        server.stop()


def test_random_calls_and_events_agree_with_the_model() -> None:
    """Every answer is allowed, and so is all that is read afterwards."""
    with in_process() as begin:
        walk(begin, examples=30, steps=25)


@pytest.mark.prove
def test_many_random_calls_and_events_agree_with_the_model() -> None:
    """Every answer is allowed, and so is all that is read afterwards."""
    with in_process() as begin:
        walk(begin, examples=400, steps=30)
