"""The rehearsal of a merchant's suite repeats each test with one change at a time."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from pytest_payment_sandbox.rehearsing import create_progress
from tests.rehearsal.running import assert_reproduced, run_suite
from tests.support.suites import SHOP, suite

BOOKS = """
from threading import Lock

from payment_sandbox import BookEntry


def create_shop(payment_sandbox):
    app = Flask("shop")
    lock = Lock()
    app.paid, app.open_orders, app.mails = {}, set(), []

    def call(method, path, body=None):
        url = payment_sandbox.base_url + path
        answer = payment_sandbox.session.request(method, url, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json()

    @app.post("/buy")
    def buy():
        order_id = call("POST", "/v1/orders/", ORDER)["id"]
        app.paid[order_id] = 0
        app.open_orders.add(order_id)
        return order_id

    @app.post("/cancel/<order_id>")
    def cancel(order_id):
        with lock:
            call("DELETE", f"/v1/orders/{order_id}/")
        return ""

    @app.post("/webhook")
    def webhook():
        with lock:
            look(request.json["order_id"])
        return "", 204

    def look(order_id):
        is_news = not app.paid.get(order_id)
        status = call("GET", f"/v1/orders/{order_id}/")["status"]
        if status == "completed":
            app.paid[order_id] = 1295
            if is_news:
                app.mails.append(order_id)
        if status in ("completed", "expired", "cancelled", "error"):
            app.open_orders.discard(order_id)

    def look_at_open_orders():
        for order_id in sorted(app.open_orders):
            look(order_id)

    payment_sandbox.deliver_to(app)
    payment_sandbox.every("PT1H", look_at_open_orders)
    return app


@pytest.fixture
def shop(payment_sandbox):
    return create_shop(payment_sandbox)


@pytest.fixture
def payment_books(shop):
    def entries():
        assert len(shop.mails) == len(set(shop.mails)), "a mail was sent twice"
        return [BookEntry(order_id, [order_id], 1295, paid) for order_id, paid in shop.paid.items()]

    return entries


def bought(payment_sandbox, shop):
    order_id = shop.test_client().post("/buy").text
    payment_sandbox.act(order_id)
    assert shop.paid[order_id]
    return order_id
"""
WITH_REPORT = ("--payment-rehearse", "--payment-rehearse-report=all.json")
A_SALE = """
def test_a_sale(payment_sandbox, shop):
    bought(payment_sandbox, shop)
"""
UNLOCKED = BOOKS.replace("from threading import Lock", "from contextlib import nullcontext as Lock")
"""A shop that sends a mail for each of two webhooks at the same moment."""


def rehearse_suite(tmp_path: Path, tests: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Rehearse a suite; return the exit code, the report of its first test, and the output."""
    (tmp_path / "test_shop.py").write_text(SHOP + tests)
    result = run_suite(tmp_path, "--payment-rehearse", *options)
    assert (tmp_path / "report.json").exists(), result.text[-3000:]
    return result.code, result.tests[0] if result.tests else {}, result.text


def rehearse_until(
    is_enough: Callable[[dict[str, Any]], object], tmp_path: Path, tests: str, *options: str
) -> tuple[int, dict[str, Any], str]:
    """Rehearse with a larger budget if the machine is busy and the smaller one was not enough."""
    for budget in ("2s", "20s", "60s"):
        rehearsal = rehearse_suite(tmp_path, tests, f"--payment-rehearse-budget={budget}", *options)
        if is_enough(rehearsal[1]):
            break
    return rehearsal


def test_a_correct_shop_passes(tmp_path: Path) -> None:
    """A correct shop has no findings in more than ten variations."""
    code, report, output = rehearse_until(lambda report: report["variations"] > 10, tmp_path, BOOKS + A_SALE)
    assert (code, report["findings"]) == (0, []), output[-3000:]
    assert report["variations"] > 10
    assert f"1 test rehearsed in {report['variations']} variations" in output


WITHOUT_WEBHOOK = """
MARKER
def test_without_a_webhook(payment_sandbox):
    payment_sandbox.act(place(payment_sandbox)["id"])
"""


@pytest.mark.parametrize(
    ("marker", "option", "is_finding"),
    [
        pytest.param("", "error", True, id="a finding that fails a plain run fails its rehearsal"),
        pytest.param("", "off", False, id="no other finding of the review does"),
        pytest.param('payment_review(expect=["HOOK-03"])', "error", False, id="an expected mistake does not"),
    ],
)
def test_a_review_holds_in_a_rehearsal(tmp_path: Path, marker: str, option: str, is_finding: bool) -> None:
    """A finding of the unchanged test fails it, and its command reproduces it in the folder of the run."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "shop").mkdir()
    tests = WITHOUT_WEBHOOK.replace("MARKER", f"@pytest.mark.{marker}" if marker else "")
    options = ("--payment-review", option, "--payment-rehearse-only=action:1:fails")
    code, report, output = rehearse_suite(tmp_path / "shop", tests, *options)
    unsent = [each for each in report["findings"] if "sent no webhook" in each["sentence"]]
    assert (code, bool(unsent)) == (int(is_finding), is_finding), output[-3000:]
    if is_finding:
        assert unsent[0]["variation"] == "unchanged"
        assert_reproduced(unsent, tmp_path / "shop")


def test_a_finding_fails_the_test_and_can_be_reproduced(tmp_path: Path) -> None:
    """A finding names the variation, its effect, and the command that reproduces it."""
    code, report, output = rehearse_until(lambda report: report["findings"], tmp_path, UNLOCKED + A_SALE)
    (finding,) = report["findings"]
    assert (code, finding["variation"]) == (1, "webhook:1:together")
    sentence = "the webhook of 'processing' arrived twice at the same moment: a mail was sent twice"
    assert finding["sentence"] == sentence
    assert sentence in output
    assert 'test_shop.py::test_a_sale" --payment-rehearse-only="webhook:1:together"' in output
    assert "is completed" in finding["timeline"]
    assert f">>> {sentence.partition(': ')[0]}" in finding["timeline"].splitlines()
    row = f"  a mail was sent twice | {sentence.partition(': ')[0]} | {finding['again']}"
    assert row in output.splitlines(), "the summary has a row for the finding"
    assert_reproduced([finding], tmp_path)
    other = suite(tmp_path, UNLOCKED + A_SALE, "--payment-rehearse-only=webhook:1:twice")
    assert other.returncode == 0, other.stdout[-2000:]


@pytest.mark.prove
def test_two_runs_are_the_same(tmp_path: Path) -> None:
    """Two rehearsals of a shop without races try the same variations in the same order."""
    (tmp_path / "conftest.py").write_text("""
from pytest_payment_sandbox.rehearsal.changes import variation_name
from pytest_payment_sandbox import rehearsing


class TracedRun(rehearsing.ItemRun):
    def __init__(self, item, variation=(), **more):
        super().__init__(item, variation, **more)
        print("TRIED", variation_name(variation))


rehearsing.ItemRun = TracedRun
""")
    tried = []
    for _ in range(2):
        _, _, output = rehearse_until(lambda report: report["variations"] > 4, tmp_path, BOOKS + A_SALE, "-s")
        tried.append([line for line in output.splitlines() if line.startswith("TRIED")])
    count = min(map(len, tried))
    assert count > 3
    assert tried[0][:count] == tried[1][:count]


def test_the_budget_ends_a_rehearsal(tmp_path: Path) -> None:
    """The report counts the variations that did not fit into the budget."""
    code, report, output = rehearse_suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-budget=0.2s")
    assert (code, report["left"] > 0) == (0, True)
    assert f"no time for {report['left']} more (increase --payment-rehearse-budget)" in output


def test_no_blank_line_precedes_a_line_of_progress(pytestconfig: pytest.Config) -> None:
    """A line of progress follows the name of the current file directly."""
    output = StringIO()
    reporter = TerminalReporter(pytestconfig, output)
    reporter.write_fspath_result("test_shop.py::test_a_sale", "")
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=lambda name: reporter))
    create_progress(config).write_line("1 variation tried")
    assert output.getvalue().splitlines()[-2:] == ["test_shop.py ", "payment rehearsal: 1 variation tried"]


def test_a_rehearsal_cleans_up(tmp_path: Path) -> None:
    """After a rehearsal, no project and no thread remains."""
    (tmp_path / "conftest.py").write_text("""
import threading

import pytest


@pytest.fixture(scope="session", autouse=True)
def print_remaining(payment_sandbox_server):
    before = {thread.name for thread in threading.enumerate()}
    yield
    projects = [project.project_id for project in payment_sandbox_server.in_process.registry.all()]
    threads = {thread.name for thread in threading.enumerate()} - before - {"courier", "overdue"}
    print("REMAINING", len(projects), sorted(threads))
""")
    _, report, output = rehearse_until(
        lambda report: report["variations"] > 10, tmp_path, BOOKS + A_SALE, "-s"
    )
    assert report["variations"] > 3
    assert "REMAINING 1 []" in output, output[-2000:]  # the first project of every server


ONLY_VARIATION = 'only="webhook:1:together"'


def test_single_tests_can_be_marked(tmp_path: Path) -> None:
    """A marker selects a test and can name its only variation; other tests run once."""
    tests = (
        UNLOCKED
        + A_SALE
        + A_SALE.replace(
            "def test_a_sale", f"@pytest.mark.payment_rehearse({ONLY_VARIATION})\ndef test_marked"
        )
    )
    result = suite(tmp_path, tests)
    assert result.returncode == 1
    assert "1 failed, 1 passed" in result.stdout
    assert "1 test rehearsed in 1 variation: 1 finding" in result.stdout
    result = suite(tmp_path, tests.replace("together", "thrice"))
    assert "'webhook:1:thrice' is not a variation" in result.stdout + result.stderr
    assert result.returncode != 0


@pytest.mark.prove
def test_workers_share_the_tests(tmp_path: Path) -> None:
    """One report contains the findings of all workers."""
    tests = UNLOCKED + A_SALE + A_SALE.replace("test_a_sale", "test_another")
    result = suite(tmp_path, tests, "-n2", "--payment-rehearse-only=webhook:1:together", *WITH_REPORT)
    assert "2 tests rehearsed" in result.stdout, result.stdout[-2000:]
    findings = [test["findings"] for test in json.loads((tmp_path / "all.json").read_text())["tests"]]
    assert [[each["effect"] for each in own] for own in findings] == [["a mail was sent twice"]] * 2


def test_a_time_limit_applies_to_the_unchanged_test(tmp_path: Path) -> None:
    """A time limit applies to the unchanged test only; the variations have the budget."""
    (tmp_path / "conftest.py").write_text("""
runs = []


def pytest_runtest_call(item):
    runs.append("run")


def pytest_timeout_cancel_timer(item):
    runs.append("no limit")


def pytest_sessionfinish():
    print("RUNS", *runs, sep=",")
""")
    options = ("-s", "--timeout=600", "--payment-rehearse-only=webhook:1:lost")
    code, report, output = rehearse_suite(tmp_path, BOOKS + A_SALE, *options)
    assert (code, report["findings"]) == (0, []), output[-2000:]
    assert "RUNS,run,no limit,run" in output


def test_a_test_that_fails_is_not_rehearsed(tmp_path: Path) -> None:
    """A test that fails unchanged has its usual report, and is not rehearsed."""
    result = suite(tmp_path, BOOKS + A_SALE + "    assert shop.paid == {}\n", "--payment-rehearse")
    assert result.returncode == 1
    assert "assert {'" in result.stdout
    assert "rehearsed" not in result.stdout
    expected = A_SALE.replace("def test", "@pytest.mark.xfail\ndef test") + "    assert shop.paid == {}\n"
    result = suite(tmp_path, BOOKS + expected, "--payment-rehearse")
    assert "1 xfailed" in result.stdout


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--payment-rehearse-only=webhook:2:thrice",
            "one of after-payment, late, lost, swapped, together, twice",
        ),
        ("--payment-rehearse-only=webhok:2:twice", "expected kind:number:name, such as webhook:2:twice"),
        ("--payment-rehearse-only=webhook:1=twice", "expected kind:number:name, such as webhook:2:twice"),
        ("--payment-rehearse-budget=soon", "takes a duration above zero such as 60s or 10m, not 'soon'"),
        ("--payment-rehearse-report=report.html", "takes a .json file"),
        ("--payment-rehearse-report=nowhere/report.json", "takes a file in an existing folder"),
        ("--payment-rehearse-budget=inf", "takes a duration above zero"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, option: str, words: str) -> None:
    """An invalid option is refused with the expected values."""
    result = suite(tmp_path, BOOKS + A_SALE, option)
    assert words in result.stdout + result.stderr
    assert result.returncode != 0


def test_a_variation_without_a_step_fails(tmp_path: Path) -> None:
    """A variation without a step in the test fails, because it checks nothing."""
    result = suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-only=webhook:9:twice")
    assert "the test has no step for webhook:9:twice" in result.stdout
    assert result.returncode == 1, "nothing was proved"


def test_a_run_that_cannot_be_judged_is_a_finding(tmp_path: Path) -> None:
    """Books that raise an error are a finding."""
    fragile = BOOKS.replace(
        '        assert len(shop.mails) == len(set(shop.mails)), "a mail was sent twice"',
        "        assert all(shop.paid.values()) or 1 / 0",
    )
    only = "--payment-rehearse-only=action:1:fails"
    test_text = "    payment_sandbox.act(shop.test_client().post('/buy').text)\n"
    code, report, output = rehearse_suite(
        tmp_path, f"{fragile}def test_a_sale(payment_sandbox, shop):\n{test_text}", only
    )
    assert code == 1, output[-3000:]
    assert "the run could not be judged: ZeroDivisionError" in report["findings"][0]["sentence"]


def test_two_customers_may_buy_the_same(tmp_path: Path) -> None:
    """A second customer's order is not reported as a repeated creation of the first, lost one."""
    sells = """
def test_two_sales(payment_sandbox, shop):
    for _ in range(2):
        with contextlib.suppress(Exception):
            payment_sandbox.act(shop.test_client().post("/buy").text)
"""
    only = "--payment-rehearse-only=create:1:answer-lost"
    _, report, output = rehearse_suite(tmp_path, "import contextlib\n" + BOOKS + sells, only)
    assert not any("created the order again" in each["sentence"] for each in report["findings"]), output
