"""A patient run of verify checks how a server retries webhooks."""

from collections.abc import Sequence
from typing import Any

import pytest
from payment_sandbox_verify.probes import all_probes, patience
from payment_sandbox_verify.probing import Probe, RuleReport, Verdict, run_probes, sum_up

from payment_sandbox_verify.verifying import reference_sandbox, verify_default_sandbox

PROBES = [each for each in all_probes() if each.run.__module__ == patience.__name__]
QUICK = [each for each in PROBES if each.run is not patience.slow_webhook]  # quick in real time, too
RULES = {rule for each in PROBES for rule in each.rules}


def run_patiently(probes: Sequence[Probe], *faults: dict[str, Any]) -> dict[str, RuleReport]:
    """Return the reports of a patient run on a sandbox with these webhook faults; its clock is advanced."""
    with reference_sandbox() as reference:
        reference.client.call("PUT", "/control/faults/", {"webhooks": list(faults)})
        reference.service.is_patient = True
        return sum_up(run_probes(probes, reference.service, is_live=False))


def reasons_of_differences(reports: dict[str, RuleReport]) -> dict[str, str]:
    """Return the reasons of the rules that differ."""
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


@pytest.mark.prove
def test_the_sandbox_agrees_with_itself() -> None:
    """The sandbox agrees in all rules about retries."""
    reports = run_patiently(PROBES)
    assert reports.keys() == RULES
    assert {each.verdict for each in reports.values()} == {Verdict.AGREES}, reports


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
    """A deviation in retries is reported with the observed behaviour."""
    differences = reasons_of_differences(run_patiently(QUICK, fault))
    assert rules <= differences.keys(), differences
    assert any(words in reason for reason in differences.values()), differences
    assert differences.keys() <= rules | {"HOOK-12", "LIM-06"}


def test_an_impatient_run_names_the_missing_options() -> None:
    """Without --patient, the rules about retries are not checked, and the reason names the options."""
    assert {verify_default_sandbox().reports[rule].reason for rule in RULES} == {
        "needs half an hour: try --patient, with --webhook-url"
    }
