"""The rule that decided an attempt, or the nearest rule and its differences."""

from collections.abc import Iterator

from payment_sandbox.scenarios.model import (
    ACTOR_KEYS,
    Decision,
    Difference,
    NearestRule,
    ScenarioDecision,
    ScenarioRule,
    outcome_applies,
)


def explain(decision: ScenarioDecision) -> Decision:
    """Return the index of the deciding rule; if no rule decided, the nearest rule and its differences."""
    explanation: Decision = {"scenario": decision.scenario.name, "rule": decision.rule}
    if decision.rule is None:
        nearest: tuple[tuple[int, int], NearestRule] | None = None
        for index, rule in enumerate(decision.scenario.rules):
            differs = list(differences(rule, index, decision))
            # the fewest differences; ties are broken by more conditions, then by position
            when = rule.when
            named = (
                when.payment_methods,
                when.amount,
                when.merchant_order_id,
                when.attempt,
                when.refund or None,
            )
            conditions = sum(condition is not None for condition in named) + len(when.customer)
            rank = len(differs), -conditions
            if nearest is None or rank < nearest[0]:
                nearest = rank, {"rule": index, "differs": differs}
        explanation["nearest"] = nearest[1] if nearest is not None else None
    return explanation


def differences(rule: ScenarioRule, index: int, decision: ScenarioDecision) -> Iterator[Difference]:
    """Yield every condition of a rule that the decided attempt does not meet."""
    subject = decision.subject
    yield from rule.when.unmet_conditions(subject)
    if index in decision.spent:
        yield Difference(condition="times", expected=rule.times, actual="spent")
    if not outcome_applies(rule.then, subject.outcome_keys, subject.screenings):
        known = [actor for actor in ACTOR_KEYS if actor in subject.outcome_keys]
        actual = [actor for actor in ACTOR_KEYS if actor in rule.then]
        yield Difference(condition="then", expected=known, actual=actual)
