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
    """What is known of a rule."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "could not tell"


class Probe(NamedTuple):
    """A probe, and the rules that it is about; ``spends`` if it makes invoices or moves money."""

    run: Probing
    rules: Sequence[str]
    spends: bool
    name: str


class Reported(NamedTuple):
    """The verdict on a rule, and how it differs or why nobody can tell; ``because`` of which other rule."""

    rule: str
    verdict: Verdict
    how: str = ""
    because: str = ""


class Consequences(CannotTell):
    """A difference hides what follows; the text says how."""

    def __init__(self, rule: str, how: str) -> None:
        super().__init__(f"{rule} differs, and hides it: {how}")
        self.rule = rule


PROBES: Final[list[Probe]] = []
UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""The exceptions in a probe if an answer has values of an unexpected type."""
HOWS_MAX: Final = 3  # ways in which a rule differs


def probe(*rules: str, spends: bool = False) -> Callable[[Probing], Probing]:
    """Declare a probe and its rules."""

    def declare(function: Probing) -> Probing:
        PROBES.append(Probe(function, rules, spends, function.__name__))
        return function

    return declare


def run(
    probes: Sequence[Probe], service: Service, *, is_live: bool, progress: Progress | None = None
) -> Iterator[Check | Reported]:
    """Run probes: the checks, and for rules that a probe did not get to, why."""
    service.is_live = is_live
    for number, each in enumerate(probes):
        if progress is not None:
            progress(number, len(probes))
        if is_live and each.spends:
            yield from (Reported(rule, Verdict.UNKNOWN, NOT_LIVE) for rule in each.rules)
            continue
        yield from _asked(each, service)


def _asked(each: Probe, service: Service) -> Iterator[Check | Reported]:
    """Run one probe."""
    service.begin(each.name)
    reached: set[str] = set()
    why, because = "the probe did not get that far", ""
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
    """The verdict on each rule: it differs if any check of it failed, and agrees if one held."""
    checks: dict[str, list[Check]] = {}
    unknown: dict[str, Reported] = {}
    for each in results:
        if isinstance(each, Check):
            checks.setdefault(each.rule, []).append(each)
        else:
            unknown.setdefault(each.rule, each)
    return {**unknown, **{rule: _of(rule, each) for rule, each in checks.items()}}


def _of(rule: str, checks: Sequence[Check]) -> Reported:
    hows = list(dict.fromkeys(check.how for check in checks if not check.holds))
    if not hows:
        return Reported(rule, Verdict.AGREES)
    more = [f"and {len(hows) - HOWS_MAX} more"] if len(hows) > HOWS_MAX else []
    return Reported(rule, Verdict.DIFFERS, "; ".join([*hows[:HOWS_MAX], *more]))
