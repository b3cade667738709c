"""Whoever has half an hour learns how a server sends webhooks again."""

from collections.abc import Sequence
from typing import Any

import pytest

from payment_sandbox_verify.probes import all_probes, patience
from payment_sandbox_verify.probing import Probe, RuleReport, Verdict, run_probes, sum_up
from payment_sandbox_verify.verifying import reference_sandbox, verify_default_sandbox

PROBES = [each for each in all_probes() if each.run.__module__ == patience.__name__]
QUICK = [each for each in PROBES if each.run is not patience.slow_webhook]  # in real time, too
RULES = {rule for each in PROBES for rule in each.rules}


def patiently(probes: Sequence[Probe], *faults: dict[str, Any]) -> dict[str, RuleReport]:
    """What a patient run tells of a sandbox with these faults of webhooks; its clock is moved."""
    with reference_sandbox() as own:
        own.client.call("PUT", "/control/faults/", {"webhooks": list(faults)})
        own.service.is_patient = True
        return sum_up(run_probes(probes, own.service, is_live=False))


def differing(told: dict[str, RuleReport]) -> dict[str, str]:
    """The rules that differ, and how."""
    return {rule: each.reason for rule, each in told.items() if each.verdict is Verdict.DIFFERS}


@pytest.mark.prove
def test_the_sandbox_agrees_with_itself() -> None:
    """In all rules about retries."""
    told = patiently(PROBES)
    assert told.keys() == RULES
    assert {each.verdict for each in told.values()} == {Verdict.AGREES}, told


@pytest.mark.parametrize(
    ("fault", "rules", "words"),
    [
        ({"when": {"attempt": 2}, "then": {"drop": True}}, {"HOOK-10"}, "was not retried"),
        ({"when": {"attempt": 3}, "then": {"drop": True}}, {"HOOK-09"}, "was not retried"),
        ({"when": {"attempt": 6}, "then": {"drop": True}}, {"HOOK-12"}, "was attempted 5 times, not ten"),
        ({"when": {"attempt": 4}, "then": {"delay": "PT25S"}}, {"HOOK-11", "LIM-06"}, "are 145 s apart"),
        ({"then": {"duplicate": 2}}, {"HOOK-11", "LIM-06", "SET-58"}, "are 5 s apart"),
    ],
)
def test_a_server_that_differs(fault: dict[str, Any], rules: set[str], words: str) -> None:
    """It is named, with what came instead."""
    found = differing(patiently(QUICK, fault))
    assert rules <= found.keys(), found
    assert any(words in how for how in found.values()), found
    assert found.keys() <= rules | {"HOOK-12", "LIM-06"}


def test_without_patience_it_says_what_would_tell() -> None:
    """And asks nothing."""
    assert {verify_default_sandbox().reports[rule].reason for rule in RULES} == {
        "needs half an hour: try --patient, with --webhook-url"
    }
