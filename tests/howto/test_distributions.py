"""Each distribution works without the others, and names the package to install if one is missing."""

import json
import re
import shutil
import subprocess
import tarfile
from importlib.metadata import requires
from pathlib import Path

import pytest

from payment_sandbox.version import __version__
from tests.dist import distributions
from tests.requirements import PROJECTS, declared, name_of
from tests.support.blocks import Block
from tests.support.documentation import of, run_command
from tests.support.environments import environment_with, made_once
from tests.support.packages import ROOT, WINGS
from tests.support.samples import of_the_day

MODULES = {
    "markdown-it-py": "markdown_it",
    "mdit-py-plugins": "mdit_py_plugins",
}
SERVER = declared(ROOT)["project"]["optional-dependencies"]["server"]
EXTRAS = [name_of(each) for each in SERVER] + ["trustme"]
NEEDED_BY_SUITES = {"jinja2"}  # by the Flask of the examples
ENGINE = ("kernel", "orders", "forms", "projects", "journeys")


def test_all_have_one_version() -> None:
    """All distributions have one version, and require it of the sandbox, whose internals they share."""
    for folder in PROJECTS[1:]:
        project = declared(folder)["project"]
        assert project["version"] == __version__
        requirements = [each for each in project["dependencies"] if name_of(each) == "payment-sandbox"]
        assert [each.partition("==")[2] for each in requirements] == [__version__]
    for file in ("node/package.json", "php/composer.json"):
        assert json.loads((ROOT / "sandbox" / file).read_text())["version"] == __version__


@pytest.fixture(scope="module")
def base(shared: Path, wheels: list[Path]) -> Path:
    """The programs of an environment with the sandbox, the pytest plugin, and their requirements."""
    names = ("payment_sandbox", "pytest_payment_sandbox")
    ours = [wheel for wheel in wheels if wheel.name.partition("-")[0] in names]
    without = {MODULES.get(each, each) for each in EXTRAS if each not in NEEDED_BY_SUITES}
    return made_once(shared / "base", lambda folder: environment_with(ours, folder, without)) / "bin"


def run(base: Path, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment."""
    return run_command(["bash", "-euc", command], folder, PATH=f"{base}:/usr/bin:/bin", PYTHONPATH="")


@pytest.mark.prove
@pytest.mark.parametrize("block", of("python", "pytest"))
def test_the_pytest_page_needs_the_plugin_only(base: Path, block: Block, tmp_path: Path) -> None:
    """Every example on the pytest page passes with the plugin only."""
    (tmp_path / "test_pasted.py").write_text(block.text)
    result = run(base, "python -m pytest -q -p no:cacheprovider", tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]


@pytest.mark.prove
@pytest.mark.parametrize(
    ("command", "distribution"),
    [
        ("serve --port 0", "payment-sandbox[server]"),
    ],
)
def test_a_command_says_what_it_needs(base: Path, command: str, distribution: str, tmp_path: Path) -> None:
    """A command prints one line with the installation that it needs."""
    result = run(base, f"payment-sandbox {command}", tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.endswith(f"pip install '{distribution}'")


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


def run_tests(programs: Path, folder: Path, folders: list[str], *options: str, path: str) -> None:
    """Run each test of some folders once with the programs of an environment."""
    (folder / "first_cases.py").write_text(FIRST_CASES)
    options = ("-n", "2", "-p", "first_cases", *options)
    command = [str(programs / "python"), "-m", "pytest", "-q", *options, *folders]
    result = run_command(command, folder, 800, PYTHONPATH=path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]


def test_the_tests_of_the_engine_import_no_other_distribution() -> None:
    """The tests that the sdist of the engine must pass import only the engine, at most in a function."""
    modules = [path for room in ENGINE for path in (ROOT / "tests" / room).rglob("*.py")]
    wings = {wing.name for wing in WINGS}
    texts = [
        path.read_text(encoding="utf-8") for path in (*modules, *(ROOT / "tests" / "support").rglob("*.py"))
    ]
    imported = {name for text in texts for name in re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)}
    assert imported & wings == set()


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_the_sdist_of_the_engine_passes_its_tests(tmp_path: Path) -> None:
    """The sdist contains what its tests need, without the other distributions."""
    (sdist,) = (path for path in distributions(tmp_path / "built", [ROOT]) if path.suffix == ".gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / sdist.name.removesuffix(".tar.gz")
    wings = [wing.name for wing in WINGS]
    assert not [name for name in wings if (folder / "sandbox" / name).exists()]
    programs = environment_with([], tmp_path / "environment", wings)
    journeys = [f"tests/journeys/{path.name}" for path in (folder / "tests" / "journeys").glob("test_*.py")]
    tests = [*(f"tests/{room}" for room in ENGINE[:-1]), *of_the_day(journeys, 5)]  # the wheels pass them all
    run_tests(programs, folder, tests, "-p", "no:payment-sandbox", path=f"{folder / 'sandbox'}:{folder}")


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_the_journeys_pass_with_the_wheels(installed: Path, tmp_path: Path) -> None:
    """The journeys pass with the wheels of all distributions, and without their source."""
    for name in ("tests", "scenarios"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    run_tests(installed, tmp_path, ["tests/journeys", "tests/client"], path=str(tmp_path))


def test_the_plugin_adds_few_packages() -> None:
    """The plugin adds at most four packages to those of a shop's suite."""
    suite = {"flask", "werkzeug", "marshmallow", "requests", "urllib3", "idna", "click", "pytest"}
    folders = (ROOT, ROOT / "sandbox" / "pytest_payment_sandbox")
    added = {name_of(each) for folder in folders for each in declared(folder)["project"]["dependencies"]}
    indirect = {
        name_of(requirement)
        for each in added - suite - {"payment-sandbox"}
        for requirement in requires(each) or []
        if "extra ==" not in requirement
    }
    assert len({"pytest-payment-sandbox", "payment-sandbox", *(added - suite), *(indirect - suite)}) <= 4
