"""Rules of scenarios and faults are sentences."""

from typing import Any

import pytest

from payment_sandbox.scenarios.sentences import (
    fault_in_words,
    then_in_words,
    webhook_in_words,
    when_in_words,
)


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ({"customer": "pays", "after": "PT10S"}, "the customer pays after 10 seconds"),
        ({"customer": "fails", "reason": "Do not honour"}, "the customer fails (Do not honour)"),
        ({"customer": "pays", "card": "declined"}, "the customer pays with declined"),
        (
            {"screening": "needs-time", "then": "passed", "after": "P2D"},
            "the screening needs time, and passed after 2 days",
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
        ({"customer": {"email_address": "pays@*"}}, "email_address pays@*"),
        ({"refund": True, "nth": 3}, "a refund, call number 3"),
    ],
)
def test_when_a_rule_applies(when: dict[str, Any], words: str) -> None:
    """In euros."""
    assert when_in_words(when) == words


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ({"status": 503, "phase": "after"}, "answer lost (503 instead)"),
        ({"status": 503}, "refused with 503"),
        ({"reset": True, "phase": "after"}, "answer lost, connection cut"),
        ({"rate_limit": "10/PT1S"}, "at most 10 calls a second"),
        ({"latency": 1.5, "truncate": True}, "answered 1.5 s late, answer cut off in its middle"),
    ],
)
def test_faults_have_names(then: dict[str, Any], words: str) -> None:
    """Those of what a shop sees."""
    assert fault_in_words(then) == words


def test_what_happens_to_webhooks() -> None:
    """As a sentence."""
    assert webhook_in_words({"duplicate": 2}) == "the webhook comes 2 times"
    assert webhook_in_words({"delay": "PT1H"}) == "the webhook comes 1 hour late"
    assert webhook_in_words({"answer": 500}) == "the try counts as answered with 500"
