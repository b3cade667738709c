"""The built wheel contains all that a merchant needs, and names the extra to install if something is missing."""

import json
import shutil
import subprocess
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest

from payment_sandbox.scenarios.catalogue import scenario_files
from payment_sandbox.ui.docs.library import PAGE_NAMES
from payment_sandbox.version import __version__
from tests.howto.environments import environment_with
from tests.requirements import declared, name_of
from tests.support.blocks import Block
from tests.support.documentation import of, run_command
from tests.support.environments import made_once
from tests.support.packages import PACKAGES, ROOT

MODULES = {
    "markdown-it-py": "markdown_it",
    "mdit-py-plugins": "mdit_py_plugins",
}
SERVER = declared()["project"]["optional-dependencies"]["server"]
EXTRAS = [name_of(each) for each in SERVER] + ["trustme"]
NEEDED_BY_SUITES = {"jinja2"}  # by the Flask of the examples


def test_all_have_one_version() -> None:
    """The packages for Node and PHP have the version of the wheel."""
    for file in ("node/package.json", "php/composer.json"):
        assert json.loads((ROOT / "sandbox" / file).read_text())["version"] == __version__


@pytest.fixture(scope="module")
def base(shared: Path, wheel: Path) -> Path:
    """The programs of an environment with the wheel and its requirements, without those of the extras."""
    without = {MODULES.get(each, each) for each in EXTRAS if each not in NEEDED_BY_SUITES}
    return made_once(shared / "base", lambda folder: environment_with(folder, wheel, without)) / "bin"


def run(base: Path, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment."""
    return run_command(["bash", "-euc", command], folder, PATH=f"{base}:/usr/bin:/bin", PYTHONPATH="")


@pytest.mark.prove
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
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {package.name for package in PACKAGES}, "a shop may have packages called sandbox and tests"
    assert {f"payment_sandbox/ui/docs/pages/{name}.md" for name in PAGE_NAMES} <= names
    assert "payment_sandbox/fidelity/proofs.tsv" in names, "the build creates it from the marks of the tests"


@pytest.mark.prove
@pytest.mark.parametrize("block", of("python", "pytest"))
def test_the_pytest_page_needs_no_extra(base: Path, block: Block, tmp_path: Path) -> None:
    """Every example on the pytest page passes without the extras."""
    (tmp_path / "test_pasted.py").write_text(block.text)
    result = run(base, "python -m pytest -q -p no:cacheprovider", tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]


@pytest.mark.prove
def test_a_command_says_what_it_needs(base: Path, tmp_path: Path) -> None:
    """A command prints one line with the installation that it needs."""
    result = run(base, "payment-sandbox serve --port 0", tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.endswith("pip install 'payment-sandbox[server]'")


@pytest.mark.prove
def test_the_plugin_is_inert_without_pytest(wheel: Path, tmp_path: Path) -> None:
    """The program and the package work without pytest, which the wheel does not require."""
    programs = environment_with(tmp_path / "environment", wheel, {"pytest"})
    served = "python -c 'from payment_sandbox import PaymentSandboxServer as S; S().stop(); print(1)'"
    result = run(programs, f"payment-sandbox --version; {served}", tmp_path)
    assert result.stdout.splitlines() == [f"payment-sandbox, version {__version__}", "1"], result.stderr
    assert not [each for each in requires("payment-sandbox") or () if name_of(each) == "pytest"]


IN_PROCESS = """
import pytest
import requests
from payment_sandbox import Reset, Truncate

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_pages(payment_sandbox):
    session, url = payment_sandbox.session, payment_sandbox.base_url
    order = session.post(f"{url}/v1/orders/", json=ORDER).json()
    pages = [url.split("/pay/")[1] for url in (order["order_url"], order["transactions"][0]["payment_url"])]
    assert session.get(f"{url}/openapi.json").json()["openapi"] == "3.1.0"
    for path in ("/docs/", *(f"/pay/{page}" for page in pages)):
        answer = session.get(f"{url}{path}")
        assert answer.status_code == 501, path
        assert "pip install 'payment-sandbox[server]'" in answer.text, path
    assert "opens the payment page" not in payment_sandbox.timeline()
    assert payment_sandbox.client.order(order["id"])["status"] == "new"
    assert session.get(f"{url}/v1/nothing/").status_code == 404


def test_a_socket(payment_sandbox):
    url, auth = f"{payment_sandbox.base_url}/v1/orders/", (payment_sandbox.api_key, "")
    order = requests.post(url, json=ORDER, auth=auth).json()
    payment_sandbox.act(order["id"])
    assert requests.get(f"{url}{order['id']}/", auth=auth).json()["status"] == "completed"
    for effect in (Reset(), Truncate()):
        payment_sandbox.client.faults([effect])
        with pytest.raises(requests.RequestException):
            requests.post(url, json=ORDER, auth=auth, timeout=20).json()
"""


@pytest.mark.prove
def test_pages_say_what_they_need_and_sockets_work(base: Path, tmp_path: Path) -> None:
    """The APIs and their faults work in process and over sockets; pages name the missing extra."""
    (tmp_path / "test_base.py").write_text(IN_PROCESS)
    result = run(base, "python -m pytest -q -p no:cacheprovider", tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]


FIRST_CASES = """
def pytest_collection_modifyitems(items):
    items[:] = {item.nodeid.partition("[")[0]: item for item in reversed(items)}.values()
"""
"""A plugin that selects one case of each test."""


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_the_journeys_pass_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    """One case of each journey passes with the wheel, and without its source."""
    for name in ("tests", "scenarios"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "first_cases.py").write_text(FIRST_CASES)
    options = ("-q", "-n", "2", "-p", "first_cases", "tests/journeys", "tests/client")
    command = [str(installed / "python"), "-m", "pytest", *options]
    result = run_command(command, tmp_path, 800, PYTHONPATH=str(tmp_path))
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
