"""A patient run of verify checks how a server retries webhooks."""

from typing import Any

import pytest

from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.player import NEEDS_PATIENCE
from payment_sandbox_verify.verifying import Verdict, reference_sandbox, verify

SCENES = [scene for scene in all_scenes() if scene.is_patient]
QUICK = [scene for scene in SCENES if "late" not in scene.name]  # quick in real time, too
RULES = {rule for scene in SCENES for step in scene.steps for rule in step.rules.split() if "HOOK" in rule}


def differences(*faults: dict[str, Any]) -> dict[str, str]:
    """Return the differences of a sandbox with these webhook faults in a patient run."""
    with reference_sandbox() as reference:
        reference.control.call("PUT", "/control/faults/", {"webhooks": list(faults)})
        reference.is_patient = True
        reports = verify(reference, {}, live=False, scenes=QUICK).reports
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


@pytest.mark.prove
def test_the_sandbox_agrees_with_itself() -> None:
    """The sandbox agrees in all rules about retries."""
    with reference_sandbox() as reference:
        reference.is_patient = True
        reports = verify(reference, {}, live=False, scenes=SCENES).reports
    assert RULES | {"SET-57", "SET-58", "LIM-06"} <= {
        rule for rule, each in reports.items() if each.verdict is Verdict.AGREES
    }


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"when": {"attempt": 3}, "then": {"drop": True}}, "2 of 10 webhooks arrived"),
        ({"when": {"attempt": 6}, "then": {"drop": True}}, "5 of 10 webhooks arrived"),
        ({"when": {"attempt": 4}, "then": {"delay": "PT25S"}}, "the webhook's after is 145 s, not 120 s"),
    ],
)
def test_a_server_that_differs(fault: dict[str, Any], words: str) -> None:
    """A deviation in retries is reported with the observed behaviour."""
    found = differences(fault)
    assert words in "".join(found.values())
    assert found.keys() <= {"HOOK-11", "HOOK-12"}


def test_an_impatient_run_names_the_missing_options() -> None:
    """Without --patient, the rules about retries are not checked, and the reason names the options."""
    with reference_sandbox() as reference:
        reports = verify(reference, {}, live=False, scenes=SCENES).reports
    assert {reports[rule].reason for rule in ("HOOK-09", "HOOK-12", "SET-57", "SET-58")} == {NEEDS_PATIENCE}
