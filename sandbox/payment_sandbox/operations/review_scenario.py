"""Warnings about a scenario: rules that never match, and outcomes unsupported by test mode."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.forms.order_fields import CustomerForm
from payment_sandbox.methods import METHOD_NAMES, METHODS_BY_NAME, REFUND
from payment_sandbox.methods.common import Method
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.settings import Settings, check_scenario_settings, read_settings
from payment_sandbox.scenarios.catalogue import read_text
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.loader import load_text
from payment_sandbox.scenarios.model import (
    ACTOR_KEYS,
    AmountRange,
    Scenario,
    ScenarioRule,
    When,
    outcome_applies,
)

NO_AMOUNTS: Final = AmountRange()
NEVER: Final = "never"
CUSTOMER_KEYS: Final = tuple(CustomerForm().fields)


class AttemptKind(NamedTuple):
    """A kind of attempt to match: a method, its name in the request, and its outcome keys."""

    method: Method
    name: str
    keys: frozenset[str]


def check_file(path: Path) -> tuple[Scenario, list[Violation]]:
    """Read a scenario file; return the scenario and its warnings with line and column.

    Raises:
        Invalid: lists all violations.
    """
    text = read_text(path)
    scenario = load_text(text, METHOD_NAMES, check_scenario_settings, str(path))
    return scenario, parse_yaml(text).with_positions(review_scenario(scenario), str(path))


def review_scenario(scenario: Scenario) -> list[Violation]:
    """Return a warning for each part that has no effect; the scenario can still be used."""
    settings = read_settings(dict(scenario.settings), Settings())
    warnings: list[Violation] = []
    for index, rule in enumerate(scenario.rules):
        kinds = _attempt_kinds(rule, settings)
        warnings += _find_unreachable(index, rule, kinds, scenario, settings)
        warnings += _find_ineffective(index, rule, kinds, settings)
        if settings.is_test and not rule.when.refund:
            warnings += _find_live_only(index, rule, kinds)
    warnings += _find_late_webhooks(scenario)
    return warnings


def _attempt_kinds(rule: ScenarioRule, settings: Settings) -> list[AttemptKind]:
    """List the kinds of attempts decided by a rule."""
    return [kind for kind in _possible_kinds(rule.when, settings) if _decides_kind(rule, kind)]


def _possible_kinds(when: When, settings: Settings) -> Iterator[AttemptKind]:
    for name in METHOD_NAMES if when.payment_methods is None else sorted(when.payment_methods):
        method = METHODS_BY_NAME[settings.method(name) or ""]
        for keys in (REFUND if when.refund else method).capabilities.outcomes:
            yield AttemptKind(method, name, keys)


def _decides_kind(rule: ScenarioRule, kind: AttemptKind) -> bool:
    return outcome_applies(rule.then, kind.keys, kind.method.capabilities.screenings)


def _find_unreachable(
    index: int, rule: ScenarioRule, kinds: list[AttemptKind], scenario: Scenario, settings: Settings
) -> Iterator[Violation]:
    """Find rules that can never match, or whose matches are all claimed by earlier rules."""
    if not kinds:
        known = sorted(
            {word for kind in _possible_kinds(rule.when, settings) for word in kind.keys & {*ACTOR_KEYS}}
        )
        yield Violation(
            f"rules[{index}].then",
            f"can never happen: attempts that match this rule depend on {' or '.join(known)} instead",
            known,
        )
        return
    for before, earlier in enumerate(scenario.rules[:index]):
        if earlier.times is None and _is_shadowed(earlier, rule, kinds):
            yield Violation(f"rules[{index}]", f"can never match: rules[{before}] always matches first")
            return


def _find_ineffective(
    index: int, rule: ScenarioRule, kinds: list[AttemptKind], settings: Settings
) -> Iterator[Violation]:
    """Find outcome keys and conditions that affect none of the attempts."""
    path, when = f"rules[{index}]", rule.when
    known = set().union(*(kind.keys for kind in kinds))
    for word in rule.then:
        if kinds and word not in known:
            yield Violation(
                f"{path}.then.{word}", "has no effect on the attempts that match this rule", sorted(known)
            )
    yield from _find_impossible(path, when)
    for key in when.customer.keys() - set(CUSTOMER_KEYS):
        nearest = nearest_word(key, CUSTOMER_KEYS)
        problem = f"is not a customer field{did_you_mean(nearest)}"
        yield Violation(f"{path}.when.customer.{key}", problem, CUSTOMER_KEYS, nearest)
    switched_off = {kind.name for kind in kinds if kind.method.name not in settings.payment_methods}
    if when.payment_methods is not None and switched_off:
        names = " and ".join(sorted(switched_off))
        yield Violation(f"{path}.when.payment_method", f"names {names}, which the settings disable")


def _find_impossible(path: str, when: When) -> Iterator[Violation]:
    """Find conditions that no attempt can meet."""
    if when.amount is not None and max(_lowest(when.amount), 1) > _highest(when.amount):
        yield Violation(f"{path}.when.amount", "matches no amount; the smallest amount is 1")
    if when.refund and when.attempt not in (None, 1):
        yield Violation(f"{path}.when.attempt", "matches no refund: a refund is always attempt 1")


def _find_late_webhooks(scenario: Scenario) -> Iterator[Violation]:
    for index, rule in enumerate(scenario.webhooks):
        for before, earlier in enumerate(scenario.webhooks[:index]):
            if earlier.status in (None, rule.status) and earlier.attempt in (None, rule.attempt):
                yield Violation(
                    f"webhooks[{index}]", f"can never match: webhooks[{before}] always matches first"
                )
                break


def _is_shadowed(earlier: ScenarioRule, rule: ScenarioRule, kinds: list[AttemptKind]) -> bool:
    """Whether the earlier rule decides all attempts of the later rule."""
    first, second = earlier.when, rule.when
    return (
        first.refund == second.refund
        and all(_covers_kind(earlier, kind) for kind in kinds)
        and _covers_amounts(first.amount or NO_AMOUNTS, second.amount or NO_AMOUNTS)
        and first.attempt in (None, second.attempt)
        and _covers_glob(first.merchant_order_id, second.merchant_order_id)
        and _covers_customers(first.customer, second.customer)
    )


def _covers_kind(earlier: ScenarioRule, kind: AttemptKind) -> bool:
    names = earlier.when.payment_methods
    is_named = names is None or kind.name in names or kind.method.name in names
    return is_named and _decides_kind(earlier, kind)


def _covers_customers(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    return all(_covers_glob(glob, second.get(key)) for key, glob in first.items())


def _covers_glob(first: str | None, second: str | None) -> bool:
    """Whether the first glob matches every match of the second; False in unclear cases."""
    if first is None or first == "*" or first == second:
        return True
    if second is None or "[" in first + second or "?" in first:
        return False
    return fnmatchcase(second, first)  # only a star in the first glob matches a star in the second


def _covers_amounts(first: AmountRange, second: AmountRange) -> bool:
    return _lowest(first) <= _lowest(second) and _highest(first) >= _highest(second)


def _lowest(amounts: AmountRange) -> float:
    bounds = [float("-inf") if amounts.gte is None else amounts.gte]
    return max(*bounds, float("-inf") if amounts.gt is None else amounts.gt + 1)


def _highest(amounts: AmountRange) -> float:
    bounds = [float("inf") if amounts.lte is None else amounts.lte]
    return min(*bounds, float("inf") if amounts.lt is None else amounts.lt - 1)


def _find_live_only(index: int, rule: ScenarioRule, kinds: list[AttemptKind]) -> Iterator[Violation]:
    """Find rules that need ``mode: live``."""
    untestable = {kind.name for kind in kinds if not _is_testable(rule, kind)}
    named = rule.when.payment_methods is not None
    if untestable and (named or len(untestable) == len({kind.name for kind in kinds})):
        yield Violation(
            f"rules[{index}].when.payment_method" if named else f"rules[{index}].then",
            f"is not possible in test mode with {' and '.join(sorted(untestable))}; "
            "settings: {mode: live} makes it possible",
        )


def _is_testable(rule: ScenarioRule, kind: AttemptKind) -> bool:
    capabilities = kind.method.capabilities
    return capabilities.testable and (
        capabilities.completes_in_test or rule.then.get("credit", NEVER) == NEVER
    )
