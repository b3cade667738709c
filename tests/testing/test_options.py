"""Flags and ini options of the plugin: scenarios, reviews, seeds and settings of a whole suite."""

import socket
from pathlib import Path

import pytest
from flask import Flask

from payment_sandbox.serving.server import Server
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
    """By name, from a folder of the suite; a test's own marker takes precedence."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "always-fails.yaml").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_scenarios = scenarios\n")
    marked = ONE_TEST + ONE_TEST.replace(
        "def test_it", "@pytest.mark.payment_scenario('webhook-lost')\ndef test_marked"
    )
    ran = suite(tmp_path, marked, "-s", "--payment-scenario", "always-fails")
    passed(ran, 2)
    assert "STATUS error" in ran.stdout
    assert "SCENARIO webhook-lost" in ran.stdout
    ran = suite(tmp_path, ONE_TEST, "--payment-scenario", "always-fail")
    assert "did you mean 'always-fails'" in ran.stdout


@pytest.mark.parametrize("marker", ["'own.yaml'", "Path('own.yaml')", "Path(__file__).parent / 'own.yaml'"])
def test_a_marker_takes_a_file(tmp_path: Path, marker: str) -> None:
    """Beside the test, or anywhere."""
    (tmp_path / "own.yaml").write_text(FAILING.replace("always-fails", "own"))
    code = ONE_TEST.replace("def test_it", f"@pytest.mark.payment_scenario({marker})\ndef test_it")
    ran = suite(tmp_path, "from pathlib import Path\n" + code, "-s")
    passed(ran, 1)
    assert "SCENARIO own" in ran.stdout


def test_a_wrong_file_in_a_folder_is_told_with_its_place(tmp_path: Path) -> None:
    """Once per test, without a traceback."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "own.yaml").write_text("name: own\nrules:\n  - then: {custommer: fails}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_scenarios = scenarios\n")
    ran = suite(tmp_path, ONE_TEST)
    assert "own.yaml:3:" in ran.stdout
    assert "did you mean 'customer'" in ran.stdout
    assert "During handling" not in ran.stdout


def test_shared_projects_have_no_sequences(tmp_path: Path) -> None:
    """A test that would run five times in the same one is refused."""
    code = "@pytest.mark.payment_webhook_sequences\ndef test_it(module_payment_sandbox): pass\n"
    ran = suite(tmp_path, code)
    assert "payment_webhook_sequences needs the fixture payment_sandbox" in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "marker",
    [
        "payment_review(mood='error')",
        "payment_review('loud')",
        "payment_review()",
        "payment_review('error', expect=['CAP-99'])",
        "payment_review('error', expect='CAP-04')",
        "payment_intercept(urls=['x'])",
        "payment_intercept(['x'])",
    ],
)
def test_a_marker_that_would_do_nothing(tmp_path: Path, marker: str) -> None:
    """Is refused."""
    ran = suite(tmp_path, f"@pytest.mark.{marker}\n" + "def test_it(payment_sandbox): pass\n")
    assert ran.returncode != 0
    assert marker.partition("(")[0] in ran.stdout
    assert "UsageError" in ran.stdout


def test_a_wrong_file_is_told_with_its_place(tmp_path: Path) -> None:
    """And a missing one with where it was looked for."""
    (tmp_path / "own.yaml").write_text("name: own\nrules:\n  - then: {custommer: fails}\n")
    code = ONE_TEST.replace("def test_it", "@pytest.mark.payment_scenario('own.yaml')\ndef test_it")
    ran = suite(tmp_path, code)
    assert "own.yaml:3:" in ran.stdout
    assert "did you mean 'customer'" in ran.stdout
    ran = suite(tmp_path, code.replace("own.yaml", "other.yaml"))
    assert "payment_scenario: there is no file other.yaml in the current folder or in" in ran.stdout


CARELESS = """
def careless(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    order = place(payment_sandbox, custommer=1)
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


def test_mistakes_that_are_meant(tmp_path: Path) -> None:
    """Do not count; all others do."""
    code = """
@pytest.mark.payment_review("error", expect=["HOOK-08", "SET-12"])
def test_meant(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)

@pytest.mark.payment_review(expect=["HOOK-08"])
def test_meant_in_part(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)
"""
    careless = CARELESS.partition("def test_careless")[0]
    ran = suite(tmp_path, careless + code, "--payment-review=error")
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout
    assert "the review found a mistake in the integration:" in ran.stdout


def test_a_failure_says_what_the_sandbox_knows(tmp_path: Path) -> None:
    """Ignored fields with the closest known one, and what the review found."""
    ran = suite(tmp_path, CARELESS.replace("def test_without(): pass", FAILS))
    told = ran.stdout.partition("- payment sandbox -")[2]
    assert "ignored: custommer;nearest=customer" in told
    assert "review: HOOK-08 Your shop answered a webhook, but did not read the order" in told


FAILS = """
def test_fails(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)
    assert False
"""


def test_a_review_that_fails_tests(tmp_path: Path) -> None:
    """With full sentences, and the timeline."""
    ran = suite(tmp_path, CARELESS, "--payment-review=error")
    assert ran.returncode == 1
    assert "1 failed, 3 passed" in ran.stdout
    assert all(words in ran.stdout for words in WORDS), ran.stdout
    assert "- payment sandbox -" in ran.stdout


def test_a_review_that_warns(tmp_path: Path) -> None:
    """In the summary of warnings; also by the ini option."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_review = warn\n")
    ran = suite(tmp_path, CARELESS)
    passed(ran, 4)
    assert "1 warning" in ran.stdout
    assert all(words in ran.stdout for words in WORDS), ran.stdout
    assert "test_shop.py::test_careless: the review found" in ran.stdout


def test_no_review_by_default(tmp_path: Path) -> None:
    """It is opt-in."""
    ran = suite(tmp_path, CARELESS)
    passed(ran, 4)
    assert "warning" not in ran.stdout


def test_a_seed_for_the_same_identifiers(tmp_path: Path) -> None:
    """In each run, whatever tests ran before."""
    found = set()
    for number in (5, 5, 6):
        ran = suite(tmp_path, ONE_TEST, "-s", "--payment-seed", str(number))
        passed(ran, 1)
        found.add(ran.stdout.partition("STATUS")[2].split()[1])
    assert len(found) == 2
    two = ONE_TEST + ONE_TEST.replace("def test_it", "def test_other")
    ran = suite(tmp_path, two, "-s", "--payment-seed", "5")
    passed(ran, 2)
    ids = [part.split()[1] for part in ran.stdout.split("STATUS")[1:]]
    assert len(set(ids)) == 2, "no two tests of a run have the same"


def test_settings_of_every_project(tmp_path: Path) -> None:
    """From the ini file; a marker takes precedence."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npayment_settings =\n    mode = live\n    cards_approved = false\n    name = the suite's\n"
    )
    code = ONE_TEST.replace("def test_it", "@pytest.mark.payment_settings(name='mine')\ndef test_it")
    ran = suite(tmp_path, code, "-s")
    passed(ran, 1)
    assert "'mode': 'live'" in ran.stdout
    assert "'cards_approved': False" in ran.stdout
    assert "'name': 'mine'" in ran.stdout


WRONG = {
    "payment_settings = mode": "payment_settings takes lines such as mode = live, not 'mode'",
    "payment_settings = mood = live": "mood is not a known key",
    "payment_scenarios = nowhere": "payment_scenarios: the folder ",
    "payment_seed = one": "payment_seed takes a number, not 'one'",
    "payment_review = loud": "payment_review must be off, warn or error, not 'loud'",
    "payment_scenario = none.yaml": "payment_scenario: there is no file none.yaml",
    "payment_intercept = provider.example": "with its scheme, such as https://api.provider.example",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_option_is_told(tmp_path: Path, line: str) -> None:
    """By its name, and with what it takes."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{line}\n")
    ran = suite(tmp_path, ONE_TEST)
    assert ran.returncode != 0
    assert WRONG[line] in ran.stdout + ran.stderr


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
    return port


def test_a_dead_sandbox_is_told_in_a_sentence(tmp_path: Path) -> None:
    """And one whose address has no scheme; without a traceback."""
    port = free_port()
    ran = suite(tmp_path, ONE_TEST, SANDBOX_URL=f"http://127.0.0.1:{port}")
    told = (
        f"no sandbox answers at SANDBOX_URL http://127.0.0.1:{port} (connection refused: no server listens on "
        f"127.0.0.1:{port}); start one with payment-sandbox serve, or unset SANDBOX_URL"
    )
    assert told in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "plugin.py" not in ran.stdout
    ran = suite(tmp_path, ONE_TEST, SANDBOX_URL=f"127.0.0.1:{port}")
    assert f"SANDBOX_URL is '127.0.0.1:{port}', without a scheme: use http://127.0.0.1:{port}" in ran.stdout


def test_another_server_is_no_sandbox(tmp_path: Path) -> None:
    """It is told as such."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, Flask("other"))
    import threading

    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    ran = suite(tmp_path, ONE_TEST, SANDBOX_URL=url)
    server.shutdown()
    thread.join()
    server.server_close()
    assert f"the server at SANDBOX_URL {url} is not a payment sandbox" in ran.stdout


SHARED = """
@pytest.fixture(scope="module")
def sold(module_payment_sandbox):
    return place(module_payment_sandbox)["id"]

def test_first(module_payment_sandbox, sold):
    module_payment_sandbox.act(sold)

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
    """Of a class, a module and a session; a failure shows the shared one's timeline."""
    ran = suite(tmp_path, SHARED)
    assert "1 failed, 4 passed" in ran.stdout
    assert "- payment sandbox -" in ran.stdout


def test_the_server_of_a_suite_is_shared_with_others(tmp_path: Path, server: Server) -> None:
    """Settings of the suite hold on a running server, too."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_settings = mode = live\n")
    ran = suite(tmp_path, ONE_TEST, "-s", SANDBOX_URL=server.url)
    passed(ran, 1)
    assert "'mode': 'live'" in ran.stdout
