"""Judges one run of a test at rest: retries made, jobs run, and all that was due has happened."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.operations.review import HINT, review
from payment_sandbox.operations.review.payments import lapsed_authorizations
from payment_sandbox.orders.amounts import euros
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.effects import Fault, WebhooksFirst
from payment_sandbox.scenarios.variation import CALLS, CREATE, PRESS, Step, Trait
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
from pytest_payment_sandbox.rehearsal.changes import ChangedStep
from pytest_payment_sandbox.rehearsal.run import RehearsedRun

SOON: Final = timedelta(days=1)
HORIZON: Final = timedelta(days=40)
MOMENT: Final = timedelta(seconds=1)
KINDS_MOVED: Final = ("charged-again", "refunded-again", "shipped-again")
WHAT_MOVED: Final = ("were charged", "were refunded", "worth of goods were shipped")
A_FEW_DAYS: Final = "three-days"
A_FEW_DAYS_LONG: Final = timedelta(days=4)  # with what the test itself lets pass
UNANSWERED: Final = "HOOK-09"
OF_REVIEW: Final = "review "
"""How the kind of a problem begins that the review has found."""
LESS_TELLING: Final = ("invariant", "review", "test")
CREATED_TWICE: Final = frozenset({"ORD-07", "CTL-23"})
UNRELATED: Final = frozenset({"CAP-03", "CAP-04", "SET-31", "SET-12", "SET-47", "HOOK-03", "SCN-02"})
"""Findings of the review that say nothing about the variation."""

Traces = Callable[[], Iterable[Any]]
"""The fixture ``payment_traces``: tells where the shop stores what it knows."""

Advance = Callable[[datetime], Any]
"""Advances the project's clock to a time, webhooks and jobs included."""


class Judged(NamedTuple):
    """What a run showed; ``moved`` is what was received, refunded and shipped in all, in cents."""

    problems: list[BookProblem]
    trace: tuple[str, ...]
    state: tuple[Any, ...]
    moved: tuple[int, int, int] = (0, 0, 0)


def rest(
    project: Project, run: RehearsedRun, advance: Advance, tell: Callable[[], list[BookEntry]]
) -> tuple[list[BookProblem], list[BookEntry]]:
    """Let everything happen that is still due; return the payments that the shop missed on the way.

    Also returns what the shop believed in between.
    """
    epoch = project.epoch
    epoch.jobs.skips_quiet_times = True
    ends = [
        attempt.authorization.expires_at - MOMENT
        for order in epoch.store.orders_newest_first()
        for attempt in order.transactions
        if attempt.authorization is not None and not attempt.authorization.is_over
    ]
    now = project.now()
    advance(max(now, min([now + SOON, *ends])))
    run.end()
    believed = tell()
    problems = missed(believed, truths_of(project))
    advance(project.now() + HORIZON)
    return problems, believed


def read_books(books: Books | None) -> tuple[list[BookEntry], list[BookProblem]]:
    """What the shop believes; an assertion that fails while it tells is a problem.

    Raises:
        TypeError: the fixture tells something else than entries.
        ValueError: one of the entries is none.
    """
    if books is None:
        return [], []
    try:
        entries = books()
        if not isinstance(entries, Iterable):
            raise TypeError(f"payment_books tells a list of entries, not {entries!r}")
        return [BookEntry.read(entry) for entry in entries], []
    except AssertionError as wrong:
        return [], [BookProblem("invariant", str(wrong).partition("\n")[0] or "an invariant does not hold")]


def judge(
    project: Project,
    run: RehearsedRun,
    advance: Advance,
    books: Books | None,
    *,
    changes: Sequence[ChangedStep] = (),
    failure: str | None = None,
    baseline: Judged | None = None,
    believed: Sequence[list[BookEntry]] = (),
) -> Judged:
    """Judge a run.

    ``failure`` is that of the test, ``baseline`` is the run of the test as it is, ``believed`` is what the
    shop told while the test ran.
    """
    problems = _failed("test", failure, changes)
    run.rest()
    problems += _reviewed(run, changes, baseline)  # of two orders, one may have expired later
    problems += _lapsed_early(project, changes)
    at_end = read_books(books)[0]
    problems += unpaid(at_end, truths_of(project))
    missing, in_between = rest(project, run, advance, lambda: read_books(books)[0])
    problems += missing
    entries, invariants = read_books(books)
    problems += invariants
    if books is not None and not invariants:
        problems += compare(entries, truths_of(project))
        problems += went_back([*believed, at_end, in_between, entries], truths_of(project))
    problems += _reviewed(run, changes, baseline)
    problems += _seen(project, run)
    moved = _moved(project, entries)
    if baseline is not None and all(change.step.startswith(PRESS) for change in changes):
        problems += _moved_more(moved, baseline.moved)
    return Judged(_each_once(problems), _trace(run.steps), _state(project, entries), moved)


def not_judged(run: RehearsedRun, error: Exception) -> Judged:
    """Judge by what shows anyway: the books have raised an error, say."""
    why = f"{type(error).__name__}: {error}".partition("\n")[0]
    problems = [*_seen(run.project, run), BookProblem("not-judged", f"the run cannot be judged: {why}")]
    return Judged(_each_once(problems), _trace(run.steps), ())


def judged_without_books(
    runs: Sequence[RehearsedRun], steps: Sequence[Step], changes: Sequence[ChangedStep], failure: str | None
) -> Judged:
    """Judge a run of a suite, of which only calls and failure are seen; ``steps`` are those of all runs."""
    problems = _failed("suite", failure, changes)
    for run in runs:
        run.end()
        problems += [*_reviewed(run, changes), *_seen(run.project, run)]
    state = tuple(_state(run.project, ()) for run in runs)
    return Judged(_each_once(problems), _trace(steps), state)


def _failed(what: str, failure: str | None, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """The failure of a test or a suite, where its assertions must still hold."""
    if failure is None or any(Trait.AT_ONCE not in changed.change.traits for changed in changes):
        return []
    return [BookProblem("test", f"the {what} fails: {failure.splitlines()[0]}")]


def _trace(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(f"{step.name} {step.label}" for step in steps)


def _moved(project: Project, entries: Iterable[BookEntry]) -> tuple[int, int, int]:
    truths = truths_of(project).values()
    return (
        sum(truth.received for truth in truths),
        sum(truth.refunded for truth in truths),
        sum(entry.shipped for entry in entries),
    )


def _moved_more(moved: tuple[int, int, int], before: tuple[int, int, int]) -> Iterator[BookProblem]:
    """Submitting a form twice must not move more money or goods than submitting it once."""
    for kind, what, now, once in zip(KINDS_MOVED, WHAT_MOVED, moved, before, strict=True):
        if now > once:
            yield BookProblem(kind, f"{euros(now)} {what} instead of {euros(once)}")


def _seen(project: Project, run: RehearsedRun) -> Iterator[BookProblem]:
    """What shows in calls and answers, whatever the books say."""
    for call in run.waited_forever:
        yield BookProblem("waits", f"the shop waits for ever for {call}: the call has no time limit")
    if run.asked_without_end:
        call = run.asked_without_end
        yield BookProblem("endless", f"the shop asks without end: {call}, while nothing changes")
    deliveries = project.epoch.store.deliveries()
    answers = [attempt.reply.body for delivery in deliveries for attempt in delivery.attempts]
    if any(MASK in answer for answer in answers):  # they were masked when they came
        yield BookProblem("secret", "the shop's answer to a webhook contains a key, a card number or a CVC")


def told_secrets(project: Project, texts: Iterable[str]) -> list[BookProblem]:
    """Secrets in what the shop logs or prints."""
    if all(project.masking.text(text) == text for text in texts):
        return []
    return [BookProblem("secret", "the shop's log or output contains a key, a card number or a CVC")]


def stored_secrets(project: Project, traces: Traces | None) -> list[BookProblem]:
    """Secrets in what the shop has stored: the texts and files that it names."""
    if traces is None:
        return []
    texts = (_text_of(trace) for trace in traces())
    if all(project.masking.text(text) == text for text in texts):
        return []
    return [BookProblem("secret", "what the shop has stored contains a key, a card number or a CVC")]


def _text_of(trace: Any) -> str:
    """A text, or the printable parts of a file, such as a database.

    Raises:
        TypeError: it is neither.
        OSError: the file cannot be read.
    """
    if isinstance(trace, str):
        return trace
    if not isinstance(trace, Path):
        raise TypeError(f"payment_traces tells texts and paths of files, not {trace!r}")
    return trace.read_bytes().decode("utf-8", errors="replace")


def _lapsed_early(project: Project, changes: Sequence[ChangedStep]) -> list[BookProblem]:
    """An authorization that ran out while the test still went on, though only a few days passed.

    A test that lets days pass by itself knows what it does.
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


def _reviewed(
    run: RehearsedRun, changes: Sequence[ChangedStep], baseline: Judged | None = None
) -> list[BookProblem]:
    answered = Fault(WebhooksFirst())  # the call itself goes as ever
    kinds = {step.partition(":")[0] for step, change in changes if change.effect != answered}
    excused = {UNANSWERED} if kinds & set(CALLS) else set()  # a handler that cannot read must say so
    excused |= CREATED_TWICE if PRESS in kinds else set()  # by the customer, not by the shop
    if baseline is not None and _creations(_trace(run.steps)) <= _creations(baseline.trace):
        excused |= CREATED_TWICE  # two customers have bought the same, and nothing was sent again
    return _mistakes(run.project, lambda rule: rule not in UNRELATED | excused)


def unrelated(project: Project) -> list[BookProblem]:
    """What the review finds besides: mistakes that a run as it is shows, whatever else could happen."""
    return _mistakes(project, UNRELATED.__contains__)


def _mistakes(project: Project, is_wanted: Callable[[str], bool]) -> list[BookProblem]:
    """What the review finds of the rules that are wanted."""
    return [
        BookProblem(f"{OF_REVIEW}{finding.rule}", finding.problem)
        for finding in review(project.epoch)
        if finding.kind != HINT and is_wanted(finding.rule)
    ]


def _each_once(problems: Iterable[BookProblem]) -> list[BookProblem]:
    """The problems with money and goods first: they say what a mistake costs."""
    by_kind = {problem.kind: problem for problem in problems}.values()
    return sorted(by_kind, key=lambda problem: problem.kind.startswith(LESS_TELLING))


def _state(project: Project, entries: Iterable[BookEntry]) -> tuple[Any, ...]:
    truths = truths_of(project).values()
    return (tuple(sorted(map(repr, entries))), tuple(truth[1:] for truth in truths))
