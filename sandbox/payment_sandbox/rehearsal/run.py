"""One run of a rehearsed test: its steps are recorded, and those that are to go otherwise do."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance
from payment_sandbox.operations.history import short_path
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.rehearsal import Do
from payment_sandbox.rehearsal.ways import (
    ATTEMPT,
    DEED,
    PRESS,
    READ,
    WEBHOOK,
    Change,
    Step,
    StepRecorder,
    Way,
    kind_of_call,
)
from payment_sandbox.scenarios.model import Subject
from payment_sandbox.web.carried import current_exchange
from payment_sandbox.web.placing import begin_waiting

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

SETTLE_SECONDS: Final = 10.0
SURPLUS_CENTS: Final = 100
MOMENT: Final = Period.parse("PT1S")


class Scene(NamedTuple):
    """Somebody is about to act on an order."""

    project: "Project"
    order_id: str
    action: Action
    do: Do
    visit: Callable[[Order, int], None] | None
    restart: Callable[[], None] | None

    @property
    def order(self) -> Order:
        """The order as it is now."""
        return self.project.find_order(self.order_id)

    def acts(self, action: Action | None = None) -> Order:
        """Act; if the state refuses it, nothing happens."""
        with suppress(Refusal):
            return self.do(action or self.action)
        return self.order

    def customer(self, action: str) -> Order:
        """The customer does something else."""
        return self.acts(Action(CUSTOMER, action))

    def comes_back(self) -> Order:
        """The customer chooses the same method again, and then acts."""
        attempt = self.order.last_transaction
        if attempt is not None:
            again = Action(CUSTOMER, "choose", payment_method=attempt.payment_method)
            with suppress(Refusal):
                act(self.project, self.order_id, again)
        return self.acts()

    def passes(self, until: datetime) -> None:
        """Time passes; what is due happens, and its webhooks are delivered."""
        begin_waiting()
        _let_webhooks_go(self.project)
        jobs = self.project.epoch.jobs
        jobs.skips_quiet_times = True
        with suppress(Refusal):
            advance(self.project, lambda now: max(now, until))
        jobs.skips_quiet_times = False

    def returns(self, tabs: int) -> None:
        """The customer comes back to the shop."""
        if self.visit is not None:
            self.visit(self.order, tabs)


def _let_webhooks_go(project: "Project") -> None:
    """Let webhooks go before the end of this request: an advance waits for them."""
    here = current_exchange()
    if here is not None and here.held is not None:
        project.release(*here.held[1:])


def _returns_first(scene: Scene) -> Order:
    order = scene.acts()  # its webhook waits until this call has ended
    scene.returns(1)
    return order


def _two_tabs(scene: Scene) -> Order:
    order = scene.acts()
    scene.returns(2)
    return order


def _returns_unpaid(scene: Scene) -> Order:
    scene.returns(1)
    return scene.order


def _fails(scene: Scene) -> Order:
    return scene.customer("fail")


def _cancels(scene: Scene) -> Order:
    return scene.customer("cancel")


def _fails_then_pays(scene: Scene) -> Order:
    scene.customer("fail")
    return scene.comes_back()


def _cancels_then_pays(scene: Scene) -> Order:
    scene.customer("cancel")
    return scene.comes_back()


def _walks_away(scene: Scene) -> Order:
    return scene.order


def _after_expiry(scene: Scene) -> Order:
    attempt, ends = scene.order.last_transaction, scene.order.expires_at
    if attempt is not None:
        ends = max(ends or attempt.expires_at, attempt.expires_at)
    if ends is not None:
        scene.passes(MOMENT.after(ends))
    return scene.acts()


def _twice(scene: Scene) -> Order:
    scene.acts()
    return scene.acts()


def others(project: "Project", order: Order) -> list[Order]:
    """The orders of before that are still open."""
    found = [each for each in project.epoch.store.orders_newest_first() if each.id != order.id]
    return [each for each in found if each.is_open and not each.is_refund]


def _pays_both(scene: Scene) -> Order:
    order = scene.acts()
    for other in others(scene.project, order):
        with suppress(Refusal):
            act(scene.project, other.id, Action(CUSTOMER, "pay"))
    return order


def _short(scene: Scene) -> Order:
    cents = scene.action.amount_cents or scene.order.amount_cents
    return scene.acts(scene.action._replace(amount_cents=cents - 1)) if cents > 1 else scene.order


def _surplus(scene: Scene) -> Order:
    cents = scene.action.amount_cents or scene.order.amount_cents
    return scene.acts(scene.action._replace(amount_cents=cents + SURPLUS_CENTS))


def _then_passes(period: str) -> Callable[[Scene], Order]:
    def passes(scene: Scene) -> Order:
        scene.acts()
        scene.passes(Period.parse(period).after(scene.project.now()))
        return scene.order

    return passes


def _lapses(scene: Scene) -> Order:
    attempt = scene.acts().last_transaction
    if attempt is not None and attempt.authorization is not None:
        scene.passes(MOMENT.after(attempt.authorization.expires_at))
    return scene.order


def _restarted(scene: Scene) -> Order:
    order = scene.acts()
    _let_webhooks_go(scene.project)
    scene.project.settle(SETTLE_SECONDS)
    if scene.restart is not None:
        scene.restart()
    return order


DEEDS: Final[Mapping[str, Callable[[Scene], Order]]] = {
    "returns-first": _returns_first,
    "two-tabs": _two_tabs,
    "returns-unpaid": _returns_unpaid,
    "fails": _fails,
    "cancels": _cancels,
    "fails-then-pays": _fails_then_pays,
    "cancels-then-pays": _cancels_then_pays,
    "walks-away": _walks_away,
    "pays-too-late": _after_expiry,
    "after-expiry": _after_expiry,
    "twice": _twice,
    "pays-both": _pays_both,
    "never": _walks_away,
    "short": _short,
    "surplus": _surplus,
    "three-days": _then_passes("P3D"),
    "lapses": _lapses,
    "month": _then_passes("P31D"),
    "restarted": _restarted,
}
"""By the name of the way."""


FIRST: Final = 1  # the number of a webhook's first attempt
TOGETHER: Final = "together"
NAMES: Final = {"customer pay": "the customer's payment", "bank credit": "the bank's credit"}
MEETING_SECONDS: Final = 0.15
RUNS_REHEARSED: Final = 1  # of a job, whose later runs are alike

Visit = Callable[[Order, int], None]
"""Opens the return page of an order, in some tabs."""


class RehearsedRun:
    """What a project asks during one run."""

    def __init__(
        self,
        project: "Project",
        changes: Sequence[Change] = (),
        *,
        elsewhere: bool = False,
        visit: Visit | None = None,
        restart: Callable[[], None] | None = None,
        recorder: StepRecorder | None = None,
    ) -> None:
        """Stage a project; ``recorder`` numbers the steps of several projects.

        With ``elsewhere``, webhooks are handled on other threads than the test's.
        """
        self.project = project
        self.happened: list[Change] = []
        self.waited_forever: list[str] = []
        self.visit = visit
        self.restart = restart
        self.has_steps = False
        self._recorder = recorder or StepRecorder()
        self._ways = {change.step: change for change in changes}
        self.is_elsewhere = elsewhere
        self._answers: dict[str, dict[str, bytes]] = {}  # of each order by status, as the shop has seen it
        self._is_on = True
        self._is_resting = False
        self._meeting: Barrier | None = None
        self._is_acting = False  # somebody does something else than the test asked for

    @property
    def steps(self) -> list[Step]:
        """What happened so far."""
        return list(self._recorder.steps)

    def rest(self) -> None:
        """The test has ended: from now on, only what the shop's jobs read are steps."""
        self._is_resting = True

    def end(self) -> None:
        """Record no more steps, and change nothing any more."""
        self._is_on = False

    # What the project asks

    def call(self, method: str, path: str) -> Mapping[str, Any]:
        """The fault of a call of the shop."""
        self._meet()
        label = f"the shop's {method} {short_path(path)}"
        way = self._way(kind_of_call(method, path), label, method=method, path=path)
        return way.effect if way is not None else {}

    def answer(self, order_id: str, body: bytes, *, is_stale: bool) -> bytes:
        """What the shop sees of an order: what it has seen in the status before, if that is overtaken."""
        seen, status = self._answers.setdefault(order_id, {}), json.loads(body)["status"]
        if is_stale:
            return next((seen[other] for other in reversed(seen) if other != status), body)
        seen[status] = body
        return body

    def webhook(self, delivery: Delivery) -> Mapping[str, Any]:
        """What happens to an attempt; only first attempts are steps."""
        if delivery.next_number > FIRST or delivery.postponed:
            return {}
        label = f"the webhook of {delivery.status!r}"
        way = self._way(WEBHOOK, label, status=delivery.status, order_id=delivery.order_id)
        self._expect_two(way)
        return way.effect if way is not None else {}

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """What somebody does instead of acting so."""
        if not self._is_on or self._is_resting or self._is_acting:
            return do(action)
        begin_waiting()  # whatever is done instead may take long
        order = self.project.find_order(order_id)
        attempt = order.last_transaction
        way = self._way(
            DEED,
            NAMES.get(action.name, f"what the {action.actor} does ({action.action})"),
            actor=action.actor,
            action=action.action,
            order_id=order_id,
            hosted=order.is_hosted,
            returns=order.return_url is not None,
            others=len(others(self.project, order)),
            authorizes=attempt is not None and attempt.capture_mode is not None,
        )
        if way is None:
            return do(action)
        scene = Scene(self.project, order_id, action, do, self.visit, self.restart)
        self._is_acting = True
        try:
            return DEEDS[way.name](scene)
        finally:
            self._is_acting = False

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """What the service decides for an attempt or a refund."""
        methods = ", ".join(sorted(subject.methods))
        way = self._way(
            ATTEMPT,
            "the refund" if subject.is_refund else f"the {methods} payment",
            outcome_keys=subject.outcome_keys,
            screenings=subject.screenings,
            refund=subject.is_refund,
        )
        return way.effect if way is not None else None

    def waits_forever(self, method: str, path: str) -> None:
        """A call without a time limit got no answer."""
        self.waited_forever.append(f"{method} {short_path(path)}")

    # What the shop's watcher asks

    def press(self, method: str, path: str) -> Way | None:
        """The test submits a form of the shop: the way in which that goes, if it goes otherwise."""
        way = self._way(PRESS, f"the form {path}", method=method, path=path)
        self._expect_two(way)
        return way

    def _expect_two(self, way: Way | None) -> None:
        if way is not None and way.name == TOGETHER:
            self._meeting = Barrier(2, timeout=MEETING_SECONDS)

    def _meet(self) -> None:
        """Let two handlers that run at the same moment make their calls together, unless one is held up."""
        meeting = self._meeting
        if meeting is not None:
            try:
                meeting.wait()
            except BrokenBarrierError:
                self._meeting = None

    def _way(self, kind: str, label: str, **about: Any) -> Way | None:
        job = self.project.epoch.jobs.running
        is_over = not self._is_on or (self._is_resting and (job is None or kind != READ))
        if is_over or (job is not None and job.runs > RUNS_REHEARSED):
            return None
        self.has_steps = True
        step = self._recorder.record(kind, label, **about)
        change = self._ways.get(step.name)
        if change is None or not change.way.applies(step):
            return None
        self.happened.append(change)
        return change.way


UNITS: Final = {"s": 1, "m": 60, "h": 3600}
REPORTS: Final = (".html", ".htm", ".json")


def seconds_of(text: str) -> float:
    """Read a time such as ``60s`` or ``10m``.

    Raises:
        ValueError: it is none, or no time above zero that ends.
    """
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"takes a time above zero such as 60s or 10m, not {text!r}")
    return seconds


def check_report(name: str) -> None:
    """Check the name of a report.

    Raises:
        ValueError: it is neither that of a page nor of JSON, or its folder is not there.
    """
    if Path(name).suffix not in REPORTS:
        raise ValueError(f"takes an .html or a .json file, not {name!r}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"takes a file in a folder that is there, not {name!r}")
