"""Runs probes, and sums up their results by rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from payment_sandbox_verify.checks import CannotTell, Check, Checks
from payment_sandbox_verify.service import SKIPPED_IN_LIVE_MODE, Service

ProbeFunction = Callable[[Service], Checks]
Progress = Callable[[int, int], None]
"""A callback that receives the number of finished probes and the total."""


class Verdict(Enum):
    """The result for a rule."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "could not tell"


class Probe(NamedTuple):
    """A probe and the rules that it checks; ``is_costly`` means that it creates invoices or moves money."""

    run: ProbeFunction
    rules: Sequence[str]
    is_costly: bool
    name: str


class RuleReport(NamedTuple):
    """The verdict on a rule and its reason; ``hidden_by`` is the rule that hides this one, if any."""

    rule: str
    verdict: Verdict
    reason: str = ""
    hidden_by: str = ""


class HiddenByDifference(CannotTell):
    """A differing rule prevents later checks; the message describes the difference."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"hidden because {rule} differs: {reason}")
        self.rule = rule


PROBES: Final[list[Probe]] = []
PARSING_ERRORS: Final = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""The exceptions that a probe raises if an answer has values of an unexpected type."""
REASONS_MAX: Final = 3  # differences reported per rule


def probe(*rules: str, is_costly: bool = False) -> Callable[[ProbeFunction], ProbeFunction]:
    """Register a function as the probe for some rules."""

    def declare(function: ProbeFunction) -> ProbeFunction:
        PROBES.append(Probe(function, rules, is_costly, function.__name__))
        return function

    return declare


def run_probes(
    probes: Sequence[Probe], service: Service, *, is_live: bool, progress: Progress | None = None
) -> Iterator[Check | RuleReport]:
    """Run probes; yield their checks, and a report for each of their rules that was not checked."""
    service.is_live = is_live
    for number, each in enumerate(probes):
        if progress is not None:
            progress(number, len(probes))
        if is_live and each.is_costly:
            yield from (RuleReport(rule, Verdict.UNKNOWN, SKIPPED_IN_LIVE_MODE) for rule in each.rules)
            continue
        yield from _run_probe(each, service)


def _run_probe(each: Probe, service: Service) -> Iterator[Check | RuleReport]:
    """Run one probe, and report its unchecked rules."""
    service.begin_probe(each.name)
    reached: set[str] = set()
    reason, hidden_by = "the probe stopped before this check", ""
    try:
        for check in each.run(service):
            reached.add(check.rule)
            yield check
    except CannotTell as error:
        reason, hidden_by = str(error), error.rule if isinstance(error, HiddenByDifference) else ""
    except PARSING_ERRORS as error:
        reason = f"an answer could not be read: {type(error).__name__}: {error}"
    for rule in each.rules:
        if rule not in reached:
            yield RuleReport(rule, Verdict.UNKNOWN, reason, hidden_by)


def sum_up(results: Iterable[Check | RuleReport]) -> dict[str, RuleReport]:
    """Return the verdict on each rule: it differs if any of its checks failed, and agrees otherwise."""
    checks: dict[str, list[Check]] = {}
    unknown: dict[str, RuleReport] = {}
    for each in results:
        if isinstance(each, Check):
            checks.setdefault(each.rule, []).append(each)
        else:
            unknown.setdefault(each.rule, each)
    return {**unknown, **{rule: _verdict_of(rule, each) for rule, each in checks.items()}}


def _verdict_of(rule: str, checks: Sequence[Check]) -> RuleReport:
    reasons = list(dict.fromkeys(check.reason for check in checks if not check.is_met))
    if not reasons:
        return RuleReport(rule, Verdict.AGREES)
    more = [f"and {len(reasons) - REASONS_MAX} more"] if len(reasons) > REASONS_MAX else []
    return RuleReport(rule, Verdict.DIFFERS, "; ".join([*reasons[:REASONS_MAX], *more]))
