"""Makes long histories short: steps that went alike, one after the other, are told as one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby, pairwise
from typing import Final

from payment_sandbox.operations.history import SHOP, Happening
from payment_sandbox.operations.reasons import number_of_try, webhook_of

ALIKE_MIN: Final = 3  # tries that are told as one
WEBHOOK: Final = ("webhook", "webhook-response")
ALL_OF: Final = {1: "", 2: " of both"}
BLOCKS_MIN: Final = 3
FOLDED: Final = "folded"


def folded(happenings: Sequence[Happening]) -> list[Happening]:
    """The happenings with tries that failed alike together, also of several webhooks that failed in turn."""
    shown = [
        told
        for is_try, run in groupby(happenings, lambda each: each.kind in WEBHOOK)
        for told in (_tries(list(run)) if is_try else run)
    ]
    return list(_blocks(shown))


def _tries(run: list[Happening]) -> Iterator[Happening]:
    """A run of tries; the end of it, in which every webhook failed again and again, is one row."""
    begin = _begin_of_failures(run)
    tail = run[begin:]
    later = [each for each in tail if each.kind == "webhook" and number_of_try(each) > 1]
    again = Counter(map(webhook_of, later))
    if not later or min(again[webhook_of(each)] for each in tail) < ALIKE_MIN:
        yield from run
        return
    left_out = {each.id for each in later}
    yield from run[:begin]
    yield from (each for each in tail if not {each.id, each.cause} & left_out)
    yield _summary(later, _answer(tail), len(again))


def _begin_of_failures(run: list[Happening]) -> int:
    """Where the end of a run begins in which all tries have failed with one answer."""
    last = _answer(run)
    for index in range(len(run) - 1, -1, -1):
        step = run[index]
        is_alike = step.failed if _is_answered(step) else _answer([step]) == last
        if not is_alike:
            return index + 1
    return 0


def _is_answered(step: Happening) -> bool:
    """Whether it is a try whose answer is a step of its own; a lost one has none."""
    return step.kind == "webhook" and not step.lost


def _answer(run: list[Happening]) -> str:
    answers = [_outcome(each) for each in run if not _is_answered(each)]
    return answers[-1] if answers else ""


def _outcome(step: Happening) -> str:
    """What became of a try: what the shop answered, or what a fault made of it."""
    first, _, others = step.label.partition(" · ")
    return others.partition(" · ")[0] if step.lost else first


def _summary(later: list[Happening], answer: str, webhooks: int) -> Happening:
    numbers = [number_of_try(each) for each in later]
    of = ALL_OF.get(webhooks, f" of {webhooks} webhooks")
    label = (
        f"tries {min(numbers)} to {max(numbers)}{of}{_apart(later)}, until {later[-1].at:%H:%M}: all {answer}"
    )
    return later[0]._replace(sender=SHOP, receiver=SHOP, label=label)


def _apart(later: list[Happening]) -> str:
    """How far apart the tries of each webhook are, if that is always the same."""
    times = {
        webhook: [each.at for each in later if webhook_of(each) == webhook]
        for webhook in map(webhook_of, later)
    }
    gaps = {after - before for each in times.values() for before, after in pairwise(each)}
    minutes = gaps.pop() / timedelta(minutes=1) if len(gaps) == 1 else 0
    return f", every {minutes:g} min" if minutes >= 1 else ""


def _blocks(happenings: Sequence[Happening]) -> Iterator[Happening]:
    """The happenings, with equal exchanges that follow each other told once, and then counted."""
    at = 0
    while at < len(happenings):
        size, times = _repeated(happenings, at)
        if times < BLOCKS_MIN:
            yield happenings[at]
            at += 1
            continue
        yield from happenings[at : at + size]
        last = happenings[at + size * times - 1]
        yield last._replace(
            id=happenings[at + size].id,
            sender=SHOP,
            receiver=SHOP,
            kind=FOLDED,
            label=f"{times - 1} more like these, until {last.at:%H:%M:%S}",
            detail=None,
            duration_ms=None,
        )
        at += size * times


def _repeated(happenings: Sequence[Happening], at: int) -> tuple[int, int]:
    """The length of the block that begins here and comes again most often, and how often it comes."""
    best = (1, 1)
    for size in range(2, 9):
        block, times = _shape(happenings[at : at + size]), 1
        while _shape(happenings[at + size * times : at + size * (times + 1)]) == block:
            times += 1
        if times >= BLOCKS_MIN and size * times > best[0] * best[1]:
            best = size, times
    return best


def _shape(block: Sequence[Happening]) -> list[tuple[str, str, str]]:
    return [(each.sender, each.receiver, each.label) for each in block]
