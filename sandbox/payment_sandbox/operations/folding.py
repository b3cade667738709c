"""Fold long histories, so that consecutive similar steps are shown as one row."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby, pairwise
from typing import Final

from payment_sandbox.operations.history import SHOP, TimelineEntry, attempt_number, webhook_of

EQUAL_FAILURES_MIN: Final = 3  # folded attempts
WEBHOOK_KINDS: Final = ("webhook", "webhook-response")
QUANTIFIERS: Final = {1: "", 2: " of both"}
BLOCKS_MIN: Final = 3
FOLDED_KIND: Final = "folded"


def fold(timeline_entries: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    """Fold attempts with the same failure, even of interleaved webhooks, and repeated exchanges."""
    rows = [
        row
        for is_attempt, run in groupby(timeline_entries, lambda each: each.kind in WEBHOOK_KINDS)
        for row in (_fold_attempts(list(run)) if is_attempt else run)
    ]
    return list(_fold_blocks(rows))


def _fold_attempts(run: list[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Fold the repeated failures at the end of a run of attempts into one row."""
    begin = _start_of_failures(run)
    tail = run[begin:]
    later = [each for each in tail if each.kind == "webhook" and attempt_number(each) > 1]
    retries = Counter(map(webhook_of, later))
    if not later or min(retries[webhook_of(each)] for each in tail) < EQUAL_FAILURES_MIN:
        yield from run
        return
    folded_ids = {each.id for each in later}
    yield from run[:begin]
    yield from (each for each in tail if not {each.id, each.cause} & folded_ids)
    yield _summarize(later, _last_outcome(tail), len(retries))


def _start_of_failures(run: list[TimelineEntry]) -> int:
    """Return the start of the trailing attempts with the same failure."""
    last = _last_outcome(run)
    for index in range(len(run) - 1, -1, -1):
        step = run[index]
        is_alike = step.failed if _has_answer_step(step) else _last_outcome([step]) == last
        if not is_alike:
            return index + 1
    return 0


def _has_answer_step(step: TimelineEntry) -> bool:
    """Whether the step is an attempt with a separate answer step, which a lost attempt lacks."""
    return step.kind == "webhook" and not step.lost


def _last_outcome(run: list[TimelineEntry]) -> str:
    answers = [_outcome(each) for each in run if not _has_answer_step(each)]
    return answers[-1] if answers else ""


def _outcome(step: TimelineEntry) -> str:
    """Return the outcome of an attempt: the shop's answer, or the effect of a fault."""
    first, _, rest = step.label.partition(" · ")
    return rest.partition(" · ")[0] if step.lost else first


def _summarize(later: list[TimelineEntry], answer: str, webhooks: int) -> TimelineEntry:
    numbers = [attempt_number(each) for each in later]
    of = QUANTIFIERS.get(webhooks, f" of {webhooks} webhooks")
    label = (
        f"attempts {min(numbers)} to {max(numbers)}{of}{_interval(later)}, until {later[-1].at:%H:%M}: "
        f"all {answer}"
    )
    return later[0]._replace(sender=SHOP, receiver=SHOP, label=label)


def _interval(later: list[TimelineEntry]) -> str:
    """Describe the interval between the attempts of each webhook, if it is constant."""
    times = {
        webhook: [each.at for each in later if webhook_of(each) == webhook]
        for webhook in map(webhook_of, later)
    }
    gaps = {after - before for each in times.values() for before, after in pairwise(each)}
    minutes = gaps.pop() / timedelta(minutes=1) if len(gaps) == 1 else 0
    return f", every {minutes:g} min" if minutes >= 1 else ""


def _fold_blocks(timeline_entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Fold consecutive equal exchanges into the first exchange and a count of the others."""
    at = 0
    while at < len(timeline_entries):
        size, times = _longest_repetition(timeline_entries, at)
        if times < BLOCKS_MIN:
            yield timeline_entries[at]
            at += 1
            continue
        yield from timeline_entries[at : at + size]
        last = timeline_entries[at + size * times - 1]
        label = f"{times - 1} more like these, until {last.at:%H:%M:%S}"
        yield last.as_note(timeline_entries[at + size].id, FOLDED_KIND, label)
        at += size * times


def _longest_repetition(timeline_entries: Sequence[TimelineEntry], at: int) -> tuple[int, int]:
    """Return the length and the number of repetitions of the longest repeated block at this index."""
    best = (1, 1)
    for size in range(2, 9):
        block, times = _comparable(timeline_entries[at : at + size]), 1
        while _comparable(timeline_entries[at + size * times : at + size * (times + 1)]) == block:
            times += 1
        if times >= BLOCKS_MIN and size * times > best[0] * best[1]:
            best = size, times
    return best


def _comparable(block: Sequence[TimelineEntry]) -> list[tuple[str, str, str]]:
    return [(each.sender, each.receiver, each.label) for each in block]
