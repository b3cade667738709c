"""Why a rule decided an attempt, or which came nearest and what differed."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from payment_sandbox.scenarios.model import ACTORS, Decision, Rule, Subject, says


class Difference(NamedTuple):
    """One condition of a rule that an attempt does not meet; ``expected`` as the rule says it."""

    condition: str
    expected: Any
    actual: Any


def explain(decision: Decision) -> dict[str, Any]:
    """The deciding rule by its index; with none, the nearest one and all in which it differs."""
    shown: dict[str, Any] = {"scenario": decision.scenario.name, "rule": decision.rule}
    if decision.rule is None:
        shown["nearest"] = _nearest(decision)
    return shown


def _nearest(decision: Decision) -> dict[str, Any] | None:
    """The rule with the fewest differences; of several, the one with the most that agrees, then the first."""
    found: tuple[tuple[int, int], dict[str, Any]] | None = None
    for index, rule in enumerate(decision.scenario.rules):
        differs = list(differences(rule, index, decision))
        rank = len(differs), -_conditions(rule)
        if found is None or rank < found[0]:
            found = rank, {"rule": index, "differs": [difference._asdict() for difference in differs]}
    return found[1] if found is not None else None


def differences(rule: Rule, index: int, decision: Decision) -> Iterator[Difference]:
    """Every condition of a rule that the decided attempt does not meet."""
    subject, when = decision.subject, rule.when
    if when.refund != subject.is_refund:
        yield Difference("refund", when.refund, subject.is_refund)
    if when.payment_methods is not None and not when.payment_methods & subject.methods:
        yield Difference("payment_method", sorted(when.payment_methods), sorted(subject.methods))
    if when.amount is not None and not when.amount.holds(subject.amount_cents):
        yield Difference("amount", _bounds(when.amount._asdict()), subject.amount_cents)
    if when.attempt is not None and when.attempt != subject.attempt:
        yield Difference("attempt", when.attempt, subject.attempt)
    yield from _texts(rule, subject)
    if index in decision.spent:
        yield Difference("times", rule.times, "spent")
    if not says(rule.then, subject.outcome_keys, subject.screenings):
        known = [actor for actor in ACTORS if actor in subject.outcome_keys]
        yield Difference("then", known, [actor for actor in ACTORS if actor in rule.then])


def _texts(rule: Rule, subject: Subject) -> Iterator[Difference]:
    globs = dict(rule.when.customer)
    texts = {f"customer.{key}": (glob, subject.customer.get(key)) for key, glob in globs.items()}
    if rule.when.merchant_order_id is not None:
        texts["merchant_order_id"] = rule.when.merchant_order_id, subject.merchant_order_id
    for condition, (glob, text) in texts.items():
        if not fnmatchcase("" if text is None else str(text), glob):
            yield Difference(condition, glob, text)


def _bounds(bounds: Mapping[str, Any]) -> Any:
    """As a rule says them: one number for exactly that amount."""
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    is_exact = given.keys() == {"gte", "lte"} and given["gte"] == given["lte"]
    return given["gte"] if is_exact else given


def _conditions(rule: Rule) -> int:
    """How many conditions a rule names."""
    when = rule.when
    named = (when.payment_methods, when.amount, when.merchant_order_id, when.attempt, when.refund or None)
    return sum(condition is not None for condition in named) + len(when.customer)
