"""One run of a rehearsed test: records its steps, and applies the changes."""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Condition, Thread, get_ident
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.operations.act import act
from payment_sandbox.operations.history import short_path
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.calling import caller
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.rehearsal import Do
from payment_sandbox.scenarios.effects import Fault, Together, WebhookEffect
from payment_sandbox.scenarios.model import Subject
from payment_sandbox.scenarios.variation import (
    ACTION,
    ATTEMPT,
    CALLS,
    JOB,
    PRESS,
    READ,
    WEBHOOK,
    ChangedNumber,
    JobRun,
    OrderAction,
    OtherCustomer,
    PriorEvent,
    Repeat,
    ReplacementScene,
    ShopCall,
    Step,
    StepDetails,
    TimePasses,
    VariationEffect,
)
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.shops.submitting import Submission
from payment_sandbox.testing.shops.tracebacks import location_on_thread
from pytest_payment_sandbox.rehearsal.changes import IN_JOB, ChangedStep, StepRecorder, kind_of_call
from pytest_payment_sandbox.rehearsal.pacing import JobPace
from pytest_payment_sandbox.rehearsal.scenes import Scene, happen, others, played

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

FIRST: Final = 1  # the number of a webhook's first attempt
NAMES: Final = {"customer pay": "the customer's payment", "bank credit": "the bank's credit"}
ALIKE_MAX: Final = 300  # calls with one method and path at one time
ALIKE_AS_IT_IS_MAX: Final = 10_000  # in the unchanged test, which ends by itself
MERCHANT_API: Final = "/v1/"
LOOK_SECONDS: Final = 0.002
STILL_LOOKS: Final = 10  # in a row that saw no other thread move
LOOKS_MAX: Final = 75  # by then, some other thread of the process never rests

Places = dict[int, tuple[int, int]]
"""The position of each thread: its frame and instruction."""
CUT_OFF: Final = Fault.read({"reset": True})

Visit = Callable[[Order, int], None]
"""Opens the return page of an order, in some tabs."""


class Meeting:
    """Makes two handlers wait for each other at every call, until one of them does not arrive.

    The first handler waits only while another thread of the process is running: a handler that has ended,
    or that waits for a lock of the first handler, will not arrive.
    """

    def __init__(self) -> None:
        self._arrivals = Condition()
        self._count = 0
        self._is_over = False

    def meet(self) -> None:
        """Wait for the other handler."""
        with self._arrivals:
            if self._is_over:
                return
            self._count += 1
            count = self._count
            if not count % 2:
                self._arrivals.notify_all()
                return
            still = looks = 0
            places = _places()
            while self._count == count and not self._is_over:
                self._arrivals.wait(LOOK_SECONDS)
                before, places = places, _places()
                still, looks = (still + 1 if places == before else 0), looks + 1
                self._is_over = still >= STILL_LOOKS or looks >= LOOKS_MAX


def _places() -> Places:
    """Return the positions of all other threads."""
    own = get_ident()
    return {
        thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items() if thread != own
    }


class RepeatedCalls:
    """Counts the calls with the same method and path, while no sandbox time passes."""

    def __init__(self) -> None:
        self.most = 0
        self._counts: Counter[str] = Counter()
        self._since: datetime | None = None
        self._limit = ALIKE_AS_IT_IS_MAX

    def limit(self, most: int) -> None:
        """Allow twice as many calls as in the unchanged test, and at least ``ALIKE_MAX``."""
        self._limit = max(ALIKE_MAX, 2 * most)

    def is_over(self, call: str, now: datetime) -> bool:
        """Count a call; return whether there were too many of its kind."""
        if now != self._since:
            self._counts.clear()
            self._since = now
        self._counts[call] += 1
        self.most = max(self.most, self._counts[call])
        return self._counts[call] > self._limit

    @property
    def is_endless(self) -> bool:
        """Whether the shop repeats a call long after the calls are cut off."""
        return self.most > 2 * self._limit


class RehearsedRun:
    """One run of a test: the project asks it for the fault, effect or time of each step."""

    def __init__(
        self,
        project: "Project",
        changes: Sequence[ChangedStep] = (),
        *,
        elsewhere: bool = False,
        visit: Visit | None = None,
        restart: Callable[[], None] | None = None,
        recorder: StepRecorder | None = None,
    ) -> None:
        """Rehearse a project; ``recorder`` numbers the steps of several projects.

        With ``elsewhere``, webhooks are handled on threads other than the test's.
        """
        self.project = project
        self.happened: list[ChangedStep] = []
        self.changed_at = ""  # the code with the changed call, if it is in this process
        self.waited_forever: list[str] = []
        self.asked_without_end = ""  # the call that the shop repeats while nothing changes
        self.calls = RepeatedCalls()
        self.pace = JobPace(project)
        self.is_given_up = False  # the run takes too long, and ends at its next call
        self.on_act: Callable[[], None] = lambda: None
        self.visit = visit
        self.restart = restart
        self.has_steps = False
        self._recorder = recorder or StepRecorder()
        self._changes = {changed.step: changed for changed in changes}
        self.is_elsewhere = elsewhere
        self._answers: dict[str, dict[str, bytes]] = {}  # the responses to reads, by order and status
        self.statuses: dict[str, str] = {}  # by order, as last read by the shop; the latest read is last
        self.on_webhook: Callable[[], None] = lambda: None
        self._is_on = True
        self._is_resting = False
        self._meeting: Meeting | None = None
        self._is_acting = False  # an action is running that the test did not ask for
        self._of_another: list[str] = []  # the orders of another customer
        self._is_job_noted = True  # the current run of a job is a step, or no job runs
        self._is_job_again = False  # the current run of a job is repeated
        self._beside: Thread | None = None  # the same job in another process

    @property
    def steps(self) -> list[Step]:
        """The steps so far."""
        return list(self._recorder.steps)

    def rest(self) -> None:
        """End the test: from now on, only reads by the shop's jobs are steps."""
        self._is_resting = self.pace.is_resting = True
        self.calls.limit(self.calls.most)

    def end(self) -> None:
        """Stop recording and changing steps."""
        self._is_on = False

    # Questions of the project

    def ends_with(self, path: str) -> bool:
        """Whether a call ends the run: the run was given up, or the shop calls on beyond the limit."""
        return self.is_given_up or (self.calls.is_endless and path.startswith(MERCHANT_API))

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """Return the time of a job's next run: jobs without news run at increasing intervals."""
        return self.pace.next_run(job, limit)

    def run_job(self, job: Job) -> str | None:
        """Run a job of the shop, or run it twice if the variation says so.

        A run is a step if it is the first one of its job, or if it changes something.
        """
        self._is_job_noted = False
        problem = job.run()
        self._end_beside()
        if not self._is_job_noted and job.runs == 1:
            self._note_run(job, is_changing=False)
        is_twice, self._is_job_again = self._is_job_again, False
        return (job.run() or problem) if is_twice else problem

    def _end_beside(self) -> None:
        """Wait for the concurrent run of the same job."""
        beside, self._beside = self._beside, None
        if beside is not None:
            beside.join()

    def _note_run(self, job: Job, *, is_changing: bool) -> None:
        """Record a run of a job as a step, before its first change or after its end."""
        self._is_job_noted = True
        effect = self._effect(JOB, f"the run of the shop's job {job.name}", JobRun(job.name, is_changing))
        if not isinstance(effect, Repeat):
            return
        self._is_job_again = not effect.at_once
        if effect.at_once:
            self._meeting, context = Meeting(), copy_context()

            def run() -> None:
                with suppress(Exception):
                    context.run(job.run)

            self._beside = Thread(target=run, name="second process")
            start(self._beside)
            self._meeting.meet()

    def call(self, method: str, path: str) -> Fault | None:
        """Return the fault of a call of the shop, if there is one."""
        if self._meeting is not None:
            self._meeting.meet()
        if self.calls.is_over(f"{method} {path}", self.project.epoch.timeline.now):
            self.asked_without_end = f"{method} {short_path(path)}"
            return CUT_OFF
        job = self.project.epoch.jobs.running
        if job is not None and not self._is_news_of_job(job, method, path):
            return None
        label = f"the shop's {method} {short_path(path)}{f'{IN_JOB}{job.name}' if job is not None else ''}"
        effect = self._effect(kind_of_call(method, path), label, ShopCall(method, path))
        if isinstance(effect, PriorEvent):
            happen(effect, self.project, path)
        return effect if isinstance(effect, Fault) else None

    def _is_news_of_job(self, job: Job, method: str, path: str) -> bool:
        """Record a call of a running job; return whether the call is new in this state."""
        if kind_of_call(method, path) != READ and not self._is_job_noted:
            self._note_run(job, is_changing=True)
        return self.pace.call(job, f"{method} {path}")

    def answer(self, order_id: str, body: bytes, *, is_stale: bool) -> bytes:
        """Return the response to a read of an order; a stale one is from the order's previous status."""
        seen, status = self._answers.setdefault(order_id, {}), json.loads(body)["status"]
        if is_stale:
            shown = next((other for other in reversed(seen) if other != status), status)
            self._note_status(order_id, shown)
            return seen.get(shown, body)
        seen[status] = body
        self._note_status(order_id, status)
        return body

    def _note_status(self, order_id: str, status: str) -> None:
        self.statuses.pop(order_id, None)
        self.statuses[order_id] = status

    def webhook(self, delivery: Delivery) -> WebhookEffect | None:
        """Return the effect on a webhook attempt; only first attempts are steps."""
        self.on_webhook()
        if delivery.next_number > FIRST or delivery.postponed:
            return None
        effect = self._effect(WEBHOOK, f"the webhook of {delivery.status!r}", delivery)
        if isinstance(effect, Together):
            self._meeting = Meeting()
        return effect if isinstance(effect, WebhookEffect) else None

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """Perform an action, or its replacement in this run."""
        if not self._is_on or self._is_resting or self._is_acting:
            return do(action)
        self.on_act()
        self._let_another_act(order_id, action)
        caller().begin_waiting()  # a replacement can take long
        order = self.project.find_order(order_id)
        attempt, before = order.last_transaction, others(self.project, order, self._answers)
        about = OrderAction(
            action,
            is_hosted=order.is_hosted,
            has_return=order.return_url is not None,
            has_others=bool(before),
            is_authorization=attempt is not None and attempt.capture_mode is not None,
        )
        label = NAMES.get(action.name, f"what the {action.actor} does ({action.action})")
        effect = self._effect(ACTION, label, about)
        if not isinstance(effect, Action | TimePasses | ReplacementScene):
            return do(action)
        self._is_acting = True
        try:
            return played(effect, Scene(self.project, order_id, action, do, self.visit, self.restart, before))
        finally:
            self._is_acting = False

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """Return the changed decision of the service on an attempt or a refund, if there is one."""
        methods = ", ".join(sorted(subject.methods))
        label = "the refund" if subject.is_refund else f"the {methods} payment"
        effect = self._effect(ATTEMPT, label, subject)
        return effect if isinstance(effect, Mapping) else None

    def waits_forever(self, method: str, path: str) -> None:
        """Record a call without a time limit that got no answer."""
        self.waited_forever.append(f"{method} {short_path(path)}")

    # Questions of the shop's watcher

    def press(self, method: str, path: str, *, has_number: bool) -> Submission | None:
        """Record the submission of a form; return the variation of the submission, if there is one."""
        effect = self._effect(PRESS, f"the form {path}", ShopCall(method, path, has_number))
        if isinstance(effect, ChangedNumber):
            return Submission(more=effect.more)
        if isinstance(effect, OtherCustomer):
            return Submission(by_another=partial(self._note_another, self._order_ids(), effect))
        if not isinstance(effect, Repeat):
            return None
        if effect.at_once:
            self._meeting = Meeting()
        return Submission(at_once=effect.at_once)

    def _order_ids(self) -> set[str]:
        return {order.id for order in self.project.epoch.store.orders_newest_first()}

    def _note_another(self, before: set[str], effect: OtherCustomer) -> None:
        """Record the orders that the other customer created by submitting a form."""
        if effect.pays:
            self._of_another = sorted(self._order_ids() - before)

    def _let_another_act(self, order_id: str, action: Action) -> None:
        """Repeat an action of the test's customer on the orders of the other customer."""
        if not self._of_another or order_id in self._of_another:
            return
        self._is_acting = True
        try:
            for other in self._of_another:
                with suppress(Refusal):
                    act(self.project, other, action)
        finally:
            self._is_acting = False

    def _effect(self, kind: str, label: str, about: StepDetails) -> VariationEffect | None:
        """Record the next step of a kind; return its effect, or None if the step is unchanged."""
        job = self.project.epoch.jobs.running
        is_first_read = job is not None and job.runs == 1 and kind == READ
        if not self._is_on or (self._is_resting and not is_first_read):
            return None
        self.has_steps = True
        step = self._recorder.record(kind, label, about)
        changed = self._changes.get(step.name)
        if changed is None or not changed.change.fits(step):
            return None
        self.happened.append(changed)
        if kind in CALLS:
            self.changed_at = location_on_thread(get_ident())
        return changed.change.effect


UNITS: Final = {"s": 1, "m": 60, "h": 3600}
REPORTS: Final = (".html", ".htm", ".json")


def seconds_of(text: str) -> float:
    """Parse a duration such as ``60s`` or ``10m``; return seconds.

    Raises:
        ValueError: the text is not a duration above zero and below infinity.
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
    """Validate the file name of a report.

    Raises:
        ValueError: the file is neither HTML nor JSON, or its folder does not exist.
    """
    if Path(name).suffix not in REPORTS:
        raise ValueError(f"takes an .html or a .json file, not {name!r}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"takes a file in an existing folder, not {name!r}")
