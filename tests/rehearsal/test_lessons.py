"""Every finding names its risk, and links to wrong and correct code."""

import re
from pathlib import Path

import pytest
import requests

import payment_sandbox
from payment_sandbox.judge.lessons import LESSONS, MISTAKES_PAGE
from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal import judging as judging_module
from pytest_payment_sandbox.rehearsal.leaks import LEAK_KIND
from pytest_payment_sandbox.rehearsal.reconciliation import CHECKS
from tests.support.driver import Sandbox

RULE = re.compile(r"[A-Z]{3,4}-\d\d")


def test_every_problem_of_a_rehearsal_has_a_lesson() -> None:
    """Each kind of problem has a lesson, except for the user's own checks and unfinished runs."""
    judging = "".join(path.read_text() for path in Path(judging_module.__file__).parent.glob("*.py"))
    kinds = {*CHECKS, LEAK_KIND, *re.findall(r'Problem\(\s*"([a-z-]+)"', judging)}
    assert kinds - {"test", "invariant", "not-judged"} <= LESSONS.keys()


def test_every_finding_of_the_review_has_a_lesson() -> None:
    """The rule of each check has a lesson, except for hints."""
    folder = Path(payment_sandbox.__file__).parent / "judge"
    checks = "".join(path.read_text() for path in folder.glob("*_checks.py"))
    named = {rule for call in re.findall(r"Finding\(\s*([^,]+),", checks) for rule in re.findall(RULE, call)}
    assert named >= {"HOOK-03", "ORD-07", "FLOW-09"}
    assert named - LESSONS.keys() == {"SCN-02", "SET-01", "SET-03"}


def test_every_lesson_is_on_the_page(sandbox: Sandbox) -> None:
    """The page shows every lesson with its risk."""
    html = requests.get(f"{sandbox.url}{MISTAKES_PAGE}", timeout=60).text
    plain = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    for lesson in LESSONS.values():
        assert f'id="{lesson.section}"' in html, lesson
        assert all(part.strip() in plain.lower() for part in lesson.risk.lower().split(",")), lesson


@pytest.mark.rule("HOOK-08")
def test_a_finding_tells_its_lesson(payment_sandbox: PaymentSandbox) -> None:
    """The text of a finding has its risk and a link to its lesson."""
    order = {"currency": "EUR", "amount": 5, "descripton": "Hat"}

    def shop_creates() -> None:
        payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=order)

    shop_creates()
    (finding,) = payment_sandbox.review()
    assert finding.page == "/docs/mistakes/#say-it-as-the-service-does"
    assert "never arrives. See payment-sandbox docs mistakes#say-it-as-the-service-does" in str(finding)
