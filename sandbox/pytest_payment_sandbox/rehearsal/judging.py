"""Judges one run of a test once all is idle: after the retries, the jobs and all due events."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.operations.review import HINT, review
from payment_sandbox.operations.review.payments import lapsed_authorizations
from payment_sandbox.operations.review.webhooks import TOO_LATE, attempt_id
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.webhooks import Delivery, DeliveryState, WebhookAttempt
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import CALLS, CREATE, PRESS, Repeat, Step, Trait
from payment_sandbox.scenarios.variations import WEBHOOKS_FIRST
from payment_sandbox.testing.books import BookEntry
from pytest_payment_sandbox.rehearsal.books import (
    BookProblem,
    Books,
    compare,
    missed,
    truths_of,
    unpaid,
    went_back,
)
from pytest_payment_sandbox.rehearsal.causes import Glimpse, Signs, signs_of
from pytest_payment_sandbox.rehearsal.changes import ChangedStep, label_without_job
from pytest_payment_sandbox.rehearsal.pacing import BusyTimes
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import NOTHING_SHOWN, Showing, shown_wrong

SOON: Final = timedelta(days=1)
HORIZON: Final = timedelta(days=40)
MOMENT: Final = timedelta(seconds=1)
KINDS_MOVED: Final = ("charged-again", "refunded-again", "shipped-again")
WHAT_MOVED: Final = ("were charged", "were refunded", "worth of goods were shipped")
A_FEW_DAYS: Final = "three-days"
A_FEW_DAYS_LONG: Final = timedelta(days=4)  # including the time that passes in the test itself
UNANSWERED: Final = "HOOK-09"
BUSY: Final = frozenset({409, 423, 425, 429, 503})  # statuses with which a shop asks for the next attempt
TAKEN: Final = range(200, 300)
OF_REVIEW: Final = "review "
"""The prefix of the kinds of problems from the review."""
LESS_TELLING: Final = ("invariant", "review", "shown", "mailed", "test")
CREATED_TWICE: Final = frozenset({"ORD-07", "CTL-23"})
UNRELATED: Final = frozenset(
    {"CAP-03", "CAP-04", "SET-31", "SET-12", "SET-47", "HOOK-03", "HOOK-13", "SCN-02"}
)
"""Rules of the review that are independent of the variation, or that a shop cannot check: the service does
not report how much a customer has transferred."""

Advance = Callable[[datetime], Any]
"""Advances the project's clock to a time, webhooks and jobs included."""


State = tuple[Any, ...]
"""The shop's books and the service's records, to compare runs."""


class Judged(NamedTuple):
    """The result of a run; ``moved`` has the total received, refunded and shipped amounts, in cents."""

    problems: list[BookProblem]
    trace: tuple[str, ...]
    state: State
    moved: tuple[int, int, int] = (0, 0, 0)
    at_rest: tuple[BookProblem, ...] = ()  # the problems that appeared only after the test
    is_alike: bool = False  # the run stopped early: an earlier one was in the same state
    showing: Showing = NOTHING_SHOWN
    is_shown_soon: bool = False  # pages are read a day after the test, while authorizations are valid
    most_calls: int = 0  # the maximum with one method and path at one time
    busy: BusyTimes = MappingProxyType({})  # of the shop's jobs
    signs: Signs = frozenset()  # of the shop's behaviour


Ends = dict[str, Judged]
"""The results of the runs of a test, by their state at its end."""


class Trial(NamedTuple):
    """A run to be judged.

    ``failure`` is the failure of the test, ``baseline`` the unchanged test, ``believed`` has the
    shop's books during the test, ``ends`` the results so far, ``look`` reads the shop's pages and mails,
    ``glimpses`` has the shop's books at each webhook.
    """

    run: RehearsedRun
    changes: Sequence[ChangedStep]
    failure: str | None
    baseline: Judged | None
    believed: Sequence[list[BookEntry]]
    ends: Ends
    look: Callable[[], Showing]
    glimpses: Sequence[Glimpse] = ()

    @property
    def project(self) -> Project:
        """The project of the run."""
        return self.run.project


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
        return [], [BookProblem("invariant", str(wrong).partition("\n")[0] or "an invariant does not hold")]


def judge(trial: Trial, advance: Advance, books: Books | None) -> Judged:
    """Judge a run at the end of its test, and again when everything due has happened.

    A run stops early if an earlier one was in the same state at the end of its test, or a day later.
    """
    return _Judging(trial, advance, books).judged()


class _Judging:
    """Judges one run."""

    def __init__(self, trial: Trial, advance: Advance, books: Books | None) -> None:
        self._trial = trial
        self._project = trial.run.project
        self._advance = advance
        self._books = books
        self._believed = [*trial.believed]
        self._moments: list[str] = []
        self._showing: Showing | None = None
        self._reviewed_soon: list[BookProblem] = []  # before looking at the pages, which may inform the shop
        self._tells = False  # the last read of the books succeeded
        self._at_rest: list[BookProblem] = []

    def judged(self) -> Judged:
        """Judge the run, and remember its state for later runs."""
        trial, project = self._trial, self._project
        trial.run.rest()
        problems = _failed("test", trial.failure, trial.changes) + _lapsed_early(project, trial.changes)
        entries = self._read()
        signs = signs_of([*trial.glimpses, Glimpse(entries, dict(trial.run.statuses))], project)
        problems += unpaid(entries, truths_of(project))
        twin = self._twin(entries) or self._soon_alike()
        state, moved = (twin.state, twin.moved) if twin is not None else self._end()
        showing = twin.showing if twin is not None else self._showing or trial.look()
        trace = _trace(trial.run.steps)
        problems += [
            *self._reviewed_soon,
            *self._at_rest,
            *_reviewed(trial, trace),
            *_seen(project, trial.run),
        ]
        problems += self._shown(showing, state)
        if trial.baseline is not None and all(
            isinstance(each.change.effect, Repeat) for each in trial.changes
        ):
            problems += _moved_more(moved, trial.baseline.moved)
        is_alike, at_rest = twin is not None, tuple(self._at_rest)
        most, busy = trial.run.calls.most, trial.run.pace.busy
        judged = Judged(
            _each_once(problems),
            trace,
            state,
            moved,
            at_rest,
            is_alike,
            showing,
            self._showing is not None,
            most,
            busy,
            signs,
        )
        trial.ends.update({moment: judged for moment in self._moments})
        return judged

    def _shown(self, showing: Showing, state: State) -> Iterator[BookProblem]:
        """Find problems in the pages and mails."""
        baseline, changes = self._trial.baseline, self._trial.changes
        if baseline is None:
            yield from shown_wrong(showing, showing, changes, is_same_money=True)
        else:
            is_same_money = state[1:] == baseline.state[1:]
            yield from shown_wrong(showing, baseline.showing, changes, is_same_money=is_same_money)

    def _read(self) -> list[BookEntry]:
        entries, invariants = read_books(self._books)
        self._tells = self._books is not None and not invariants
        self._believed.append(entries)
        return entries

    def _twin(self, entries: list[BookEntry]) -> Judged | None:
        """Return an earlier run with the same result, if any, and end this one."""
        known = entries if self._books is not None else None
        moment = f"{len(self._moments)} {_moment(self._trial.run, known)}"
        twin = self._trial.ends.get(moment)
        if twin is None:
            self._moments.append(moment)
            return None
        self._trial.run.end()
        self._at_rest += [*twin.at_rest, *went_back(self._believed, truths_of(self._project))]
        return twin

    def _soon_alike(self) -> Judged | None:
        """Advance the clock by a day; return an earlier run with the same result, if any."""
        project = self._project
        ends = [
            attempt.authorization.expires_at - MOMENT
            for order in project.epoch.store.orders_newest_first()
            for attempt in order.transactions
            if attempt.authorization is not None and not attempt.authorization.is_over
        ]
        now = project.now()
        self._advance(max(now, min([now + SOON, *ends])))
        self._trial.run.end()
        entries = self._read()
        if self._tells:
            self._at_rest += missed(entries, truths_of(project))
        if self._is_shown_soon():
            self._reviewed_soon = _reviewed(self._trial, _trace(self._trial.run.steps))
            self._showing = self._trial.look()
        return self._twin(entries)

    def _is_shown_soon(self) -> bool:
        """Whether the unchanged test has authorizations, which expire, and no books."""
        baseline = self._trial.baseline
        if baseline is not None:
            return baseline.is_shown_soon
        return self._books is None and any(truth.capturable for truth in truths_of(self._project).values())

    def _end(self) -> tuple[State, tuple[int, int, int]]:
        """Advance the clock until nothing is due; return the state, and the amounts moved."""
        project = self._project
        self._advance(project.now() + HORIZON)
        entries, invariants = read_books(self._books)
        self._at_rest += invariants
        if self._books is not None and not invariants:
            self._at_rest += compare(entries, truths_of(project))
            self._at_rest += went_back([*self._believed, entries], truths_of(project))
        return _state(project, entries), _moved(project, entries)


def _moment(run: RehearsedRun, entries: list[BookEntry] | None) -> str:
    """Return what decides the rest of a run: the visible state, and the changes that can still happen.

    Without books, the webhook attempts count.
    """
    epoch = run.project.epoch
    deliveries = epoch.store.deliveries()
    arrived = [(attempt.number, attempt.reply.status) for each in deliveries for attempt in each.attempts]
    return repr(
        (
            epoch.now(),
            run.pending,
            sorted(map(label_without_job, run.steps)),
            list(epoch.store.orders_newest_first()),
            [(due.at, due.item.label) for due in epoch.timeline],
            [(each.order_id, each.status, each.state, _next_number(each)) for each in deliveries],
            arrived if entries is None else entries,
        )
    )


def _next_number(delivery: Delivery) -> int | None:
    return delivery.next_number if delivery.state is DeliveryState.PENDING else None


def not_judged(run: RehearsedRun, error: BaseException) -> Judged:
    """Judge a run by its calls and answers only, such as after an error in the books."""
    why = f"{type(error).__name__}: {error}".partition("\n")[0]
    problems = [*_seen(run.project, run), BookProblem("not-judged", f"the run cannot be judged: {why}")]
    return Judged(_each_once(problems), _trace(run.steps), ())


def given_up(run: RehearsedRun, place: str) -> Judged:
    """Judge a run that was given up because it took too long."""
    return Judged(_each_once([*_seen(run.project, run), hangs(place)]), _trace(run.steps), ())


def hangs(place: str) -> BookProblem:
    """Return the problem of a run that takes too long."""
    return BookProblem("hangs", f"the run does not end; it was stopped in {place}")


def judged_without_books(
    runs: Sequence[RehearsedRun], steps: Sequence[Step], changes: Sequence[ChangedStep], failure: str | None
) -> Judged:
    """Judge a run of a suite by its calls and failure only; ``steps`` are those of all runs."""
    problems = _failed("suite", failure, changes)
    excused = UNRELATED | _excused(changes)
    for run in runs:
        run.end()
        problems += _mistakes(run.project, lambda rule: rule not in excused)
        problems += _seen(run.project, run)
    state = tuple(_state(run.project, ()) for run in runs)
    return Judged(_each_once(problems), _trace(steps), state)


def _failed(what: str, failure: str | None, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Return the failure of a test or suite as a problem, if the changes must not affect its assertions."""
    if failure is None or any(Trait.AT_ONCE not in changed.change.traits for changed in changes):
        return []
    return [BookProblem("test", f"the {what} fails: {failure.splitlines()[0]}")]


def _trace(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(f"{step.name} {label_without_job(step)}" for step in steps)


def _moved(project: Project, entries: Iterable[BookEntry]) -> tuple[int, int, int]:
    truths = truths_of(project).values()
    return (
        sum(truth.received for truth in truths),
        sum(truth.refunded for truth in truths),
        sum(entry.shipped for entry in entries),
    )


def _moved_more(moved: tuple[int, int, int], before: tuple[int, int, int]) -> Iterator[BookProblem]:
    """Find money or goods that moved twice because a form was submitted, or a job was run, twice."""
    for kind, what, now, once in zip(KINDS_MOVED, WHAT_MOVED, moved, before, strict=True):
        if now > once:
            yield BookProblem(kind, f"{euros(now)} {what} instead of {euros(once)}")


def _seen(project: Project, run: RehearsedRun) -> Iterator[BookProblem]:
    """Find problems in calls and answers, independently of the books."""
    for call in run.waited_forever:
        yield BookProblem("waits", f"the shop waits for ever for {call}: the call has no time limit")
    if run.asked_without_end:
        call = run.asked_without_end
        yield BookProblem("endless", f"the shop asks without end: {call}, while nothing changes")
    deliveries = project.epoch.store.deliveries()
    answers = [attempt.reply.body for delivery in deliveries for attempt in delivery.attempts]
    if any(MASK in answer for answer in answers):  # secrets in answers are masked on arrival
        yield BookProblem("secret", "the shop's answer to a webhook contains a key, a card number or a CVC")


def _lapsed_early(project: Project, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Find authorizations that expired during the test, although only a few days passed.

    A test that advances the clock by days itself expects that.
    """
    if [changed.change.name for changed in changes] != [A_FEW_DAYS]:
        return []
    orders = {order.id: order for order in project.epoch.store.orders_newest_first()}
    begun = [orders[order_id].created for order_id in lapsed_authorizations(project.epoch, orders)]
    if not begun or project.now() - min(begun) > A_FEW_DAYS_LONG:
        return []
    return [
        BookProblem("lapsed", "the authorization ran out before the shop shipped, so nothing can be captured")
    ]


def _creations(trace: Iterable[str]) -> int:
    return sum(step.startswith(CREATE) for step in trace)


def _reviewed(trial: Trial, trace: Sequence[str]) -> list[BookProblem]:
    excused = _excused(trial.changes)
    if trial.baseline is not None and _creations(trace) <= _creations(trial.baseline.trace):
        excused |= CREATED_TWICE  # two customers bought the same; no creation was resent
    busy = _busy(trial.project, trial.changes)
    return _mistakes(trial.project, lambda rule: rule not in UNRELATED | excused, busy)


def _excused(changes: Sequence[ChangedStep]) -> set[str]:
    excused = {UNANSWERED} if changes_calls(changes) else set()  # a handler that cannot read must say so
    is_pressed = any(step.startswith(PRESS) for step, _ in changes)
    return excused | (CREATED_TWICE if is_pressed else set())  # by the customer, not by the shop


def changes_calls(changes: Sequence[ChangedStep]) -> bool:
    """Whether a call of the shop fails or has another response; an early webhook leaves it unchanged."""
    return any(step.startswith(CALLS) and change.effect != WEBHOOKS_FIRST for step, change in changes)


def unrelated(project: Project) -> list[BookProblem]:
    """Return mistakes against the unrelated rules, which only the run of the unchanged test reports."""
    return _mistakes(project, UNRELATED.__contains__)


def _busy(project: Project, changes: Sequence[ChangedStep]) -> Set[str]:
    """Return the ids of attempts with which a busy shop asked for the next attempt, which it then took.

    A shop may serialize its work: it refuses a webhook while another handler works, and does not answer an
    early webhook while its own call waits. The unchanged test must not need this.
    """
    if not changes:
        return frozenset()
    is_early = any(each.change.effect == WEBHOOKS_FIRST for each in changes)
    return {
        attempt_id(delivery, attempt)
        for delivery in filter(_is_taken, project.epoch.store.deliveries())
        for attempt in delivery.tries
        if _asks_again(attempt, may_wait=is_early)
    }


def _is_taken(delivery: Delivery) -> bool:
    """Whether an attempt succeeded; of a run that stops early, an equal one has made the next attempt."""
    return delivery.state is DeliveryState.PENDING or any(
        each.reply.status in TAKEN and not each.is_withheld for each in delivery.tries
    )


def _asks_again(attempt: WebhookAttempt, *, may_wait: bool) -> bool:
    return attempt.reply.status in BUSY or (may_wait and TOO_LATE in (attempt.reply.error or ""))


def _mistakes(
    project: Project, is_wanted: Callable[[str], bool], busy: Set[str] = frozenset()
) -> list[BookProblem]:
    """Return the mistakes that the review finds against the selected rules, except for ``busy`` attempts."""
    return [
        BookProblem(f"{OF_REVIEW}{finding.rule}", finding.problem)
        for finding in review(project.epoch)
        if finding.kind != HINT
        and is_wanted(finding.rule)
        and not (finding.rule == UNANSWERED and busy >= {*finding.shown_by})
    ]


def _each_once(problems: Iterable[BookProblem]) -> list[BookProblem]:
    """Return one problem of each kind; those with money and goods, the cost of a mistake, come first."""
    by_kind = {problem.kind: problem for problem in problems}.values()
    return sorted(by_kind, key=lambda problem: problem.kind.startswith(LESS_TELLING))


def _state(project: Project, entries: Iterable[BookEntry]) -> State:
    truths = truths_of(project).values()
    return (tuple(sorted(map(repr, entries))), tuple(truth[1:] for truth in truths))
