"""The error of a command whose distribution is missing."""

import sys

import pytest

from payment_sandbox.extensions import NotInstalled


@pytest.mark.parametrize(
    ("prefix", "install"),
    [
        ("/home/me/shop/.venv", "pip install"),
        ("/home/me/.local/share/pipx/venvs/payment-sandbox", "pipx runpip payment-sandbox install"),
    ],
)
def test_a_missing_distribution_is_installed_where_the_sandbox_is(
    prefix: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipx environment, plain pip would install the distribution elsewhere."""
    monkeypatch.setattr(sys, "prefix", prefix)
    message = str(NotInstalled("payment-sandbox rehearse", "pytest-payment-sandbox"))
    assert (
        message
        == f"payment-sandbox rehearse needs pytest-payment-sandbox: {install} 'pytest-payment-sandbox'"
    )
