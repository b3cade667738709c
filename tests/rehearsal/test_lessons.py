"""Every finding names its risk, and links to wrong and correct code."""

import re

import pytest
import requests

from payment_sandbox.judge.lessons import LESSONS, MISTAKES_PAGE
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.driver import Sandbox

RULE = re.compile(r"[A-Z]{3,4}-\d\d")


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
