"""The worked example is worth copying: it runs outside this project, and its tests find common mistakes."""

import shutil
from pathlib import Path

import pytest

from tests.support.documentation import SHOP, run_command

MISTAKES = {
    "trusts the webhook": ("shop.py", "if payment.is_paid:", "if True:"),
    "handles the same status twice": (
        "shop.py",
        "            if sale.paid_with is None:",
        "            if True:",
    ),
    "trusts the customer's return": ("shop.py", 'if sale.status == "open":', "if False:"),
    "captures the money at once": ("shop.py", '"capture_mode": "manual", ', ""),
    "authorizes for too short a time": ("shop.py", 'AUTHORIZED_FOR = "P14D"', 'AUTHORIZED_FOR = "P1D"'),
    "gives each attempt the same number": ("shop.py", "{sale.number}-{sale.attempt_count}", "{sale.number}"),
    "ships after a refused capture": (
        "shop.py",
        'f"Parcel of {number}")\n        except PaymentRefused as refused:\n'
        "            return jsonify(problem=str(refused)), 409",
        'f"Parcel of {number}")\n        except PaymentRefused:\n            pass',
    ),
    "returns an error to webhooks": ("shop.py", 'return "", 204', 'return "", 500'),
    "retries a lost creation": (
        "payments.py",
        'return self._call("POST", "/v1/orders/", order)',
        'try:\n            return self._call("POST", "/v1/orders/", order)\n'
        "        except PaymentServiceDown:\n"
        '            return self._call("POST", "/v1/orders/", order)',
    ),
    "does not treat an authorization as paid": ("payments.py", '("completed", "accepted")', '("accepted",)'),
}

FAST = "trusts the webhook"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the shop in a merchant's folder."""
    shutil.copytree(SHOP, tmp_path / "sock_shop", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_it_runs_where_it_is_copied_to(copied: Path) -> None:
    """It needs only the installed package."""
    result = run_command(["pytest", "-q", "-p", "no:cacheprovider"], copied)
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.parametrize(
    "mistake",
    [name if name == FAST else pytest.param(name, marks=pytest.mark.prove) for name in MISTAKES],
)
def test_its_tests_find_every_mistake(copied: Path, mistake: str) -> None:
    """Each mistake is a change in one place, as in real shops."""
    file, right, wrong = MISTAKES[mistake]
    path = copied / "sock_shop" / file
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    result = run_command(["pytest", "-q", "-x", "-p", "no:cacheprovider"], copied)
    assert result.returncode == 1, result.stdout[-3000:]
    assert "payment sandbox" in result.stdout, "the report ends with the timeline"
