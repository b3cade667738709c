"""Rules of scenarios and faults are sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.sentences import (
    fault_in_words,
    rule_in_words,
    then_in_words,
    webhook_in_words,
    when_in_words,
)


@pytest.mark.parametrize(
    ("describe", "part", "words"),
    [
        (then_in_words, {"customer": "pays", "after": "PT10S"}, "the customer pays after 10 seconds"),
        (then_in_words, {"customer": "fails", "reason": "Expired"}, "the payment fails (Expired)"),
        (then_in_words, {"customer": "pays", "card": "declined"}, "the customer pays with declined"),
        (
            then_in_words,
            {"screening": "needs-time", "then": "passed", "after": "P2D"},
            "the screening takes time, and then passes after 2 days",
        ),
        (then_in_words, {"processor": "fails", "after": "PT1H"}, "the processor refuses it after 1 hour"),
        (then_in_words, {"credit": "never"}, "the money never arrives"),
        (
            then_in_words,
            {"credit": {"after": "P1DT2H", "amount": 105}},
            "€1.05 of the money arrives after P1DT2H",
        ),
        (when_in_words, {}, "any"),
        (when_in_words, {"payment_method": ["a", "b"], "amount": 500}, "a or b, €5.00"),
        (
            when_in_words,
            {"amount": {"gte": 100, "lt": 200}, "attempt": 2},
            "at least €1.00 and less than €2.00, attempt number 2",
        ),
        (when_in_words, {"customer": {"email_address": "pays@*"}}, "email pays@*"),
        (when_in_words, {"refund": True, "nth": 3}, "a refund, call number 3"),
        (fault_in_words, {"status": 503, "phase": "after"}, "response lost (503 instead)"),
        (fault_in_words, {"status": 503}, "refused with 503"),
        (fault_in_words, {"reset": True, "phase": "after"}, "response lost, connection cut"),
        (fault_in_words, {"rate_limit": "10/PT1S"}, "at most 10 calls a second"),
        (
            fault_in_words,
            {"latency": 1.5, "truncate": True},
            "response 1.5 s late, response cut off in the middle",
        ),
        (webhook_in_words, {"duplicate": 2}, "the webhook arrives 2 times"),
        (webhook_in_words, {"delay": "PT1H"}, "the webhook arrives 1 hour late"),
        (webhook_in_words, {"answer": 500}, "the attempt is recorded as answered with 500"),
    ],
)
def test_a_part_of_a_rule_is_a_sentence(
    describe: Callable[[dict[str, Any]], str], part: dict[str, Any], words: str
) -> None:
    """Outcomes have their time and reason, conditions amounts in euros, and faults what the shop sees."""
    assert describe(part) == words


SCENARIOS = Path(__file__).parents[2] / "scenarios"
ONLINE = ("wallet-web", "credit-card")


@pytest.mark.parametrize(
    ("kind", "rule", "words"),
    [
        (
            "rules",
            {"when": {"payment_method": ["credit-card", "wallet-web"]}, "then": {"customer": "pays"}},
            "For any online method: the customer pays.",
        ),
        (
            "rules",
            {"when": {"payment_method": ["credit-card"]}, "then": {"customer": "pays"}},
            "For credit-card: the customer pays.",
        ),
        ("rules", {"then": {"screening": "declined"}}, "For every attempt: the screening declines."),
        ("webhooks", {"then": {"duplicate": 2}}, "For every webhook: the webhook arrives 2 times."),
        (
            "faults",
            {"when": {"method": "POST", "nth": [1, 2]}, "then": {"status": 503}, "times": 3},
            "For POST, call number 1 or 2: refused with 503, 3 times at most.",
        ),
    ],
)
def test_a_rule_is_a_sentence(kind: str, rule: dict[str, Any], words: str) -> None:
    """A rule's sentence summarizes all online methods; without conditions, it is about every attempt."""
    assert rule_in_words(kind, rule, ONLINE) == words


def test_rules_of_ready_scenarios_are_sentences() -> None:
    """The sentences of the ready scenarios contain no key and no duration of the file format."""
    catalogue = [
        parse_yaml(path.read_text(encoding="utf-8")).data for path in sorted(SCENARIOS.glob("*.yaml"))
    ]
    sentences = [
        rule_in_words(kind, rule)
        for document in catalogue
        for kind in ("rules", "webhooks", "faults")
        for rule in document.get(kind, ())
    ]
    assert len(sentences) >= 12
    assert not [words for words in sentences if "_" in words or "PT" in words]
