"""The rules that a test breaks on purpose are no findings of its rehearsal either."""

from pathlib import Path

import pytest

from tests.support.suites import suite

TRANSFER = """
@pytest.mark.payment_settings(mode="live")
{marker}
def test_a_transfer(payment_sandbox, shop):
    order = place(payment_sandbox, transactions=[{{"payment_method": "bank-transfer"}}])
    payment_sandbox.act(order["id"], "bank", "credit")
"""


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        ("", 1),
        ('@pytest.mark.payment_review(expect=["CAP-04"])', 1),
        ('@pytest.mark.payment_review(expect=["HOOK-13"])', 0),
    ],
)
def test_an_expected_rule_is_no_finding(marker: str, code: int, tmp_path: Path) -> None:
    """A customer transfers too much, and nobody gives the rest back."""
    ran = suite(tmp_path, TRANSFER.format(marker=marker), "--payment-rehearse-only=action:1:surplus")
    assert ran.returncode == code, ran.stdout
    assert ("and nobody returned €1.00" in ran.stdout) == bool(code), ran.stdout
