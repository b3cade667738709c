"""What a command says if its distribution is missing."""

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
    """Pip alone would put it beside an environment of pipx."""
    monkeypatch.setattr(sys, "prefix", prefix)
    said = str(NotInstalled("payment-sandbox rehearse", "pytest-payment-sandbox"))
    assert (
        said == f"payment-sandbox rehearse needs pytest-payment-sandbox: {install} 'pytest-payment-sandbox'"
    )
