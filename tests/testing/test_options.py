"""Flags and ini options of the plugin: scenarios, reviews, seeds and settings of a whole suite."""

import re
from pathlib import Path

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.ports import free_port
from tests.support.suites import passed, suite

ONE_TEST = """
def test_it(payment_sandbox):
    order = place(payment_sandbox)
    payment_sandbox.clock.advance("PT20S")
    print("STATUS", payment_sandbox.client.order(order["id"])["status"], order["id"])
    print("SCENARIO", payment_sandbox.client.project()["scenario"])
    print("SETTINGS", payment_sandbox.client.project()["settings"])
"""
FAILING = """
name: always-fails
rules:
  - then: {customer: fails, after: PT10S}
"""


def test_a_scenario_for_the_whole_suite(tmp_path: Path) -> None:
    """A scenario of the suite is selected by name; a marker takes precedence."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "always-fails.yaml").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npayment_scenarios = scenarios\npayment_gc_freeze = false\n"
    )
    marked = ONE_TEST.replace("def test_it", "@pytest.mark.payment_scenario('webhook-lost')\ndef test_marked")
    frozen = "\ndef test_nothing_is_frozen(payment_sandbox):\n    assert gc.get_freeze_count() == 0\n"
    code = f"import gc\n{ONE_TEST}{marked}{frozen}"
    result = suite(tmp_path, code, "-s", "--payment-scenario", "always-fails")
    passed(result, 3)
    assert "STATUS error" in result.stdout
    assert "SCENARIO webhook-lost" in result.stdout


CARELESS = """
def careless(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    order = place(payment_sandbox, custommer={})
    payment_sandbox.act(order["id"])
    payment_sandbox.client.wait(idle=True)

def test_careless(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)

@pytest.mark.payment_review("off")
def test_of_the_sandbox_itself(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)

def test_careful(payment_sandbox, shop):
    payment_sandbox.act(place(payment_sandbox)["id"])

def test_without(): pass
"""
WORDS = (
    "the review found 2 mistakes in the integration:",
    "HOOK-08: Your shop answered a webhook, but did not read the order (order ",
    "  A webhook carries no status: GET the order before you fulfil it.",
    "The service does not know the key 'custommer' and ignored it; did you mean 'customer'?",
)


def test_expected_findings_do_not_count(tmp_path: Path) -> None:
    """Expected findings of the review do not fail a test, but others do; a closed project has none."""
    code = """
@pytest.mark.payment_review("error", expect=["HOOK-08", "SET-12"])
def test_meant(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)

@pytest.mark.payment_review(expect=["HOOK-08"])
def test_meant_in_part(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)

def test_closes(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)
    payment_sandbox.close()
"""
    careless = CARELESS.partition("def test_careless")[0]
    result = suite(tmp_path, careless + code, "--payment-review=error")
    assert "1 failed, 2 passed" in result.stdout, result.stdout
    assert "the review found a mistake in the integration:" in result.stdout


VARIABLE = "PAYMENT_SANDBOX_REVIEW"
MODES = [
    # the ini option, the command line, the variable, and the mode
    pytest.param("", "", "", "warn", id="the review warns by default"),
    pytest.param("", "error", "", "error", id="the command line lets it fail tests"),
    pytest.param("warn", "", "error", "error", id="the variable overrides the ini option"),
    pytest.param("warn", "off", "error", "off", id="the command line overrides the variable"),
]
SUMMARIES = {"warn": "4 passed, 1 warning", "error": "1 failed, 3 passed", "off": "4 passed in"}


@pytest.mark.parametrize(("ini", "option", "variable", "mode"), MODES)
def test_the_mode_of_the_review(tmp_path: Path, ini: str, option: str, variable: str, mode: str) -> None:
    """The review warns, fails tests or is off; a finding has full sentences, and the report of a failure, too."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npayment_review = {ini}\n" if ini else "[pytest]\n")
    options = [f"--payment-review={option}"] if option else []
    result = suite(tmp_path, CARELESS, *options, **({VARIABLE: variable} if variable else {}))
    assert SUMMARIES[mode] in result.stdout, result.stdout
    assert result.returncode == (mode == "error")
    assert all((sentence in result.stdout) == (mode != "off") for sentence in WORDS), result.stdout
    report = result.stdout.partition("- payment sandbox -")[2]
    for line in ("ignored: custommer;nearest=customer", "review: HOOK-08 Your shop answered a webhook"):
        assert (line in report) == (mode == "error"), result.stdout
    assert ("test_shop.py::test_careless: the review found" in result.stdout) == (mode == "warn")


def test_a_seed_for_the_same_identifiers(tmp_path: Path) -> None:
    """The same seed yields the same identifiers in each run, different for each test."""
    tests, runs = ONE_TEST + ONE_TEST.replace("def test_it", "def test_other"), list[list[str]]()
    for _ in range(2):
        result = suite(tmp_path, tests, "-s", "--payment-seed", "5")
        passed(result, 2)
        runs.append([part.split()[1] for part in result.stdout.split("STATUS")[1:]])
    assert runs[0] == runs[1]
    assert len({*runs[0]}) == 2


@pytest.mark.parametrize("is_running", [False, True])
def test_settings_of_every_project(tmp_path: Path, server: Server, is_running: bool) -> None:
    """Settings of the ini file apply to every project, also on a running server; a marker takes precedence."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npayment_settings =\n    mode = live\n    cards_approved = false\n    name = the suite's\n"
    )
    code = ONE_TEST.replace("def test_it", "@pytest.mark.payment_settings(name='mine')\ndef test_it")
    result = suite(tmp_path, code, "-s", **({"SANDBOX_URL": server.url} if is_running else {}))
    passed(result, 1)
    assert "'mode': 'live'" in result.stdout
    assert "'cards_approved': False" in result.stdout
    assert "'name': 'mine'" in result.stdout


INVALID_OPTIONS = {
    "payment_settings = mode": "payment_settings takes lines such as mode = live, not 'mode'",
    "payment_scenarios = nowhere": "payment_scenarios: the folder ",
    "payment_seed = one": "payment_seed takes a number, not 'one'",
    "payment_scenario = none.yaml": "payment_scenario: there is no file none.yaml",
    "payment_intercept = provider.example": "with its scheme, such as https://api.provider.example",
}


@pytest.mark.parametrize("line", INVALID_OPTIONS)
def test_a_wrong_option_is_reported(tmp_path: Path, line: str) -> None:
    """A wrong option is reported with its name and the expected value."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{line}\n")
    result = suite(tmp_path, ONE_TEST)
    assert result.returncode != 0
    assert INVALID_OPTIONS[line] in result.stdout + result.stderr


def test_an_unreachable_sandbox_is_reported(tmp_path: Path) -> None:
    """An unreachable server is reported without a traceback."""
    port = free_port()
    result = suite(tmp_path, ONE_TEST, SANDBOX_URL=f"http://127.0.0.1:{port}")
    message = (
        f"no sandbox answers at SANDBOX_URL http://127.0.0.1:{port} (connection refused: no server listens on "
        f"127.0.0.1:{port}); start one with payment-sandbox serve, or unset SANDBOX_URL"
    )
    assert message in result.stdout
    assert "Traceback" not in result.stdout
    assert "plugin.py" not in result.stdout


SHARED = """
import gc

@pytest.fixture(scope="module")
def sold(module_payment_sandbox):
    return place(module_payment_sandbox)["id"]

def test_first(module_payment_sandbox, sold):
    module_payment_sandbox.act(sold)
    assert gc.get_freeze_count(), "collections skip what was loaded before"

def test_second(module_payment_sandbox, session_payment_sandbox, sold):
    assert module_payment_sandbox.client.order(sold)["status"] == "completed"
    assert session_payment_sandbox.client.journal() == []

@pytest.mark.payment_settings(mode="live")
class TestClass:
    def test_third(self, class_payment_sandbox):
        assert class_payment_sandbox.client.project()["settings"]["mode"] == "live"
        class_payment_sandbox.clock.advance("PT1H")

    def test_fourth(self, class_payment_sandbox, payment_sandbox):
        assert class_payment_sandbox.clock.now > payment_sandbox.clock.now

def test_fails(module_payment_sandbox, sold):
    assert False
"""


def test_projects_that_several_tests_share(tmp_path: Path) -> None:
    """Tests of a class, module or session can share a project, whose timeline a failure shows."""
    result = suite(tmp_path, SHARED)
    assert "1 failed, 4 passed" in result.stdout
    assert "- payment sandbox -" in result.stdout


FAILED_TEST = """
def test_it(payment_sandbox):
    place(payment_sandbox)
    assert False
"""


def test_a_failed_test_s_project_is_kept(tmp_path: Path, server: Server) -> None:
    """With a running server, the project stays, and its page is named; without one, the command is."""
    result = suite(tmp_path, FAILED_TEST, "--payment-open", SANDBOX_URL=server.url)
    page = re.search(r"The project of test_it, kept for a day: (\S+)", result.stdout)
    assert page is not None, result.stdout
    assert requests.get(page[1], headers={"Accept": "text/html"}).status_code == 200
    result = suite(tmp_path, FAILED_TEST, "--payment-open", SANDBOX_URL="")
    assert 'pytest --payment-open "test_shop.py::test_it"' in result.stdout
