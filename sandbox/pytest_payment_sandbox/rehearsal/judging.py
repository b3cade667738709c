"""Judges one run of a test once the project is idle: after all retries, jobs and due events."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from payment_sandbox.judge import HINT, Finding, review
from payment_sandbox.judge.evidence import ACCEPTED_STATUSES
from payment_sandbox.judge.payment_checks import lapsed_authorizations
from payment_sandbox.judge.webhook_checks import attempt_id
from payment_sandbox.kernel.masking import MASK
from payment_sandbox.orders.webhooks import NO_ANSWER, Delivery, DeliveryState, WebhookAttempt
from payment_sandbox.projects.journal import AgendaEvent
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import (
    CALLS,
    CREATE,
    PRESS,
    Repeat,
    Step,
    Trait,
)
from payment_sandbox.scenarios.variation_catalogue import UNPAID_STATUSES, WEBHOOKS_FIRST
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.causes import BooksSnapshot, Signs, observe_signs
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, label_without_job
from pytest_payment_sandbox.rehearsal.pacing import BusyTimes
from pytest_payment_sandbox.rehearsal.reconciliation import (
    BookProblem,
    Books,
    compare_books,
    find_lasting_problems,
    find_missed_authorizations,
    find_reversals,
    find_unpaid_purchases,
    order_records,
)
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.run_comparison import (
    NOTHING_MOVED,
    Moved,
    RecurringCharges,
    count_recurring_charges,
    find_extra_charges,
    find_extra_money,
    find_extra_refunds,
    find_repeated_moves,
    find_unshipped_captures,
    sum_moved_amounts,
)
from pytest_payment_sandbox.rehearsal.showing import EMPTY_VIEW, CustomerView, find_view_problems

ONE_DAY: Final = timedelta(days=1)
JUDGING_PERIOD: Final = timedelta(days=40)
ONE_SECOND: Final = timedelta(seconds=1)
THREE_DAYS_VARIATION: Final = "three-days"
EARLY_EXPIRY_MAX: Final = timedelta(days=4)  # includes the duration of the test itself
UNREAD_RULE: Final = "HOOK-08"
UNANSWERED_RULE: Final = "HOOK-09"
NOTHING_EXCUSED: Final[Mapping[str, Set[str]]] = MappingProxyType({})
BUSY_STATUSES: Final = frozenset({409, 423, 425, 429, 503})  # statuses that request a retry
REVIEW_PREFIX: Final = "review "
"""The prefix of the kinds of problems that come from the review."""
LESS_SPECIFIC_KINDS: Final = ("invariant", "review", "shown", "mailed", "test")
DUPLICATE_ORDER_RULES: Final = frozenset({"ORD-07", "CTL-23"})
POLLING_RULE: Final = "HOOK-02"
UNRELATED_RULES: Final = frozenset(
    {"CAP-03", "CAP-04", "SET-31", "SET-12", "SET-47", "HOOK-03", "HOOK-13", "SCN-02"}
)
"""Review rules that do not depend on the variation, or that few shops follow: small surpluses."""

Advance = Callable[[datetime], Any]
"""Advances the project's clock to a time, running due webhooks and jobs."""


State = tuple[Any, ...]
"""The shop's books and the service's records, for comparison with other runs."""
_SQLITE_LOCKED: Final = re.compile(r"OperationalError\W+database (?:table )?is locked")
_QUOTED_TEXT: Final = re.compile(r"""'[^']*'|"[^"]*\"""")


class RunVerdict(NamedTuple):
    """The verdict on a run; ``moved`` has the total received, refunded and shipped amounts, in cents."""

    problems: list[BookProblem]
    trace: tuple[str, ...]
    state: State
    moved: Moved = NOTHING_MOVED
    view: CustomerView = EMPTY_VIEW
    reads_pages_early: bool = False  # pages are read a day after the test, while authorizations are valid
    most_calls: int = 0  # the largest number of equal calls at one sandbox time
    busy: BusyTimes = MappingProxyType({})  # when the shop's jobs made new calls, by job
    signs: Signs = frozenset()  # signs of the shop's behaviour
    charges: RecurringCharges = RecurringCharges()  # up to the end of the test


def read_books(books: Books | None) -> tuple[list[BookEntry], list[BookProblem]]:
    """Read the entries of the shop's books; a failed assertion in the fixture is a problem.

    Raises:
        TypeError: the fixture does not return entries.
        ValueError: an item is not a valid entry.
    """
    if books is None:
        return [], []
    try:
        entries = books()
        if not isinstance(entries, Iterable):
            raise TypeError(f"payment_books must return a list of entries, not {entries!r}")
        return [BookEntry.read(entry) for entry in entries], []
    except AssertionError as wrong:
        return [], [BookProblem("invariant", str(wrong).partition("\n")[0] or "an invariant is violated")]


@dataclass
class Trial:
    """Judges a run at the end of its test, a day later, and once no events are due.

    ``failure`` is the failure of the test, and ``baseline`` is the verdict on the unchanged test.
    ``read_view`` reads the shop's pages and emails, ``books`` its books, and ``snapshots`` has the books
    before each action and webhook. ``advance`` advances the project's clock.
    """

    run: RehearsedRun
    changes: Sequence[ChangedStep]
    failure: str | None
    baseline: RunVerdict | None
    read_view: Callable[[], CustomerView]
    advance: Advance
    books: Books | None
    snapshots: Sequence[BooksSnapshot] = ()
    _view: CustomerView | None = None
    _early_review: Sequence[BookProblem] = ()  # precedes page requests, which may update the shop
    _has_readable_books: bool = False  # whether the books were readable at the last attempt
    _invariants: Sequence[BookProblem] = ()  # the invariants violated at the last attempt
    _late_problems: list[BookProblem] = field(default_factory=list)
    _lasting_problems: list[BookProblem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._project = self.run.project
        self._books_history = [each.entries for each in self.snapshots]

    def verdict(self) -> RunVerdict:
        """Judge the run."""
        project = self._project
        self.run.end_test(has_failed=self.failure is not None)
        problems = _test_failures(self.failure, self.changes) + _find_early_expiries(project, self.changes)
        entries = self._read_entries()
        self._lasting_problems += [*self._invariants, *find_lasting_problems(entries, project)]
        signs = observe_signs([*self.snapshots, BooksSnapshot(entries, dict(self.run.statuses))], project)
        problems += find_unpaid_purchases(entries, order_records(project))
        charges = count_recurring_charges(project)
        self._advance_by_a_day()
        state, moved = self._advance_to_end()
        trace = _trace_steps(self.run.steps)
        problems += [*self._early_review, *self._late_problems, *_find_review_problems(self, trace)]
        view = self._view or self.read_view()
        problems += _find_call_problems(project, self.run)
        problems += self._view_problems(view, state)
        known = {problem.kind for problem in problems}  # the books name the purchase
        problems += [each for each in _extra_moves(self, charges, moved) if each.kind not in known]
        return RunVerdict(
            _pick_one_per_kind(problems),
            trace,
            state,
            moved,
            view,
            self._view is not None,
            self.run.calls.most_calls,
            self.run.pace.busy,
            signs,
            charges,
        )

    def _view_problems(self, view: CustomerView, state: State) -> Iterator[BookProblem]:
        """Find problems in the pages and emails."""
        baseline, changes = self.baseline, self.changes
        if baseline is None:
            yield from find_view_problems(view, view, changes, is_same_money=True)
        else:
            is_same_money = state[1:] == baseline.state[1:]
            yield from find_view_problems(view, baseline.view, changes, is_same_money=is_same_money)

    def _read_entries(self) -> list[BookEntry]:
        entries, self._invariants = read_books(self.books)
        self._has_readable_books = self.books is not None and not self._invariants
        self._books_history.append(entries)
        return entries

    def _advance_by_a_day(self) -> None:
        """Advance the clock by a day, or until an authorization is about to expire, and end the steps."""
        now = self._project.now()
        self.advance(max(now, min([now + ONE_DAY, *self._moments_before_expiry()])))
        self.run.stop_recording()
        self._check_authorizations(self._read_entries())
        if self._reads_pages_early():
            self._early_review = _find_review_problems(self, _trace_steps(self.run.steps))
            self._view = self.read_view()

    def _moments_before_expiry(self) -> list[datetime]:
        """Return the last second of each open authorization."""
        return [
            attempt.authorization.expires_at - ONE_SECOND
            for order in self._project.epoch.store.orders_newest_first()
            for attempt in order.transactions
            if attempt.authorization is not None and not attempt.authorization.is_over
        ]

    def _check_authorizations(self, entries: list[BookEntry]) -> None:
        if self._has_readable_books and not self.run.has_shop_ended:
            self._late_problems += find_missed_authorizations(entries, order_records(self._project))

    def _reads_pages_early(self) -> bool:
        """Whether to read pages after a day, because the unchanged test has authorizations but no books."""
        baseline = self.baseline
        if baseline is not None:
            return baseline.reads_pages_early
        records = order_records(self._project).values()
        return self.books is None and any(record.reserved for record in records)

    def _advance_to_end(self) -> tuple[State, Moved]:
        """Advance the clock until no events are due; return the state, and the moved amounts."""
        project = self._project
        end = project.now() + JUDGING_PERIOD
        while moments := [each for each in self._moments_before_expiry() if project.now() < each < end]:
            self.advance(min(moments))
            self._check_authorizations(self._read_entries())
            if project.now() < min(moments):  # the time limit of the run has stopped the advance
                break
        self.advance(end)
        entries, invariants = read_books(self.books)
        self._late_problems += invariants
        if self.books is not None and not invariants:
            self._late_problems += compare_books(entries, order_records(project))
            self._late_problems += find_reversals([*self._books_history, entries], order_records(project))
        moved, baseline = sum_moved_amounts(project, entries), self.baseline
        if baseline is not None and moved.shipped < baseline.moved.shipped:
            self._late_problems += find_unshipped_captures(entries, project)
        if self.run.has_shop_ended:  # its books could not change after the test
            self._late_problems[:] = self._lasting_problems
        return _build_state(project, entries), moved


def _extra_moves(trial: Trial, charges: RecurringCharges, moved: Moved) -> Iterator[BookProblem]:
    """Find charges, refunds and shipments that the unchanged run lacks."""
    if trial.baseline is not None:
        yield from find_extra_money(moved, trial.baseline.moved, trial.changes)
        yield from find_extra_charges(charges, trial.baseline.charges, trial.changes)
        yield from find_extra_refunds(moved, trial.baseline.moved, trial.changes, trial.run.steps)
        if all(isinstance(each.change.effect, Repeat) for each in trial.changes):
            yield from find_repeated_moves(moved, trial.baseline.moved)


def rename_numbers(*parts: object) -> str:
    """Represent parts of a state; strings with numbers are renamed by their first appearance.

    A shop whose database counts across runs numbers the same purchase differently in each run.
    """
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        has_number = any(map(str.isdigit, match[0]))
        return names.setdefault(match[0], f"<{len(names)}>") if has_number else match[0]

    return _QUOTED_TEXT.sub(rename, "\n".join(map(repr, parts)))


def in_order(entries: Iterable[BookEntry], order_ids: Sequence[str]) -> list[BookEntry]:
    """Sort entries by their orders at the service, and convert their numbers to text."""
    places = {order_id: place for place, order_id in enumerate(order_ids)}
    named = [replace(each, purchase=str(each.purchase), orders=[*map(str, each.orders)]) for each in entries]
    return sorted(named, key=lambda each: [places.get(order_id, -1) for order_id in each.orders])


def judge_unfinished(run: RehearsedRun, reason: BookProblem) -> RunVerdict:
    """Judge a run only by its calls and responses, after an error in the books or a hanging call."""
    problems = [*_find_call_problems(run.project, run), reason]
    return RunVerdict(_pick_one_per_kind(problems), _trace_steps(run.steps), ())


def error_problem(error: BaseException) -> BookProblem:
    """Return the problem for a run that cannot be judged because of an error."""
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    return BookProblem("not-judged", f"the run could not be judged: {reason}")


def hang_problem(location: str) -> BookProblem:
    """Return the problem for a run that took too long."""
    return BookProblem("hangs", f"the run did not finish; it was stopped in {location}")


def _test_failures(failure: str | None, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Return the failure of a test as a problem, unless the changes may break its assertions."""
    if failure is None or any(Trait.AT_ONCE not in changed.change.traits for changed in changes):
        return []
    return [BookProblem("test", f"the test fails: {failure.splitlines()[0]}")]


def _trace_steps(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(f"{step.name} {label_without_job(step)}" for step in steps)


def _find_call_problems(project: Project, run: RehearsedRun) -> Iterator[BookProblem]:
    """Find problems in calls and responses, independently of the books."""
    for call in run.endless_waits:
        yield BookProblem("waits", f"the shop waits forever for {call}: the call has no timeout")
    if run.endless_poll:
        call = run.endless_poll
        yield BookProblem("endless", f"the shop polls endlessly: {call}, although nothing changes")
    deliveries = project.epoch.store.deliveries()
    answers = [attempt.reply.body for delivery in deliveries for attempt in delivery.attempts]
    if any(MASK in answer for answer in answers):  # secrets in responses are masked on arrival
        yield BookProblem("secret", "the shop's response to a webhook contains a key, a card number or a CVC")


def _find_early_expiries(project: Project, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Find authorizations that expired during the test, although only a few days passed.

    A test that itself advances the clock by days expects such an expiry.
    """
    if [changed.change.name for changed in changes] != [THREE_DAYS_VARIATION]:
        return []
    orders = {order.id: order for order in project.epoch.store.orders_newest_first()}
    expiries = project.epoch.journal.of(AgendaEvent)
    created_at = [order.created for order in lapsed_authorizations(expiries, orders)]
    if not created_at or project.now() - min(created_at) > EARLY_EXPIRY_MAX:
        return []
    return [
        BookProblem("lapsed", "the authorization expired before the shop shipped, so nothing can be captured")
    ]


def _has_more_creations(trace: Iterable[str], baseline: RunVerdict | None) -> bool:
    """Whether a run has more creations than the unchanged run, so that a creation was resent."""
    counts = [
        sum(step.startswith(CREATE) for step in each) for each in (trace, baseline.trace if baseline else ())
    ]
    return counts[0] > counts[1]


def _find_review_problems(trial: Trial, trace: Sequence[str]) -> list[BookProblem]:
    excused_rules = UNRELATED_RULES | _excused_rules(trial.changes)
    if trial.baseline is not None and not _has_more_creations(trace, trial.baseline):
        excused_rules |= DUPLICATE_ORDER_RULES  # two customers bought the same goods; no creation was resent
    excused = {
        UNREAD_RULE: _find_harmless_attempts(trial.run.project),
        UNANSWERED_RULE: _find_deferred_attempts(trial.run, trial.changes) | _find_late_attempts(trial),
        POLLING_RULE: trial.run.scheduled_calls,
    }
    return _find_mistakes(trial.run.project, lambda rule: rule not in excused_rules, excused)


def _excused_rules(changes: Sequence[ChangedStep]) -> Set[str]:
    """Return the rules that a correct shop may break after these changes.

    A handler must report a failed read, and a form is resent by the customer rather than by the shop.
    """
    is_pressed = any(step.startswith(PRESS) for step, _ in changes)
    return {
        *([UNANSWERED_RULE] if has_changed_calls(changes) else ()),
        *(DUPLICATE_ORDER_RULES if is_pressed else ()),
    }


def has_changed_calls(changes: Sequence[ChangedStep]) -> bool:
    """Whether a change makes a call by the shop fail, or changes its response; early webhooks do neither."""
    return any(step.startswith(CALLS) and change.effect != WEBHOOKS_FIRST for step, change in changes)


def find_unrelated_mistakes(project: Project) -> list[BookProblem]:
    """Return violations of the unrelated rules, which are reported only for the unchanged test."""
    return _find_mistakes(project, UNRELATED_RULES.__contains__)


def _find_harmless_attempts(project: Project) -> Set[str]:
    """Return the ids of webhook attempts for the end of an order that nobody has paid, such as its expiry."""
    records = order_records(project)
    return {
        attempt_id(delivery, attempt)
        for delivery in project.epoch.store.deliveries()
        if delivery.status in UNPAID_STATUSES
        and (record := records.get(delivery.order_id)) is not None
        and not (record.received or record.authorized)
        for attempt in delivery.delivery_attempts
    }


def _find_late_attempts(trial: Trial) -> Set[str]:
    """Return the ids of webhook attempts after a test that failed, or that ended the shop's server.

    Both may have closed what the shop needs for an answer, such as its database.
    """
    if trial.failure is None and not trial.run.has_shop_ended:
        return frozenset()
    return {
        attempt_id(delivery, attempt)
        for delivery in trial.run.project.epoch.store.deliveries()
        for attempt in delivery.delivery_attempts
        if trial.run.is_late(attempt)
    }


def _find_deferred_attempts(run: RehearsedRun, changes: Sequence[ChangedStep]) -> Set[str]:
    """Return the ids of webhook attempts that a busy shop deferred to a retry, and then accepted.

    A shop may serialize its work: it refuses a webhook while another handler runs, and does not answer an
    early webhook during its own call. The unchanged test must not rely on retries. If the shop's server has
    ended, nobody knows whether it would have accepted the retry.
    """
    if not changes:
        return frozenset()
    is_early = any(each.change.effect == WEBHOOKS_FIRST for each in changes)
    return {
        attempt_id(delivery, attempt)
        for delivery in run.project.epoch.store.deliveries()
        if run.has_shop_ended or _is_accepted(delivery)
        for attempt in delivery.delivery_attempts
        if _is_retry_requested(attempt, may_time_out=is_early)
    }


def _is_accepted(delivery: Delivery) -> bool:
    """Whether an attempt succeeded, or the webhook is pending because the time limit has ended the run."""
    return delivery.state is DeliveryState.PENDING or any(
        each.reply.status in ACCEPTED_STATUSES and not each.is_withheld for each in delivery.delivery_attempts
    )


def _is_retry_requested(attempt: WebhookAttempt, *, may_time_out: bool) -> bool:
    """Whether the shop was busy, or its SQLite database, which a test uses instead of a server."""
    return (
        attempt.reply.status in BUSY_STATUSES
        or _SQLITE_LOCKED.search(attempt.reply.traceback or "") is not None
        or (may_time_out and NO_ANSWER in (attempt.reply.error or ""))
    )


def _find_mistakes(
    project: Project, is_selected: Callable[[str], bool], excused: Mapping[str, Set[str]] = NOTHING_EXCUSED
) -> list[BookProblem]:
    """Return the violations of the selected rules in the review, except by ``excused`` calls and webhooks."""
    return [
        BookProblem(f"{REVIEW_PREFIX}{finding.rule}", finding.problem)
        for finding in review(project.epoch)
        if finding.kind != HINT
        and is_selected(finding.rule)
        and not (finding.rule in excused and _is_excused(finding, excused[finding.rule]))
    ]


def _is_excused(finding: Finding, excused: Set[str]) -> bool:
    """Whether only excused calls and webhooks show a finding; handlers may read an order before its job."""
    others = {*finding.shown_by} - excused
    return len(others) <= (len(finding.shown_by) // 2 if finding.rule == POLLING_RULE else 0)


def _pick_one_per_kind(problems: Iterable[BookProblem]) -> list[BookProblem]:
    """Return one problem of each kind, preferably with money or goods, to show the cost."""
    by_kind = {problem.kind: problem for problem in problems}.values()
    return sorted(by_kind, key=lambda problem: problem.kind.startswith(LESS_SPECIFIC_KINDS))


def _build_state(project: Project, entries: Iterable[BookEntry]) -> State:
    records = order_records(project)
    return rename_numbers(in_order(entries, [*records])), tuple(record[1:] for record in records.values())
