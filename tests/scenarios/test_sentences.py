"""Rules of scenarios and faults are sentences."""

from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.sentences import (
    rule_in_words,
)

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
            "rules",
            {
                "when": {"amount": {"gte": 100, "lt": 200}, "attempt": 2},
                "then": {"credit": {"after": "P1DT2H", "amount": 105}},
            },
            "For at least €1.00 and less than €2.00, attempt number 2: €1.05 of the money arrives after P1DT2H.",
        ),
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
