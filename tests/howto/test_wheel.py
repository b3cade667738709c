"""The built wheel contains all that a merchant needs; the checkout is not used."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from payment_sandbox.scenarios.catalogue import scenario_files
from payment_sandbox.ui.docs.library import PAGE_NAMES
from tests.support.documentation import ROOT, run_command
from tests.support.packages import PACKAGES

pytestmark = pytest.mark.prove


def run(installed: Path, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the new environment."""
    return run_command(["bash", "-euc", command], folder, PATH=f"{installed}:/usr/bin:/bin", PYTHONPATH="")


def test_the_wheel_holds_all_that_is_read_at_run_time(wheel: Path) -> None:
    """It contains scenarios, pages, phrases, the ledger and the documentation, but no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    read = {
        path.relative_to(ROOT / "sandbox")
        for package in PACKAGES
        for path in package.rglob("*")
        if path.is_file()
    }
    expected = {str(path) for path in read if "__pycache__" not in path.parts}
    expected |= {
        f"payment_sandbox/scenarios/ready/{path.name}" for path in scenario_files(ROOT / "scenarios")
    }
    assert expected - names == set()
    assert {name for name in names if name.startswith("tests")} == set()
    assert {f"payment_sandbox/ui/docs/pages/{name}.md" for name in PAGE_NAMES} <= names
    assert "payment_sandbox/fidelity/proofs.tsv" in names, "the build creates it from the marks of the tests"


def test_its_package_is_imported(installed: Path, tmp_path: Path) -> None:
    """The other tests in this file import the package from the wheel."""
    result = run(installed, "python -c 'import payment_sandbox; print(payment_sandbox.__file__)'", tmp_path)
    assert Path(result.stdout.strip()).is_relative_to(installed.parent), result.stdout + result.stderr


OWN_SANDBOX = {
    "sandbox/__init__.py": "",
    "sandbox/shop.py": "BASKET_CENTS = 1295\n",
    "tests/test_shop.py": """
from sandbox.shop import BASKET_CENTS


def test_a_project_with_a_package_of_that_name(payment_sandbox):
    order = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/", json={"currency": "EUR", "amount": BASKET_CENTS}
    )
    assert order.json()["amount"] == BASKET_CENTS
""",
}


def test_a_project_may_have_a_package_called_sandbox(installed: Path, tmp_path: Path) -> None:
    """The project's suite imports its own package, not the wheel's."""
    for name, text in OWN_SANDBOX.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = run(installed, "python -m pytest -q -p no:cacheprovider", tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
