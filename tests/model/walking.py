"""Random walks of the model and a server, side by side; a disagreement shrinks to the shortest one."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import requests
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox_verify.model.calls import SetReachability
from payment_sandbox_verify.model.records import METHODS, Shop
from payment_sandbox_verify.walking.alphabet import code_creations, creations, stored_card_payments
from payment_sandbox_verify.walking.driver import MerchantCaller
from tests.model.alphabet import around_order, deadlines, scans
from tests.model.driver import SessionCaller
from tests.model.judge import FROM_START, WEBHOOK_URL, ControlJudge

METHOD_OR_PAGE = ("", *METHODS)
ORDERS = 3


class Begun(NamedTuple):
    """A project: the way to it, what closes it, and what restarts its server."""

    caller: MerchantCaller
    close: Callable[[], object] = lambda: None
    restart: Callable[[], object] | None = None


Begin = Callable[[dict[str, Any]], Begun]
"""Creates a project with settings."""


def in_process(server: PaymentSandboxServer) -> Begin:
    """Create projects in a server that is called without sockets."""

    def begin(asked: dict[str, Any]) -> Begun:
        project = server.project(asked)
        return Begun(SessionCaller(project.session, project.base_url), project.close)

    return begin


def over_http(*urls: str, restart: Callable[[], object] | None = None) -> Begin:
    """Create projects over HTTP; the calls go to one of the servers after the other."""

    def begin(asked: dict[str, Any]) -> Begun:
        session = requests.Session()
        session.trust_env = False
        made = session.post(f"{urls[0]}/control/projects/", json=asked).json()
        session.auth = (made["api_key"], "")
        return Begun(SessionCaller(session, *urls), session.close, restart)

    return begin


class Walk(RuleBasedStateMachine):
    """One project, and the model of it."""

    begin: Begin
    begun: Begun | None = None
    orders_max = ORDERS
    judge: ControlJudge

    @initialize(mode=st.sampled_from(["test", "live"]), status=st.sampled_from(["completed", "accepted"]))
    def start(self, mode: str, status: str) -> None:
        asked = {"clock": FROM_START, "webhook_url": WEBHOOK_URL, "mode": mode, "authorized_status": status}
        self.begun = type(self).begin(asked)
        self.judge = ControlJudge(self.begun.caller, Shop(mode=mode, authorized_status=status))

    @precondition(lambda self: len(self.judge.shop.orders) < self.orders_max)
    @rule(method=st.sampled_from(METHOD_OR_PAGE), data=st.data())
    def create(self, method: str, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(creations(method))))

    @precondition(lambda self: 0 < len(self.judge.shop.orders) < self.orders_max)
    @rule(data=st.data())
    def use_stored_card(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(list(stored_card_payments(self.judge.shop)))))

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
        self.judge.make_call(data.draw(st.sampled_from(around_order(self.judge.shop, number))))

    @rule(data=st.data())
    def pass_time(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(deadlines(self.judge.shop))))

    @precondition(lambda self: len(self.judge.shop.codes) < self.orders_max)
    @rule(data=st.data())
    def make_code(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(code_creations())))

    @precondition(lambda self: self.judge.shop.codes and len(self.judge.shop.orders) < self.orders_max)
    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(list(scans(self.judge.shop)))))

    @precondition(lambda self: self.begun is not None and self.begun.restart and self.judge.shop.orders)
    @rule()
    def restart(self) -> None:
        """The server is restarted; whatever was acknowledged is still there."""
        assert self.begun is not None
        assert self.begun.restart is not None
        self.begun.restart()
        self.judge.look()
        self.judge.driver.send(SetReachability(self.judge.shop.is_reachable))

    def teardown(self) -> None:
        if self.begun is not None:
            self.begun.close()


def walk(begin: Begin, examples: int, steps: int, *, shrinks: bool = True, orders_max: int = ORDERS) -> None:
    """Walk so many times, so far; with fewer orders, more happens to each.

    The walks are the same each time, so that a change alone makes a test fail; with MODEL_WALKS_AT_RANDOM set they
    are others each time.
    """
    own = {"begin": staticmethod(begin), "orders_max": orders_max}
    machine = type("WalkOfOneServer", (Walk,), own)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=not os.environ.get("MODEL_WALKS_AT_RANDOM"),
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
    )
    run_state_machine_as_test(machine, settings=chosen)
