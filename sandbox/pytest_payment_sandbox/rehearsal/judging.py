"""Judges one run: one look at books, money, review and pages, when nothing is due any more."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from payment_sandbox.judge import HINT, Finding, review
from payment_sandbox.judge.books import BookEntry, BookProblem, Purchase, compare
from payment_sandbox.judge.history import TimelineEntry, fold, history
from payment_sandbox.judge.webhook_checks import attempt_id
from payment_sandbox.kernel.masking import MASK
from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.agenda import next_due
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.webhooks import NO_ANSWER
from payment_sandbox.projects.caller import as_waiting_thread
from payment_sandbox.projects.project import Project
from pytest_payment_sandbox.rehearsal.leaks import find_leaks
from pytest_payment_sandbox.rehearsal.pages import ShownPage, find_page_problems, read_pages
from pytest_payment_sandbox.rehearsal.run import RunEnded, TestRun
from pytest_payment_sandbox.rehearsal.scenes import DAILY, DAY, HOURLY, RARELY, orders_of, pass_time
from pytest_payment_sandbox.rehearsal.steps import ACTION, CREATE, ONCE, PAID, SAME, TIME
from pytest_payment_sandbox.rehearsal.verdicts import (
    BOOKS_FIXTURE,
    TRACES_FIXTURE,
    Money,
    Verdict,
    read_books,
)

CONFLICT: Final = 409
HORIZON: Final = timedelta(days=40)
QUIET: Final = timedelta(hours=6)
WEEK: Final = timedelta(days=7)
REVIEW_PREFIX: Final = "review "
"""The prefix of the kinds of problems that come from the review."""
UNANSWERED_RULE: Final = "HOOK-09"
DUPLICATE_RULES: Final = frozenset({"ORD-07", "CTL-23"})  # two customers may buy the same
RULES_AFTER_A_CHANGE: Final = (UNANSWERED_RULE, "ORD-07", "CTL-23", "FLOW-09", "A45")
COMPARED: Final = (
    ("received", "payment-missed", "charged-again", "{} was charged instead of {}"),
    ("refunded", "refunds-differ", "refunded-again", "{} was refunded instead of {}"),
    ("paid", "payment-missed", "", "the shop marks {} as paid instead of {}, as was paid"),
    ("shipped", "captured-not-shipped", "shipped-again", "goods worth {} were shipped instead of {}"),
)
"""What is compared with the unchanged run, the kinds of problems if it is less or more, and a sentence."""
MARK: Final = ">>>"
ID_LENGTH: Final = 8  # characters of an order's id


def judge(run: TestRun, failure: BaseException | None) -> Verdict:
    """Judge a run at the end of its test, and once nothing is due any more."""
    try:
        return _judge(run, failure) if not run.is_cut_off else Verdict([])
    except RunEnded:
        return Verdict([])
    except Exception as error:  # of a fixture of the shop
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        return Verdict([BookProblem("not-judged", f"the run could not be judged: {reason}")])


def _judge(run: TestRun, failure: BaseException | None) -> Verdict:
    project = run.project
    reviewed = review(project.epoch) if run.change is None else []
    is_silent = any(map(_is_unanswered, _attempts(project)))
    during = {attempt_id(*each) for each in _attempts(project)}
    end = _wait(run) if not is_silent else project.now()
    serious = [each for each in review(project.epoch) if each.rule in RULES_AFTER_A_CHANGE]
    reviewed += [each for each in serious if each not in reviewed]
    problems, money, pages = _judge_money(run, failure)
    problems += [*_find_leaked(run), *_review_problems(run, reviewed, during)]
    problems += _failed_test(run, failure)
    first_of_kind = list({problem.kind: problem for problem in reversed(problems)}.values())[::-1]
    creations = [step for step in run.steps if step.kind == CREATE]
    timeline = describe_timeline(run) if problems else ""
    efforts, calls = run.efforts, run.most_calls
    return Verdict(first_of_kind, money, pages, efforts, len(creations), calls, end, timeline, is_silent)


def _failed_test(run: TestRun, failure: BaseException | None) -> Iterator[BookProblem]:
    if run.change is not None and run.change.row.holds and failure is not None:
        lines = f"{type(failure).__name__}: {failure}".splitlines()
        yield BookProblem("test", f"the test fails: {lines[0]}")


def _judge_money(
    run: TestRun, failure: BaseException | None
) -> tuple[list[BookProblem], Money, Sequence[ShownPage]]:
    """Judge the books, the money and the pages; return the problems, and what the other runs compare."""
    project, books = run.project, run.find_fixture(BOOKS_FIXTURE)
    entries, invariants = read_books(books)
    problems = [*run.unpaid, *invariants]
    if run.endless_call:
        sentence = f"the shop polls endlessly: {run.endless_call}, although nothing changes"
        problems.append(BookProblem("endless", sentence))
    if books is not None and not invariants:
        problems += compare(entries, orders_of(project))
    money, pages = _sum_up(project, entries), list[ShownPage]()
    if books is None:
        pages = read_pages(run.browser, project, run.opened)
    if run.baseline is not None:
        if invariants:  # the books cannot be read
            money = money._replace(paid=run.baseline.money.paid, shipped=run.baseline.money.shipped)
        compared = _compare_runs(run, run.baseline, failure, money, pages)
        known = {problem.kind for problem in problems}
        problems += [each for each in compared if each.kind not in known]
    return problems, money, pages


def _compare_runs(
    run: TestRun,
    baseline: Verdict,
    failure: BaseException | None,
    money: Money,
    pages: Sequence[ShownPage],
) -> Iterator[BookProblem]:
    """Compare a run with the unchanged one; less money counts only if the test did all that it does.

    A shop may refuse what the test asks for after the change, such as a refund of what is not paid yet.
    """
    assert run.change is not None, "the unchanged run is compared with nothing"
    expected, is_shop_told = run.change.row.money, run.change.step.startswith((ACTION, TIME))
    is_whole = run.efforts == baseline.efforts and (failure is None or isinstance(failure, AssertionError))
    is_whole = is_whole and (is_shop_told or run.is_left_alone)
    if expected in (SAME, ONCE):
        yield from _compare_money(money, baseline.money, may_be_less=expected == ONCE or not is_whole)
    if money.shipped < baseline.money.shipped and money.received >= baseline.money.received:
        yield from _find_mistaken_refusals(run.project, baseline.money.shipped - money.shipped)
    is_same = money[:2] == baseline.money[:2] and expected in (SAME, PAID)
    yield from find_page_problems(pages, baseline.pages, is_same=is_same and is_whole)


def _find_mistaken_refusals(project: Project, cents: int) -> Iterator[BookProblem]:
    """Find goods that never ship, because the refusal of a repeated capture was taken for a failure."""
    lost = set[str]()
    for entry in project.epoch.journal.entries():
        if "/captures/" in entry.path and entry.fault is not None and entry.fault.is_after:
            lost.add(entry.path)
        elif entry.path in lost and entry.status == CONFLICT:
            sentence = (
                f"goods worth {euros(cents)} were captured, but not shipped: the shop takes the refusal of "
            )
            kind = "captured-not-shipped"
            yield BookProblem(kind, f"{sentence}its second capture for a failure", entry.order_id, cents)
            return


def _wait(run: TestRun) -> datetime:
    """Let time pass until nothing is due any more, as long as in the unchanged run; return the end.

    Jobs run hourly for a day, then daily for a week, and before each event. Once they change nothing more,
    the next event comes at once.
    """
    project = run.project
    start, epoch = project.now(), project.epoch
    end = max(start + 3 * DAY, (run.baseline.end if run.baseline is not None else None) or start + HORIZON)
    is_quiet = False
    with as_waiting_thread():
        while (now := project.now()) < end + HORIZON:
            due = next_due(epoch)
            coming = [job.at for job in epoch.jobs.by_next_run() if now + 2 * DAY < job.at < end]
            coming += [due.at] if due is not None else []
            if now >= start + 3 * DAY and not coming and (is_quiet or now >= end):
                break
            before = _state(project)
            pass_time(project, *_next_stop(start, now, coming, is_quiet=is_quiet))
            is_quiet = before == _state(project)
            if project.now() <= now:
                break
    return end


def _next_stop(
    start: datetime, now: datetime, coming: Sequence[datetime], *, is_quiet: bool
) -> tuple[datetime, Period]:
    """Return until when to advance, and how often jobs run until then."""
    if now < start + DAY:
        return (min([*coming, start + DAY]), DAILY) if is_quiet else (now + QUIET, HOURLY)
    if is_quiet and coming and now >= start + WEEK:
        return min(coming), RARELY
    return now + 2 * DAY, DAILY


def _state(project: Project) -> list[tuple[str, int]]:
    return [(order.id, order.version) for order in orders_of(project)]


def _sum_up(project: Project, entries: Sequence[BookEntry]) -> Money:
    orders = [order for order in orders_of(project) if not order.is_refund]
    paid = [order for order in orders if order.received_cents]
    money = Purchase.of(orders, ())
    return Money(
        money.received,
        money.returned,
        sum(entry.paid for entry in entries),
        sum(entry.shipped for entry in entries),
        money.authorized > 0,
        sum(order.amount_cents for order in paid),
        len(paid),
    )


def _compare_money(money: Money, before: Money, *, may_be_less: bool) -> Iterator[BookProblem]:
    """Compare the money with that of the unchanged run.

    No more paid orders for a larger amount mean a larger basket: "Add to cart" was submitted twice.
    """
    surplus = money.received - money.refunded - (before.received - before.refunded)
    is_larger = money.ordered > before.ordered and money.orders <= before.orders
    for field, less, more, sentence in COMPARED:
        now, usual = getattr(money, field), getattr(before, field)
        text = sentence.format(euros(now), euros(usual))
        if now < usual and not may_be_less:
            is_lapsed = field == "received" and money.authorized
            yield BookProblem("lapsed" if is_lapsed else less, text, None, usual - now)
            return
        is_reason = surplus > 0 if field == "received" else money.received <= before.received
        if now > usual and more and is_reason and not is_larger:
            yield BookProblem(more, text, None, now - usual)


def _find_leaked(run: TestRun) -> Iterator[BookProblem]:
    yield from find_leaks(run.project, run.find_fixture(TRACES_FIXTURE))
    if any(MASK in attempt.reply.body for _, attempt in _attempts(run.project)):  # masked on arrival
        yield BookProblem("secret", "the shop's response to a webhook contains a key, a card number or a CVC")


def _attempts(project: Project) -> list[tuple[Any, Any]]:
    deliveries = project.epoch.store.deliveries()
    return [(delivery, attempt) for delivery in deliveries for attempt in delivery.delivery_attempts]


def _is_unanswered(tried: tuple[Any, Any]) -> bool:
    _, attempt = tried
    return not attempt.is_withheld and (attempt.reply.error or "").startswith(NO_ANSWER)


def _review_problems(run: TestRun, findings: Iterable[Finding], during: set[str]) -> Iterator[BookProblem]:
    """Yield the mistakes in a review.

    A webhook after the test counts only if the shop answered it: its server may have ended with the test.
    """
    excused = run.change.row.excused if run.change is not None else frozenset()
    if not run.has_more_creations:
        excused |= DUPLICATE_RULES
    answered = {attempt_id(*each) for each in _attempts(run.project) if each[1].reply.status is not None}
    for finding in findings:
        is_late = finding.rule == UNANSWERED_RULE and not (answered | during).intersection(finding.shown_by)
        if not (finding.kind == HINT or finding.healed or finding.rule in excused or is_late):
            kind = f"{REVIEW_PREFIX}{finding.rule}"
            yield BookProblem(kind, finding.problem, finding.order_id, finding.amount)


def describe_timeline(run: TestRun) -> str:
    """Describe the timeline of a run; ``>>>`` marks the change before its first effect."""
    lines, upcoming = list[str](), list(run.marks)
    for entry in fold(history(run.project.epoch)):
        while upcoming and upcoming[0][0] <= entry.real_at:
            lines.append(f"{MARK} {upcoming.pop(0)[1]}")
        lines.append(f"{entry.at:%Y-%m-%d %H:%M:%S}  {_describe(entry)}")
        if entry.kind == "webhook-response" and entry.failed:  # the traceback of the handler
            lines += [f"    {line}" for line in (entry.detail or "").splitlines()]
    return "\n".join([*lines, *(f"{MARK} {sentence}" for _, sentence in upcoming)])


def _describe(entry: TimelineEntry) -> str:
    order = f" (order {entry.order_id[:ID_LENGTH]})" if entry.order_id else ""
    if entry.kind == "status":
        return f"the order is {entry.label}{order}"
    parties = "" if entry.sender == entry.receiver else f"{entry.sender} to {entry.receiver}: "
    return f"{parties}{f'{entry.label}: {entry.detail}' if entry.kind == 'failure' else entry.label}{order}"
