"""Runs probes, and sums up their results by rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from payment_sandbox_verify.checks import CannotTell, Check, Checks
from payment_sandbox_verify.service import NOT_LIVE, Service

Probing = Callable[[Service], Checks]
Progress = Callable[[int, int], None]
"""Called with the number of finished probes, and of all probes."""


class Verdict(Enum):
    """The result for a rule."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "could not tell"


class Probe(NamedTuple):
    """A probe and the rules that it checks; ``spends`` if it creates invoices or moves money."""

    run: Probing
    rules: Sequence[str]
    spends: bool
    name: str


class Reported(NamedTuple):
    """The verdict on a rule and its explanation; ``because`` is the rule that hides this one, if any."""

    rule: str
    verdict: Verdict
    how: str = ""
    because: str = ""


class Consequences(CannotTell):
    """A differing rule prevents later checks; the message describes the difference."""

    def __init__(self, rule: str, how: str) -> None:
        super().__init__(f"hidden because {rule} differs: {how}")
        self.rule = rule


PROBES: Final[list[Probe]] = []
UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""The exceptions in a probe if an answer has values of an unexpected type."""
HOWS_MAX: Final = 3  # reported differences of a rule


def probe(*rules: str, spends: bool = False) -> Callable[[Probing], Probing]:
    """Register a function as the probe of some rules."""

    def declare(function: Probing) -> Probing:
        PROBES.append(Probe(function, rules, spends, function.__name__))
        return function

    return declare


def run(
    probes: Sequence[Probe], service: Service, *, is_live: bool, progress: Progress | None = None
) -> Iterator[Check | Reported]:
    """Run probes; yield their checks, and a report for each of their rules that was not checked."""
    service.is_live = is_live
    for number, each in enumerate(probes):
        if progress is not None:
            progress(number, len(probes))
        if is_live and each.spends:
            yield from (Reported(rule, Verdict.UNKNOWN, NOT_LIVE) for rule in each.rules)
            continue
        yield from _run_probe(each, service)


def _run_probe(each: Probe, service: Service) -> Iterator[Check | Reported]:
    """Run one probe, and report its unchecked rules."""
    service.begin(each.name)
    reached: set[str] = set()
    why, because = "the probe stopped before this check", ""
    try:
        for check in each.run(service):
            reached.add(check.rule)
            yield check
    except CannotTell as reason:
        why, because = str(reason), reason.rule if isinstance(reason, Consequences) else ""
    except UNREADABLE as error:
        why = f"an answer could not be read: {type(error).__name__}: {error}"
    for rule in each.rules:
        if rule not in reached:
            yield Reported(rule, Verdict.UNKNOWN, why, because)


def sum_up(results: Iterable[Check | Reported]) -> dict[str, Reported]:
    """Return the verdict on each rule: it differs if any of its checks failed, and agrees otherwise."""
    checks: dict[str, list[Check]] = {}
    unknown: dict[str, Reported] = {}
    for each in results:
        if isinstance(each, Check):
            checks.setdefault(each.rule, []).append(each)
        else:
            unknown.setdefault(each.rule, each)
    return {**unknown, **{rule: _verdict_of(rule, each) for rule, each in checks.items()}}


def _verdict_of(rule: str, checks: Sequence[Check]) -> Reported:
    hows = list(dict.fromkeys(check.how for check in checks if not check.holds))
    if not hows:
        return Reported(rule, Verdict.AGREES)
    more = [f"and {len(hows) - HOWS_MAX} more"] if len(hows) > HOWS_MAX else []
    return Reported(rule, Verdict.DIFFERS, "; ".join([*hows[:HOWS_MAX], *more]))
