"""One run of a rehearsed test: records its steps, applies one change, and reads the books in between."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Barrier, BrokenBarrierError, Lock, get_ident
from typing import Any, Final

from payment_sandbox.judge.books import BookProblem
from payment_sandbox.judge.history import short_path
from payment_sandbox.operations.act import act
from payment_sandbox.orders.actions import CUSTOMER
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.rehearsal import OrderAction, Rehearsal, ShopCall
from payment_sandbox.scenarios.effects import Fault, Together
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.shops.browser import Browser
from payment_sandbox.testing.shops.shop_requests import is_shop_answering
from payment_sandbox.testing.shops.submitting import FixtureLookup, Submission
from payment_sandbox.testing.shops.tracebacks import CURRENT_HANDLER
from pytest_payment_sandbox.rehearsal.scenes import Scene, deliver_webhooks, orders_of
from pytest_payment_sandbox.rehearsal.steps import (
    ACTION,
    ATTEMPT,
    CREATE,
    ORDER_ID_INDEX,
    PRESS,
    READ,
    TIME,
    WEBHOOK,
    ActionDetails,
    Change,
    Step,
    Variation,
    kind_of_call,
)
from pytest_payment_sandbox.rehearsal.variations import OUTAGE
from pytest_payment_sandbox.rehearsal.verdicts import BOOKS_FIXTURE, Verdict, find_unpaid

MEETING_SECONDS: Final = 0.4
SAME_CALLS_MAX: Final = 300  # calls per method and path at one point in sandbox time
ACTION_LABELS: Final = {"customer pay": "the customer's payment", "bank credit": "the bank's credit"}
CUT_OFF: Final = Fault.from_data({"reset": True})


class RunEnded(BaseException):
    """A run must not go on. This is a ``BaseException``, so that the shop does not catch it."""


class TestRun(Rehearsal):
    """One run of a test, with one change or none; ``baseline`` is the verdict on the unchanged run."""

    __test__ = False
    is_over = False  # whether the test has ended
    is_cut_off = False  # whether the time limit ended the run
    is_acting = False  # whether an action outside the test is running
    is_attached = False  # whether there are a sandbox and its project
    sandbox: PaymentSandbox
    project: Project
    endless_call = ""  # the call that the shop repeats although no time passes

    def __init__(
        self,
        change: Change | None,
        baseline: Verdict | None,
        find_fixture: FixtureLookup,
        has_time: Callable[[], bool],
        judge: "Callable[[TestRun, BaseException | None], Verdict]",
    ) -> None:
        self.change, self.baseline = change, baseline
        self.find_fixture = find_fixture
        self.steps: list[Step] = []
        self.is_applied, self._efforts_at_change = False, tuple[int, ...]()
        self._is_hidden = False  # whether nobody but the shop could notice the change, and try again
        self.verdict: Verdict | None = None
        self.marks: list[tuple[datetime, str]] = []  # the real time and the sentence of the change
        self.unpaid: list[BookProblem] = []  # purchases that were marked as paid before any payment
        self.opened: dict[str, str] = {}  # the pages that the test has opened, with its cookies
        self.direct_calls = 0  # calls of the shop's functions by the test itself
        self.most_calls = 0  # equal calls at one time
        self._has_time, self._judge = has_time, judge
        self._browser: Browser | None = None
        self._lock, self._thread = Lock(), get_ident()
        self._counts: Counter[str] = Counter()
        self._same_calls: Counter[str] = Counter()
        self._same_since: datetime | None = None
        self._unread = 0  # how many of the next reads fail
        self._meeting: Barrier | None = None
        self.before_action: list[Callable[[], None]] = []
        self.after_action: list[Callable[[], None]] = []
        self._others: list[str] = []  # the orders of another customer

    # The observer of the test

    def attach(self, project: PaymentSandbox, lookup: FixtureLookup | None = None) -> None:
        """Rehearse the test's project, but no other projects of the same test."""
        own = project.server.project_of(project.api_key)
        if own is None or self.is_attached:
            return
        self.is_attached, self.sandbox = True, project
        self.find_fixture = lookup or self.find_fixture
        own.rehearse(self)
        self.project = own

    def end(self, failure: BaseException | None) -> None:
        """Judge the run after the end of its test."""
        if not self.is_attached or self.is_over:
            return
        self.is_over = True
        self.verdict = self._judge(self, failure)

    def submit(self, path: str, body: bytes) -> Submission | None:
        """Record the form that the test submits, and vary it if it is the changed step."""
        row = None if self.is_over else self._record(PRESS, f"the form {path}", body)
        return row.effect(self, body) if row is not None else None

    def visit(self, url: str, cookies: str) -> None:
        """Record a page that the test opens."""
        if not self.is_over:
            self.opened[url] = cookies

    @property
    def browser(self) -> Browser | None:
        """A customer's browser, if the shop is in this process."""
        if self._browser is None and self.sandbox.application is not None:
            self._browser = self.sandbox.browser(self.sandbox.application)
        return self._browser

    @property
    def efforts(self) -> tuple[int, ...]:
        """What the test itself has done: forms, actions, advances and direct calls of the shop."""
        kinds = Counter(step.kind for step in self.steps)
        return kinds[PRESS], kinds[ACTION], kinds[TIME], self.direct_calls

    @property
    def has_more_creations(self) -> bool:
        """Whether the shop created more orders than in the unchanged run, so that it repeated a call."""
        creations = sum(step.kind == CREATE for step in self.steps)
        return self.baseline is None or creations > self.baseline.creations

    @property
    def is_left_alone(self) -> bool:
        """Whether the test has asked the shop for nothing after the change, and did not see it fail."""
        forms, *_, direct_calls = self.efforts
        return self._is_hidden and (forms, direct_calls) == self._efforts_at_change[::3]

    # The rehearsal of the project

    def choose(self, step: Any) -> Any:
        """Return the effect on a call, a webhook, or the decision on an attempt."""
        if isinstance(step, ShopCall):
            return self._choose_for_call(step)
        if isinstance(step, Delivery):
            return self._choose_for_webhook(step)
        label = "the refund" if step.is_refund else f"the {', '.join(sorted(step.methods))} payment"
        row = self._record(ATTEMPT, label, step)
        return row.effect if row is not None else None

    def _choose_for_call(self, call: ShopCall) -> Fault | None:
        if self._meeting is not None:
            with suppress(BrokenBarrierError):
                self._meeting.wait(MEETING_SECONDS)
        own_thread, job = get_ident() == self._thread, self.project.epoch.jobs.running
        if self._must_end(call, may_raise=own_thread):
            return CUT_OFF
        is_inside = CURRENT_HANDLER.get() is not None or is_shop_answering() or job is not None
        self.direct_calls += own_thread and not (is_inside or self.is_acting)
        kind, where = kind_of_call(call.method, call.path), f" in its job {job.name}" if job else ""
        row = self._record(kind, f"the shop's {call.method} {short_path(call.path)}{where}", call)
        if row is None:
            is_unread = kind == READ and self._unread > 0
            self._unread -= is_unread
            return OUTAGE if is_unread else None
        self._unread = int(row.name == "unavailable-twice")
        if isinstance(row.effect, Fault):
            return row.effect
        order_id = "".join(call.path.split("/")[ORDER_ID_INDEX : ORDER_ID_INDEX + 1])
        row.effect(self.project, self.project.find_order(order_id))
        return None

    def _must_end(self, call: ShopCall, *, may_raise: bool) -> bool:
        """Whether a call comes after the time limit, or repeats a call endlessly."""
        now = self.project.epoch.timeline.now
        if now != self._same_since:
            self._same_calls.clear()
            self._same_since = now
        name = f"{call.method} {call.path}"
        self._same_calls[name] += 1
        count, usual = self._same_calls[name], self.baseline.most_calls if self.baseline else 0
        self.most_calls = max(self.most_calls, count)
        if count > max(SAME_CALLS_MAX, 2 * usual) and not (self.baseline is None and call.method != "GET"):
            self.endless_call = f"{call.method} {short_path(call.path)}"
        elif self._has_time():
            return False
        else:
            self.is_cut_off = True
        if may_raise and (self.is_cut_off or count > 2 * SAME_CALLS_MAX):
            raise RunEnded(name)
        return True

    def _choose_for_webhook(self, delivery: Delivery) -> Any:
        self._read_books()
        if delivery.next_number > 1 or delivery.postponed:
            return None
        row = self._record(WEBHOOK, f"the webhook of {delivery.status!r}", delivery)
        if row is None:
            return None
        self._unread = 1 if row.name == "lost-and-unread" else 0
        self._meeting = Barrier(2) if isinstance(row.effect, Together) else None
        return row.effect

    def perform(self, step: Any, do: Callable[[Any], Any]) -> Any:
        """Perform an action, an advance or a job's run, or something else instead."""
        if isinstance(step, Job) or self.is_over or self.is_acting:
            return do(step)
        if isinstance(step, OrderAction):
            return self._act(step, do)
        self._read_books()
        row = self._record(TIME, "the clock advance", step)
        result = do(step)
        if row is not None:
            with self._acting():
                row.effect(Scene(self))
        return result

    def _act(self, step: OrderAction, do: Callable[[OrderAction], Order]) -> Order:
        order_id, action = step
        before, self.before_action = self.before_action, []
        for submit in before:
            deliver_webhooks(self.project)  # the form's own calls wait only for later webhooks
            submit()
        if action.actor == CUSTOMER and self._is_address_lost(order_id):
            return self.project.find_order(order_id)
        self._read_books()
        with self._acting():
            for other in self._others if order_id not in self._others else ():
                with suppress(Refusal):
                    act(self.project, other, action)
        order = self.project.find_order(order_id)
        attempt, earlier = order.last_transaction, self._find_earlier(order)
        about = ActionDetails(
            action,
            is_hosted=order.is_hosted,
            has_return=order.return_url is not None and self.browser is not None,
            has_earlier=bool(earlier),
            has_authorization=attempt is not None and attempt.capture_mode is not None,
        )
        label = ACTION_LABELS.get(action.name, f"the {action.actor}'s action ({action.action})")
        after, self.after_action = self.after_action, []
        row = self._record(ACTION, label, about)
        if row is None:
            result = do(step)
        else:
            scene = Scene(self, order_id, action, lambda chosen: do(OrderAction(order_id, chosen)), earlier)
            with self._acting():
                row.effect(scene)
            result = scene.order
        for late in after:
            with self._acting():
                deliver_webhooks(self.project)
                late()
        return result

    @contextmanager
    def _acting(self) -> Iterator[None]:
        self.is_acting = True
        try:
            yield
        finally:
            self.is_acting = False

    def _find_earlier(self, order: Order) -> list[Order]:
        """Return earlier orders that can still be paid, except those whose address was lost."""
        others = (each for each in orders_of(self.project)[::-1] if each.id != order.id and each.is_open)
        return [each for each in others if not (each.is_refund or self._is_address_lost(each.id))]

    def _is_address_lost(self, order_id: str) -> bool:
        """Whether no response with an order reached the shop, so that no customer has its address."""
        about = [
            entry.fault is not None and entry.fault.loses_response
            for entry in self.project.epoch.journal.entries()
            if order_id in entry.path
            or (kind_of_call(entry.method, entry.path) == CREATE and order_id.encode() in entry.response)
        ]
        return bool(about) and all(about)

    # What the variations use

    def note_other_customer(self) -> Callable[[], None]:
        """Return a function that notes the orders created since now as those of another customer."""
        before = {order.id for order in orders_of(self.project)}

        def note() -> None:
            self._others = [order.id for order in orders_of(self.project) if order.id not in before]

        return note

    # Records

    def _record(self, kind: str, label: str, about: Any) -> Variation | None:
        if self.is_over:
            return None
        with self._lock:
            self._counts[kind] += 1
            step = Step(kind, self._counts[kind], label, about)
            self.steps.append(step)
        if self.change is None or self.change.step != step.name or not self.change.row.applies(about):
            return None
        self.is_applied, self._efforts_at_change = True, self.efforts
        self._is_hidden = kind != READ or CURRENT_HANDLER.get() is not None
        self.marks.append((wall_now(), self.change.row.sentence.format(step=label)))
        return self.change.row

    def _read_books(self) -> None:
        """Read the books in the middle of a run, on the test's thread only, which may own the database."""
        books = self.find_fixture(BOOKS_FIXTURE)
        if books is None or get_ident() != self._thread or len(self.unpaid) > 0:
            return
        with suppress(Exception):  # in the middle of a request, the books may be unreadable
            self.unpaid += find_unpaid(self.project, books)
