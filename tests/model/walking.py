"""Random walks of the model and a server side by side; a disagreement shrinks to the shortest sequence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import hypothesis
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
from tests.model.driver import CheckedCaller, MerchantCaller, SessionCaller
from tests.model.judge import FROM_START, WEBHOOK_URL, ControlJudge
from tests.model.letters import (
    AMOUNT,
    LINES_AND_CUSTOMER,
    advances_to_deadlines,
    calls_on_order,
    choose_transfer,
    code_creations,
    creations,
    scans,
    stored_card_payments,
)
from tests.model.specification.calls import Act, Advance, Create, SetReachability
from tests.model.specification.records import METHODS, Shop

METHOD_OR_PAGE = ("", *METHODS)
ORDERS = 3
LATE_CREDITS = (AMOUNT // 2, None, AMOUNT + 500)


class WalkedProject(NamedTuple):
    """A project, with functions to call it, to close it, and to restart its server."""

    caller: MerchantCaller
    close: Callable[[], object] = lambda: None
    restart: Callable[[], object] | None = None


ProjectFactory = Callable[[dict[str, Any]], WalkedProject]
"""Creates a project with settings."""


def in_process(server: PaymentSandboxServer) -> ProjectFactory:
    """Return a factory of projects in a server that is called without sockets."""

    def create_project(options: dict[str, Any]) -> WalkedProject:
        project = server.project(options)
        return WalkedProject(CheckedCaller(project), project.close)

    return create_project


def over_http(url: str, restart: Callable[[], object]) -> ProjectFactory:
    """Return a factory of projects over HTTP, whose server can restart."""

    def create_project(options: dict[str, Any]) -> WalkedProject:
        session = requests.Session()
        session.trust_env = False
        project = session.post(f"{url}/control/projects/", json=options).json()
        session.auth = (project["api_key"], "")
        return WalkedProject(SessionCaller(session, url), session.close, restart)

    return create_project


class Walk(RuleBasedStateMachine):
    """A random walk of one project and its model."""

    create_project: ProjectFactory
    walked: WalkedProject | None = None
    judge: ControlJudge

    @initialize(mode=st.sampled_from(["test", "live"]), status=st.sampled_from(["completed", "accepted"]))
    def start(self, mode: str, status: str) -> None:
        options = {"clock": FROM_START, "webhook_url": WEBHOOK_URL, "mode": mode, "authorized_status": status}
        self.walked = type(self).create_project(options)
        self.judge = ControlJudge(self.walked.caller, Shop(mode=mode, authorized_status=status))

    @precondition(lambda self: len(self.judge.shop.orders) < ORDERS)
    @rule(method=st.sampled_from(METHOD_OR_PAGE), data=st.data())
    def create(self, method: str, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(creations(method))))

    @precondition(lambda self: len(self.judge.shop.orders) < ORDERS)
    @rule(method=st.sampled_from([name for name, facts in METHODS.items() if facts.authorizes]))
    def authorize(self, method: str) -> None:
        """Create and authorize an order, because most rules apply to authorized orders."""
        number = len(self.judge.shop.orders)
        self.judge.make_call(Create(AMOUNT, method, capture_mode="manual", **LINES_AND_CUSTOMER))
        self.judge.make_call(Act(number, "customer", "pay"))

    @precondition(lambda self: len(self.judge.shop.orders) < ORDERS)
    @rule(
        credit=st.sampled_from(LATE_CREDITS),
        method=st.sampled_from(METHOD_OR_PAGE[1:]),
        expires=st.booleans(),
        paid=st.booleans(),
    )
    def pay_beside_transfer(self, credit: int | None, method: str, expires: bool, paid: bool) -> None:
        """Let the customer choose a transfer, then another method, and perhaps pay.

        The money of the transfer arrives a month later, perhaps a minute after the payment.
        """
        number = len(self.judge.shop.orders)
        self.judge.make_call(Create(AMOUNT, period="P90D", **LINES_AND_CUSTOMER))
        self.judge.make_call(choose_transfer(number, credit))
        if expires:
            self.judge.make_call(Advance("P30DT23H59M"))
        self.judge.make_call(Act(number, "customer", "choose", method=method))
        if paid:
            self.judge.make_call(Act(number, "customer", "pay"))

    @precondition(lambda self: 0 < len(self.judge.shop.orders) < ORDERS)
    @rule(data=st.data())
    def use_stored_card(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(list(stored_card_payments(self.judge.shop)))))

    @precondition(lambda self: self.judge.shop.orders)
    @rule(data=st.data())
    def change_order(self, data: st.DataObject) -> None:
        for _ in range(2):
            number = data.draw(st.integers(0, len(self.judge.shop.orders) - 1))
            self.judge.make_call(data.draw(st.sampled_from(calls_on_order(self.judge.shop, number))))

    @rule(data=st.data())
    def pass_time(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(advances_to_deadlines(self.judge.shop))))

    @precondition(lambda self: len(self.judge.shop.codes) < ORDERS)
    @rule(data=st.data())
    def make_code(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(code_creations())))

    @precondition(lambda self: self.judge.shop.codes and len(self.judge.shop.orders) < ORDERS)
    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        self.judge.make_call(data.draw(st.sampled_from(list(scans(self.judge.shop)))))

    @precondition(lambda self: self.walked is not None and self.walked.restart and self.judge.shop.orders)
    @rule()
    def restart(self) -> None:
        """Restart the server, and check that all acknowledged changes persist."""
        assert self.walked is not None
        assert self.walked.restart is not None
        self.walked.restart()
        self.judge.compare_now()
        self.judge.driver.send(SetReachability(self.judge.shop.is_reachable))

    def teardown(self) -> None:
        if self.walked is not None:
            self.walked.close()


def walk(
    create_project: ProjectFactory, examples: int, steps: int, *, shrinks: bool = True, seed: str = ""
) -> None:
    """Run random walks with at most this many steps.

    Each seed has its own walks; without one, the walks are always the same.
    """
    machine = type("WalkOfOneServer", (Walk,), {"create_project": staticmethod(create_project)})
    if seed:
        machine = hypothesis.seed(seed)(machine)
    hypothesis_settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=not seed,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrinks else (Phase.generate,),
    )
    run_state_machine_as_test(machine, settings=hypothesis_settings)
