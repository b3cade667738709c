"""Rules of scenarios and faults are sentences."""

from pathlib import Path

from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.sentences import (
    rule_in_words,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios"


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
