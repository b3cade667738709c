"""Faults and scenario rules that never matched: what a test set up, and no request or webhook met."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.faults import ProjectFaults
from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.scenarios.model import FaultRule, ScenarioRule, Subject, WebhookRule
from payment_sandbox.scenarios.sentences import UNCONDITIONAL_PHRASES, when_in_words

SEARCHED_MAX: Final = 200
"""The number of the newest requests, webhooks or orders among which the nearest one is searched."""


def unmatched_rules(epoch: Epoch) -> list[str]:
    """Describe the faults and rules that never matched, those removed since the last reset first.

    A fault for certain calls, such as the second, counts as matched once it has applied. Of a scenario by
    name, the rules count together; the default scenario's rules do not count.
    """
    state = epoch.state
    return [*state.unmatched, *faults_unmatched(epoch, state.faults), *scenario_unmatched(epoch)]


def faults_unmatched(
    epoch: Epoch, faults: ProjectFaults, but: ProjectFaults | None = None, of: str = ""
) -> Iterator[str]:
    """Yield a sentence for each fault and webhook rule that never matched, except those also in ``but``."""
    remaining = but.document if but is not None else {}
    documents = [*faults.document.get("faults", []), *faults.document.get("webhooks", [])]
    rules: list[FaultRule | WebhookRule] = [*faults.faults, *faults.webhooks]
    for rule, document, use in zip(rules, documents, faults.uses, strict=True):
        kind = "faults" if isinstance(rule, FaultRule) else "webhooks"
        if document in remaining.get(kind, []):
            continue
        name = _name(kind, document)
        if isinstance(rule, FaultRule) and rule.nth is not None and 0 < use.asked < min(rule.nth):
            yield f"the fault{of} for {name} never applied: {use.asked} matched, of {min(rule.nth)} needed"
        elif isinstance(rule, FaultRule) and not use.asked:
            yield f"the fault{of} for {name} never matched{_nearest_request(epoch, rule)}"
        elif isinstance(rule, WebhookRule) and not use.asked:
            yield f"the webhook rule{of} for {name} never matched{_nearest_webhook(epoch, rule)}"


def scenario_unmatched(epoch: Epoch) -> Iterator[str]:
    """Yield a sentence for each rule of the active scenario that never matched."""
    state = epoch.state
    scenario, of = state.scenario, f" of the scenario {state.scenario.name}"
    if scenario.name == DEFAULT_NAME:
        return
    documents = scenario.document.get("rules", [])
    unused = [
        f"rule {index + 1}{of} for {_name('rules', document)} never matched{_nearest_attempt(epoch, rule)}"
        for index, (rule, document) in enumerate(zip(scenario.rules, documents, strict=True))
        if not state.rule_uses.get(index)
    ]
    faults = state.scenario_faults
    count = len(scenario.rules) + len(faults.uses)
    unused += faults_unmatched(epoch, faults._replace(document=scenario.document), of=of)
    if scenario.is_inline:
        yield from unused
    elif count and len(unused) == count:
        yield f"none of the rules{of} ever matched"


def _name(kind: str, document: Mapping[str, Any]) -> str:
    return when_in_words(document["when"]) if document.get("when") else UNCONDITIONAL_PHRASES[kind]


def _nearest_request(epoch: Epoch, rule: FaultRule) -> str:
    entries = epoch.journal.of(LoggedRequest)[-SEARCHED_MAX:]
    known = dict.fromkeys((entry.method, entry.path) for entry in reversed(entries))
    if not known:
        return "; there were no requests"

    def rank(request: tuple[str, str]) -> tuple[int, float]:
        similarity = SequenceMatcher(None, request[1], rule.path or "").ratio()
        return len(_differences(rule, *request)), -similarity

    method, path = min(known, key=rank)
    differs = " and ".join(_differences(rule, method, path)) or "time: it came before the fault"
    return f"; {method} {path} differs in the {differs}"


def _differences(rule: FaultRule, method: str, path: str) -> list[str]:
    parts = {"method": rule._replace(path=None), "path": rule._replace(method=None)}
    return [name for name, part in parts.items() if not part.matches(method, path)]


def _nearest_webhook(epoch: Epoch, rule: WebhookRule) -> str:
    deliveries = epoch.store.deliveries()[-SEARCHED_MAX:]
    if not deliveries:
        return "; there were no webhooks"

    def differences(status: str, order_id: str) -> list[str]:
        known = {"status": (rule.status, status), "order": (rule.order_id, order_id)}
        return [name for name, (expected, actual) in known.items() if expected not in (None, actual)]

    nearest = min(reversed(deliveries), key=lambda each: len(differences(each.status, each.order_id)))
    attempts = len(nearest.attempts)
    differs = differences(nearest.status, nearest.order_id)
    differs += ["number of attempts"] if rule.attempt and not differs else []
    text = f"the webhook {nearest.status} with {attempts} attempt{'' if attempts == 1 else 's'}"
    return f"; {text} differs in the {' and '.join(differs)}" if differs else f"; {text} came before the rule"


def _nearest_attempt(epoch: Epoch, rule: ScenarioRule) -> str:
    ids = epoch.store.order_ids()[-SEARCHED_MAX:]
    best: tuple[int, str] | None = None
    for order in map(epoch.find_order, reversed(ids)):
        for number, attempt in enumerate(order.transactions, 1):
            subject = Subject(
                frozenset((attempt.method, attempt.payment_method)),
                attempt.amount_cents,
                order.customer or {},
                order.merchant_order_id,
                number,
                order.is_refund,
                frozenset(),
            )
            differs = [each["condition"] for each in rule.when.unmet_conditions(subject)]
            if best is None or len(differs) < best[0]:
                shown = f"{attempt.payment_method} of {attempt.amount_cents} cents"
                words = " and ".join(differs) or "outcome, or an earlier rule decided"
                best = len(differs), f"; {shown} differs in the {words}"
    return best[1] if best is not None else "; there were no attempts"
