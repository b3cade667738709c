"""Records the steps of one run of a rehearsed test, and applies the changes to them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.judge.history import short_path
from payment_sandbox.operations.act import act
from payment_sandbox.operations.redelivery import redeliver
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.orders.webhooks import NO_ANSWER, Delivery, WebhookAttempt
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.rehearsal_hooks import Do, Rehearsal, Result
from payment_sandbox.scenarios.effects import AfterPayment, Fault, Timeout, Together, WebhookEffect
from payment_sandbox.scenarios.model import Subject
from payment_sandbox.scenarios.variation import (
    ACTION,
    ATTEMPT,
    CALLS,
    CREATE,
    JOB,
    PRESS,
    READ,
    TIME,
    WEBHOOK,
    ChangedNumber,
    ClockAdvance,
    JobRun,
    OrderAction,
    OtherChoice,
    OtherCustomer,
    PriorEvent,
    Repeat,
    ReplacementScene,
    ShopCall,
    Step,
    StepDetails,
    SubmittedForm,
    VariationEffect,
)
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.sessions import REFUSED, address_of
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.shops.filling import (
    add_cents,
    add_to_number,
    change_choice,
    change_number_to_one,
)
from payment_sandbox.testing.shops.submitting import Submission
from payment_sandbox.web.error_bodies import MERCHANT_PATHS
from pytest_payment_sandbox.rehearsal.changes import IN_JOB, ChangedStep, StepRecorder, kind_of_call
from pytest_payment_sandbox.rehearsal.pacing import BusyTimes, JobPace
from pytest_payment_sandbox.rehearsal.places import SourceLine, current_lines, innermost_decision
from pytest_payment_sandbox.rehearsal.rendezvous import CHECK_SECONDS, Rendezvous, thread_positions
from pytest_payment_sandbox.rehearsal.scenes import (
    Scene,
    apply_event,
    authorization_expiries,
    deliver_webhooks,
    earlier_open_orders,
    offered_transfer,
    play,
)

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

FIRST_ATTEMPT: Final = 1  # the number of a webhook's first attempt
ACTION_LABELS: Final = {"customer pay": "the customer's payment", "bank credit": "the bank's credit"}
SAME_CALLS_MAX: Final = 300  # calls per method and path at one point in sandbox time
SAME_CALLS_BASELINE_MAX: Final = 10_000  # the limit in the unchanged test, which should end by itself
GET: Final = "GET"
IDLE_CHECKS_EARLY: Final = 200  # idle checks until the handler of an early webhook counts as blocked

CUT_OFF_FAULT: Final = Fault.from_data({"reset": True})


class RunningTest(NamedTuple):
    """What a run does with its test and its shop."""

    visit: Callable[[Order, int], None] = lambda order, tabs: None  # opens the return page in so many tabs
    restart: Callable[[], None] = lambda: None  # restarts the shop
    observe: Callable[[str], None] = lambda kind: None  # called before each action and webhook


UNOBSERVED_TEST: Final = RunningTest()


class RepeatedCalls:
    """Counts calls with the same method and path made while no sandbox time passes."""

    def __init__(self) -> None:
        self.most_calls = 0
        self._counts: Counter[str] = Counter()
        self._since: datetime | None = None
        self._limit = SAME_CALLS_BASELINE_MAX

    def set_limit(self, baseline_calls: int) -> None:
        """Allow twice as many calls as the unchanged test made, but at least ``SAME_CALLS_MAX``."""
        self._limit = max(SAME_CALLS_MAX, 2 * baseline_calls)

    def is_over(self, call: str, now: datetime) -> bool:
        """Count a call; return whether there were too many such calls."""
        if now != self._since:
            self._counts.clear()
            self._since = now
        self._counts[call] += 1
        self.most_calls = max(self.most_calls, self._counts[call])
        return self._counts[call] > self._limit

    @property
    def is_endless(self) -> bool:
        """Whether the shop repeats a call long after the limit has been reached."""
        return self.most_calls > 2 * self._limit


class RehearsedRun(Rehearsal):
    """One run of a test: decides the fault, effect or time of each step for the project."""

    is_thread_safe = True  # whether the shop's handlers work on threads other than the test's
    is_abandoned = False  # whether the run took too long, and must stop at its next call
    endless_poll = ""  # the call repeated by the shop although nothing changes
    _test_ended_at: datetime | None = None  # in real time
    has_shop_ended = False  # whether the shop's server ended with the test
    _has_test_failed = False
    _gets_webhooks = True  # False after a webhook without an answer after the test

    def __init__(
        self,
        project: "Project",
        changes: Sequence[ChangedStep] = (),
        *,
        is_threaded: bool = False,
        test: RunningTest = UNOBSERVED_TEST,
    ) -> None:
        """Rehearse a project; with ``is_threaded``, webhooks are handled on threads other than the test's."""
        self.project = project
        self.applied: list[ChangedStep] = []
        self.marks: list[tuple[datetime, str]] = []  # the real time and the description of each change
        self._call_lines: dict[str, Sequence[SourceLine]] = {}  # the shop's lines of each call, by step
        self.endless_waits: list[str] = []
        self.calls = RepeatedCalls()
        self.pace = JobPace()
        self._test = test
        self._recorder = StepRecorder()
        self._changes = {changed.step: changed for changed in changes}
        self.is_threaded = is_threaded
        self._versions: dict[str, list[Order]] = defaultdict(list)  # by order, oldest first
        self._seen_versions: dict[str, int] = {}  # the newest version that the shop has seen, by order
        self.statuses: dict[str, tuple[str, ...]] = {}  # the statuses that the shop has read, by order
        self._is_recording = True
        self._rendezvous: Rendezvous | None = None
        self._is_acting = False  # whether an action outside the test is running
        self._after_payment: list[str] = []  # webhooks to deliver after the next payment
        self._orders_of_other_customer: list[str] = []  # the orders of another customer
        self._late_submissions: list[Callable[[], None]] = []
        self._job_times: set[datetime] = set()  # when the shop's jobs ran, or had to catch up
        self._is_job_recorded = True  # False while a job runs that is not yet recorded as a step
        self._repeats_job = False  # whether the current run of a job must be repeated
        self._concurrent_run: Thread | None = None  # simulates the same job in another process

    @property
    def steps(self) -> list[Step]:
        """The steps so far."""
        return list(self._recorder.steps)

    @property
    def scheduled_calls(self) -> set[str]:
        """The ids of calls made when one of the shop's jobs ran, or caught up after a jump of the clock."""
        entries = self.project.epoch.journal.entries()
        return {entry.id for entry in entries if entry.at in self._job_times}

    def find_changed_line(self) -> SourceLine | None:
        """Return the line that decided on the changed call, on that of a changed attempt, or on the next."""
        changed, names = self.applied[-1].step if self.applied else "", [step.name for step in self.steps]
        place = names.index(changed) if changed in names else len(names)
        place -= changed.startswith(ATTEMPT) and names[place - 1] in self._call_lines
        located = [self._call_lines[name] for name in names[place:] if name in self._call_lines]
        return innermost_decision(located[0]) if located else None

    def follow(self, most_calls: int, busy: BusyTimes) -> None:
        """Use the number of equal calls and the busy times of the jobs in the unchanged test."""
        self.calls.set_limit(most_calls)
        self.pace.baseline_busy = busy

    def end_test(self, *, has_failed: bool = False) -> None:
        """Mark the end of the test: afterwards, only reads by the shop's jobs are steps."""
        self._test_ended_at, self.pace.has_test_ended = wall_now(), True
        self._has_test_failed = has_failed
        self.calls.set_limit(self.calls.most_calls)

    @property
    def _has_test_ended(self) -> bool:
        return self._test_ended_at is not None

    def stop_recording(self) -> None:
        """Stop recording and changing steps."""
        self._is_recording = False

    # Calls from the project

    def must_end_run(self, path: str) -> bool:
        """Whether a call must end the run: it was abandoned, or the shop keeps calling beyond the limit."""
        return self.is_abandoned or (self.calls.is_endless and path.startswith(MERCHANT_PATHS))

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """Return the time of a job's next run; idle jobs run at increasing intervals."""
        return self.pace.next_run(job, limit)

    def run_job(self, job: Job) -> str | None:
        """Run a job of the shop once, or twice if the variation repeats it.

        The first run of each job is a step, as is every run that makes a change.
        """
        self._is_job_recorded = False
        self._job_times.add(self.project.now())
        problem = job.run()
        self._join_concurrent_run()
        if not self._is_job_recorded and job.runs == 1:
            self._record_run(job, changes_orders=False)
        repeats, self._repeats_job = self._repeats_job, False
        return (job.run() or problem) if repeats else problem

    def _join_concurrent_run(self) -> None:
        """Wait for the concurrent run of the same job."""
        concurrent_run, self._concurrent_run = self._concurrent_run, None
        if concurrent_run is not None:
            concurrent_run.join()

    def _record_run(self, job: Job, *, changes_orders: bool) -> None:
        """Record a run of a job as a step, before its first change or after its end."""
        self._is_job_recorded = True
        effect = self._next_effect(
            JOB, f"the run of the shop's job {job.name}", JobRun(job.name, changes_orders)
        )
        if not isinstance(effect, Repeat):
            return
        self._repeats_job = not effect.at_once
        if effect.at_once:
            self._rendezvous, context = Rendezvous(), copy_context()

            def run() -> None:
                with suppress(Exception):
                    context.run(job.run)

            self._concurrent_run = Thread(target=run, name="second process")
            start(self._concurrent_run)
            self._rendezvous.meet()

    def call(self, method: str, path: str) -> Fault | None:
        """Return the fault for a call by the shop, if there is one."""
        if self._rendezvous is not None:
            self._rendezvous.meet()
        if self.calls.is_over(f"{method} {path}", self.project.epoch.timeline.now):
            self.endless_poll = f"{method} {short_path(path)}"
            return CUT_OFF_FAULT
        job = self.project.epoch.jobs.running
        if job is not None and not self._record_job_call(job, method, path):
            return None
        label = f"the shop's {method} {short_path(path)}{f'{IN_JOB}{job.name}' if job is not None else ''}"
        effect = self._next_effect(kind_of_call(method, path), label, ShopCall(method, path))
        if isinstance(effect, PriorEvent):
            apply_event(effect, self.project, path)
        return effect if isinstance(effect, Fault) else None

    def _record_job_call(self, job: Job, method: str, path: str) -> bool:
        """Record a call by a running job; return whether the call is new in this state."""
        if kind_of_call(method, path) != READ and not self._is_job_recorded:
            self._record_run(job, changes_orders=True)
        return self.pace.record_call(job, f"{method} {path}")

    def record_edit(self, orders: Mapping[str, Order], *, is_noticed: bool) -> None:
        """Record the new versions of orders, which a stale response may repeat."""
        self.pace.edit_count += is_noticed
        for order_id, order in orders.items():
            self._versions[order_id].append(order)

    def earlier_version(self, order: Order) -> Order:
        """Return the version before the current status, unless the shop has seen a newer version."""
        seen = self._seen_versions.get(order.id, 0)
        earlier = [
            each for each in self._versions[order.id] if each.version >= seen and each.status != order.status
        ]
        return earlier[-1] if earlier else order

    def record_answer(self, method: str, order: Order) -> None:
        """Record the version of an order in a response to the shop."""
        self._seen_versions[order.id] = max(order.version, self._seen_versions.get(order.id, 0))
        if not self._versions[order.id]:
            self._versions[order.id].append(order)
        if method == GET:
            self.statuses[order.id] = (*self.statuses.pop(order.id, ()), order.status)

    def webhook(self, delivery: Delivery) -> WebhookEffect | None:
        """Return the effect of a change on a webhook attempt; only first attempts are steps."""
        self._test.observe(WEBHOOK)
        if self._gets_webhooks:
            self._look_for_end(delivery)
        if not self._gets_webhooks:
            return Timeout()
        if delivery.next_number > FIRST_ATTEMPT or delivery.postponed:
            return None
        effect = self._next_effect(WEBHOOK, f"the webhook of {delivery.status!r}", delivery)
        if isinstance(effect, Together):
            self._rendezvous = Rendezvous()
        if isinstance(effect, AfterPayment):
            self._after_payment.append(delivery.id)
        return effect if isinstance(effect, WebhookEffect) else None

    def is_late(self, attempt: WebhookAttempt) -> bool:
        """Whether a webhook attempt was made after the test."""
        return self._test_ended_at is not None and attempt.real_at >= self._test_ended_at

    def _look_for_end(self, delivery: Delivery) -> None:
        """Stop the webhooks if the last attempt, made after the test, met no server or got no answer in time.

        A missing answer is also what a hanging handler looks like: it shows the end of the server only if the
        test failed, because a failed test leaves an event loop that still listens, but no longer runs.
        """
        attempt = next(iter(delivery.attempts[-1:]), None)
        if attempt is None or attempt.is_withheld or not self.is_late(attempt):
            return
        error = attempt.reply.error or ""
        if (error or "").startswith(NO_ANSWER) and attempt.reply.traceback is None:
            self._gets_webhooks = False
            self.has_shop_ended = self._has_test_failed
        elif error.startswith(REFUSED) and self._has_served(delivery.url):
            self._gets_webhooks = False
            self.has_shop_ended = True

    def _has_served(self, url: str) -> bool:
        """Whether a server at this address answered a webhook during the test, or a change may prevent it."""
        attempts = [each for delivery in self.project.epoch.store.deliveries() for each in delivery.attempts]
        return bool(self.applied) or any(
            each.reply.status is not None
            and not each.is_withheld
            and not self.is_late(each)
            and address_of(each.request.url) == address_of(url)
            for each in attempts
        )

    def deliver_first(self, deliver: Callable[[], None]) -> None:
        """Deliver webhooks on another thread; return once they are handled, or a handler is blocked.

        A shop that serializes its work holds a lock during its call, and its handler waits for this lock.
        Handlers that fail on other threads run on the current thread.
        """
        if not self.is_thread_safe:
            deliver()
            return
        delivery = Thread(target=copy_context().run, args=(deliver,), name="early webhooks")
        start(delivery)
        idle_checks, positions = 0, thread_positions()
        while delivery.is_alive() and idle_checks < IDLE_CHECKS_EARLY:
            delivery.join(CHECK_SECONDS)
            before, positions = positions, thread_positions()
            idle_checks = idle_checks + 1 if positions == before else 0

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """Perform an action by a customer or a bank, or its replacement in this run."""
        if not self._is_recording or self._has_test_ended or self._is_acting:
            return do(action)
        self._submit_late_forms()
        order = self._act(order_id, action, do)
        if self._after_payment and action.name in ACTION_LABELS:
            deliver_webhooks(self.project)
            overtaken, self._after_payment = self._after_payment, []
            for delivery_id in overtaken:
                redeliver(self.project, delivery_id)
        return order

    def _submit_late_forms(self) -> None:
        """Submit the forms whose second submission was postponed until the next action."""
        late_submissions, self._late_submissions = self._late_submissions, []
        for submit in late_submissions:
            deliver_webhooks(self.project)  # the form's own calls wait only for later webhooks
            submit()

    def _act(self, order_id: str, action: Action, do: Do) -> Order:
        if action.actor == CUSTOMER and self.is_address_lost(order_id):
            return self.project.find_order(order_id)
        self._test.observe(ACTION)
        self._act_for_other_customer(order_id, action)
        order = self.project.find_order(order_id)
        attempt = order.last_transaction
        before = earlier_open_orders(self.project, order, self._seen_versions)
        about = OrderAction(
            action,
            is_hosted=order.is_hosted,
            has_return=order.return_url is not None,
            has_earlier_attempts=bool(before),
            has_authorization=attempt is not None and attempt.capture_mode is not None,
            transfer=offered_transfer(self.project, order),
        )
        label = ACTION_LABELS.get(action.name, f"the {action.actor}'s action ({action.action})")
        effect = self._next_effect(ACTION, label, about)
        if not isinstance(effect, Action | ReplacementScene):
            return do(action)
        test = self._test
        scene = Scene(self.project, test.restart, order_id, action, do, test.visit, before)
        with self._jumping():
            play([effect] if isinstance(effect, Action) else effect.acts, scene)
        return scene.order

    @contextmanager
    def _jumping(self) -> Iterator[None]:
        """Act outside the test; if the clock moves, the test's own jobs catch up at its new time."""
        self._is_acting, before = True, self.project.now()
        try:
            yield
        finally:
            self._is_acting = False
            if self.project.now() > before:
                self._job_times.add(self.project.now())
                self.calls.set_limit(SAME_CALLS_BASELINE_MAX)

    def is_address_lost(self, order_id: str, calls: Container[str] = CALLS) -> bool:
        """Whether no response with an order reached the shop, so that no customer has its address.

        ``calls`` has the kinds of calls whose responses the shop can show to the customer.
        """
        about = [
            entry.fault is not None and entry.fault.loses_response
            for entry in self.project.epoch.journal.entries()
            if kind_of_call(entry.method, entry.path) in calls
            and (entry.order_id == order_id or order_id.encode() in entry.response)
        ]
        return bool(about) and all(about)

    def advance(self, do: Callable[[], Result]) -> Result:
        """Advance the clock for the test; in this run, more time may pass afterwards."""
        if not self._is_recording or self._has_test_ended or self._is_acting:
            return do()
        about = ClockAdvance(has_authorization=bool(authorization_expiries(self.project)))
        effect = self._next_effect(TIME, "the clock advance", about)
        result = do()
        if isinstance(effect, ReplacementScene):
            with self._jumping():
                play(effect.acts[1:], Scene(self.project, self._test.restart))
        return result

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """Return the service's changed decision on an attempt or a refund, if there is one."""
        methods = ", ".join(sorted(subject.methods))
        label = "the refund" if subject.is_refund else f"the {methods} payment"
        effect = self._next_effect(ATTEMPT, label, subject)
        return effect if isinstance(effect, Mapping) else None

    def record_endless_wait(self, method: str, path: str) -> None:
        """Record a call that got no response and has no timeout."""
        self.endless_waits.append(f"{method} {short_path(path)}")

    # Calls from the observer of the shop's forms

    def vary_submission(self, path: str, form: SubmittedForm) -> Submission | None:
        """Record the submission of a form; return the variation of the submission, if there is one."""
        effect = self._next_effect(PRESS, f"the form {path}", form)
        if isinstance(effect, ChangedNumber):
            return Submission(
                fill=partial(add_cents if effect.is_amount else add_to_number, difference=effect.difference)
            )
        if isinstance(effect, OtherChoice):
            return Submission(fill=change_choice)
        if isinstance(effect, OtherCustomer):
            return Submission(
                after_other_customer=partial(self._record_other_customer, self._order_ids(), effect)
            )
        if not isinstance(effect, Repeat):
            return None
        if effect.at_once:
            self._rendezvous = Rendezvous()
        submission = Submission(effect.at_once)
        if effect.in_parts:
            submission = submission._replace(
                fill=partial(add_to_number, difference=-1), refill=change_number_to_one
            )
        return submission._replace(postpone=self._late_submissions.append if effect.is_late else None)

    def _order_ids(self) -> set[str]:
        return {order.id for order in self.project.epoch.store.orders_newest_first()}

    def _record_other_customer(self, before: set[str], effect: OtherCustomer) -> None:
        """Record the orders created when the other customer submitted a form."""
        if effect.pays:
            self._orders_of_other_customer = sorted(self._order_ids() - before)

    def _act_for_other_customer(self, order_id: str, action: Action) -> None:
        """Repeat an action by the test's customer on the orders of the other customer."""
        if not self._orders_of_other_customer or order_id in self._orders_of_other_customer:
            return
        self._is_acting = True
        try:
            for other in self._orders_of_other_customer:
                if self.is_address_lost(other, (CREATE,)):  # only the test's customer comes back
                    continue
                with suppress(Refusal):
                    act(self.project, other, action)
        finally:
            self._is_acting = False

    def _next_effect(self, kind: str, label: str, about: StepDetails) -> VariationEffect | None:
        """Record the next step of a kind; return the effect of its change, or None if it has none."""
        job = self.project.epoch.jobs.running
        is_first_read = job is not None and job.runs == 1 and kind == READ
        if not self._is_recording or (self._has_test_ended and not is_first_read):
            return None
        step = self._recorder.record(kind, label, about)
        if step.kind in CALLS:
            self._call_lines[step.name] = current_lines()
        changed = self._changes.get(step.name)
        if changed is None or not changed.change.applies_to(step):
            return None
        self.applied.append(changed)
        self.marks.append((wall_now(), changed.change.sentence.format(step=step.label)))
        return changed.change.effect
