"""Judges one run of a test once the project is idle: after all retries, jobs and due events."""

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
WHAT_MOVED: Final = ("was charged", "was refunded", "worth of goods was shipped")
A_FEW_DAYS: Final = "three-days"
A_FEW_DAYS_LONG: Final = timedelta(days=4)  # including the duration of the test itself
UNANSWERED: Final = "HOOK-09"
BUSY: Final = frozenset({409, 423, 425, 429, 503})  # statuses that request a retry
TAKEN: Final = range(200, 300)
OF_REVIEW: Final = "review "
"""The prefix of a problem's kind if the problem comes from the review."""
LESS_TELLING: Final = ("invariant", "review", "shown", "mailed", "test")
CREATED_TWICE: Final = frozenset({"ORD-07", "CTL-23"})
UNRELATED: Final = frozenset(
    {"CAP-03", "CAP-04", "SET-31", "SET-12", "SET-47", "HOOK-03", "HOOK-13", "SCN-02"}
)
"""Rules of the review that do not depend on the variation, or that no shop can follow: the service does not
report how much a customer has transferred."""

Advance = Callable[[datetime], Any]
"""Advances the project's clock to a time, including webhooks and jobs."""


State = tuple[Any, ...]
"""The shop's books and the service's records, for comparison with other runs."""


class Judged(NamedTuple):
    """The verdict on a run; ``moved`` has the total received, refunded and shipped amounts, in cents."""

    problems: list[BookProblem]
    trace: tuple[str, ...]
    state: State
    moved: tuple[int, int, int] = (0, 0, 0)
    at_rest: tuple[BookProblem, ...] = ()  # problems that appeared only after the test
    is_alike: bool = False  # the run stopped early, because an earlier run had been in the same state
    showing: Showing = NOTHING_SHOWN
    is_shown_soon: bool = False  # pages are read a day after the test, while authorizations are valid
    most_calls: int = 0  # maximum per method and path at one point in sandbox time
    busy: BusyTimes = MappingProxyType({})  # per job of the shop
    signs: Signs = frozenset()  # of the shop's behaviour


Ends = dict[str, Judged]
"""The verdicts on the runs of a test, by their state at the end of the test."""


class Trial(NamedTuple):
    """A run to be judged.

    ``failure`` is the failure of the test, ``baseline`` the verdict on the unchanged test, ``believed`` has
    the shop's books during the test, and ``ends`` the verdicts so far. ``look`` reads the shop's pages and
    emails; ``glimpses`` has the shop's books before each webhook.
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
        return [], [BookProblem("invariant", str(wrong).partition("\n")[0] or "an invariant is violated")]


def judge(trial: Trial, advance: Advance, books: Books | None) -> Judged:
    """Judge a run at the end of its test, and once more when no events are due.

    A run stops early if an earlier run was in the same state at the end of the test, or a day later.
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
        self._reviewed_soon: list[BookProblem] = []  # before the page requests, which may update the shop
        self._tells = False  # the books were readable at the last attempt
        self._at_rest: list[BookProblem] = []

    def judged(self) -> Judged:
        """Judge the run, and store its states for later runs."""
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
        """Find problems in the pages and emails."""
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
        """Return the verdict on an earlier run in the same state, if any, and end this run."""
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
        """Advance the clock by a day; return the verdict on an earlier run in the same state, if any."""
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
        """Whether to read pages after a day: the unchanged test has authorizations, but no books."""
        baseline = self._trial.baseline
        if baseline is not None:
            return baseline.is_shown_soon
        return self._books is None and any(truth.capturable for truth in truths_of(self._project).values())

    def _end(self) -> tuple[State, tuple[int, int, int]]:
        """Advance the clock until no events are due; return the state, and the moved amounts."""
        project = self._project
        self._advance(project.now() + HORIZON)
        entries, invariants = read_books(self._books)
        self._at_rest += invariants
        if self._books is not None and not invariants:
            self._at_rest += compare(entries, truths_of(project))
            self._at_rest += went_back([*self._believed, entries], truths_of(project))
        return _state(project, entries), _moved(project, entries)


def _moment(run: RehearsedRun, entries: list[BookEntry] | None) -> str:
    """Return the state that determines the rest of a run, including the changes that can still take effect.

    Without books, the state includes the webhook attempts.
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
    """Judge a run by its calls and responses only, such as after an error in the books."""
    why = f"{type(error).__name__}: {error}".partition("\n")[0]
    problems = [*_seen(run.project, run), BookProblem("not-judged", f"the run could not be judged: {why}")]
    return Judged(_each_once(problems), _trace(run.steps), ())


def given_up(run: RehearsedRun, place: str) -> Judged:
    """Judge a run that was abandoned because it took too long."""
    return Judged(_each_once([*_seen(run.project, run), hangs(place)]), _trace(run.steps), ())


def hangs(place: str) -> BookProblem:
    """Return the problem of a run that took too long."""
    return BookProblem("hangs", f"the run did not finish; it was stopped in {place}")


def judged_without_books(
    runs: Sequence[RehearsedRun], steps: Sequence[Step], changes: Sequence[ChangedStep], failure: str | None
) -> Judged:
    """Judge a run of a suite by its calls and its failure only; ``steps`` has the steps of all projects."""
    problems = _failed("suite", failure, changes)
    excused = UNRELATED | _excused(changes)
    for run in runs:
        run.end()
        problems += _mistakes(run.project, lambda rule: rule not in excused)
        problems += _seen(run.project, run)
    state = tuple(_state(run.project, ()) for run in runs)
    return Judged(_each_once(problems), _trace(steps), state)


def _failed(what: str, failure: str | None, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Return the failure of a test or suite as a problem, unless the changes may break its assertions."""
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
    """Find money or goods that moved twice because a form or a job was repeated."""
    for kind, what, now, once in zip(KINDS_MOVED, WHAT_MOVED, moved, before, strict=True):
        if now > once:
            yield BookProblem(kind, f"{euros(now)} {what} instead of {euros(once)}")


def _seen(project: Project, run: RehearsedRun) -> Iterator[BookProblem]:
    """Find problems in calls and responses, independently of the books."""
    for call in run.waited_forever:
        yield BookProblem("waits", f"the shop waits forever for {call}: the call has no timeout")
    if run.asked_without_end:
        call = run.asked_without_end
        yield BookProblem("endless", f"the shop polls endlessly: {call}, although nothing changes")
    deliveries = project.epoch.store.deliveries()
    answers = [attempt.reply.body for delivery in deliveries for attempt in delivery.attempts]
    if any(MASK in answer for answer in answers):  # secrets in responses are masked on arrival
        yield BookProblem("secret", "the shop's response to a webhook contains a key, a card number or a CVC")


def _lapsed_early(project: Project, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """Find authorizations that expired during the test, although only a few days passed.

    A test that itself advances the clock by days expects such an expiry.
    """
    if [changed.change.name for changed in changes] != [A_FEW_DAYS]:
        return []
    orders = {order.id: order for order in project.epoch.store.orders_newest_first()}
    begun = [orders[order_id].created for order_id in lapsed_authorizations(project.epoch, orders)]
    if not begun or project.now() - min(begun) > A_FEW_DAYS_LONG:
        return []
    return [
        BookProblem("lapsed", "the authorization expired before the shop shipped, so nothing can be captured")
    ]


def _creations(trace: Iterable[str]) -> int:
    return sum(step.startswith(CREATE) for step in trace)


def _reviewed(trial: Trial, trace: Sequence[str]) -> list[BookProblem]:
    excused = _excused(trial.changes)
    if trial.baseline is not None and _creations(trace) <= _creations(trial.baseline.trace):
        excused |= CREATED_TWICE  # two customers bought the same goods; no creation was resent
    busy = _busy(trial.project, trial.changes)
    return _mistakes(trial.project, lambda rule: rule not in UNRELATED | excused, busy)


def _excused(changes: Sequence[ChangedStep]) -> set[str]:
    # an early webhook leaves the call itself unchanged
    kinds = {step.partition(":")[0] for step, change in changes if change.effect != WEBHOOKS_FIRST}
    excused = {UNANSWERED} if kinds & set(CALLS) else set()  # a handler whose read fails must return an error
    return excused | (CREATED_TWICE if PRESS in kinds else set())  # resent by the customer, not by the shop


def unrelated(project: Project) -> list[BookProblem]:
    """Return violations of the unrelated rules, which are reported only for the unchanged test."""
    return _mistakes(project, UNRELATED.__contains__)


def _busy(project: Project, changes: Sequence[ChangedStep]) -> Set[str]:
    """Return the ids of webhook attempts that a busy shop deferred to a retry, and then accepted.

    A shop may serialize its work: it refuses a webhook while another handler runs, and does not answer an
    early webhook during its own call. The unchanged test must not need retries.
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
    return any(each.reply.status in TAKEN and not each.is_withheld for each in delivery.tries)


def _asks_again(attempt: WebhookAttempt, *, may_wait: bool) -> bool:
    return attempt.reply.status in BUSY or (may_wait and TOO_LATE in (attempt.reply.error or ""))


def _mistakes(
    project: Project, is_wanted: Callable[[str], bool], busy: Set[str] = frozenset()
) -> list[BookProblem]:
    """Return the violations of the selected rules in the review, except for ``busy`` attempts."""
    return [
        BookProblem(f"{OF_REVIEW}{finding.rule}", finding.problem)
        for finding in review(project.epoch)
        if finding.kind != HINT
        and is_wanted(finding.rule)
        and not (finding.rule == UNANSWERED and busy >= {*finding.shown_by})
    ]


def _each_once(problems: Iterable[BookProblem]) -> list[BookProblem]:
    """Return one problem of each kind, first the problems with money or goods, which show the cost."""
    by_kind = {problem.kind: problem for problem in problems}.values()
    return sorted(by_kind, key=lambda problem: problem.kind.startswith(LESS_TELLING))


def _state(project: Project, entries: Iterable[BookEntry]) -> State:
    truths = truths_of(project).values()
    return (tuple(sorted(map(repr, entries))), tuple(truth[1:] for truth in truths))
