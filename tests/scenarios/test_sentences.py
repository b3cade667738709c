"""Rules of scenarios and faults are sentences."""

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
    ("then", "words"),
    [
        ({"customer": "pays", "after": "PT10S"}, "the customer pays after 10 seconds"),
        ({"customer": "fails", "reason": "Do not honour"}, "the payment fails (Do not honour)"),
        ({"customer": "pays", "card": "declined"}, "the customer pays with declined"),
        (
            {"screening": "needs-time", "then": "passed", "after": "P2D"},
            "the screening takes time, and then passes after 2 days",
        ),
        ({"processor": "fails", "after": "PT1H"}, "the processor refuses it after 1 hour"),
        ({"credit": "never"}, "the money never arrives"),
        (
            {"credit": {"after": "P1DT2H", "amount": 105}},
            "€1.05 of the money arrives after P1DT2H",
        ),
    ],
)
def test_what_happens_to_an_attempt(then: dict[str, Any], words: str) -> None:
    """With its time and its reason."""
    assert then_in_words(then) == words


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({}, "any"),
        ({"payment_method": ["a", "b"], "amount": 500}, "a or b, €5.00"),
        (
            {"amount": {"gte": 100, "lt": 200}, "attempt": 2},
            "at least €1.00 and less than €2.00, attempt number 2",
        ),
        ({"customer": {"email_address": "pays@*"}}, "email pays@*"),
        ({"refund": True, "nth": 3}, "a refund, call number 3"),
    ],
)
def test_when_a_rule_applies(when: dict[str, Any], words: str) -> None:
    """In euros."""
    assert when_in_words(when) == words


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ({"status": 503, "phase": "after"}, "response lost (503 instead)"),
        ({"status": 503}, "refused with 503"),
        ({"reset": True, "phase": "after"}, "response lost, connection cut"),
        ({"rate_limit": "10/PT1S"}, "at most 10 calls a second"),
        ({"latency": 1.5, "truncate": True}, "response 1.5 s late, response cut off in the middle"),
    ],
)
def test_faults_have_names(then: dict[str, Any], words: str) -> None:
    """Those of what a shop sees."""
    assert fault_in_words(then) == words


def test_what_happens_to_webhooks() -> None:
    """As a sentence."""
    assert webhook_in_words({"duplicate": 2}) == "the webhook arrives 2 times"
    assert webhook_in_words({"delay": "PT1H"}) == "the webhook arrives 1 hour late"
    assert webhook_in_words({"answer": 500}) == "the attempt is recorded as answered with 500"


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
    """All methods of an online payment have one name; a rule without a condition says so."""
    assert rule_in_words(kind, rule, ONLINE) == words


def test_rules_of_ready_scenarios_are_sentences() -> None:
    """Each of them, without a name from the file format."""
    catalogue = [
        parse_yaml(path.read_text(encoding="utf-8")).data for path in sorted(SCENARIOS.glob("*.yaml"))
    ]
    said = [
        rule_in_words(kind, rule)
        for document in catalogue
        for kind in ("rules", "webhooks", "faults")
        for rule in document.get(kind, ())
    ]
    assert len(said) >= 12
    assert not [words for words in said if "_" in words or "PT" in words]
