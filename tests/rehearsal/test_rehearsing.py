"""A merchant's suite is rehearsed: each test runs again with one thing changed at a time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.scenarios import variations
from payment_sandbox.web.docs.contents import page
from payment_sandbox.web.docs.library import read_source
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from tests.support.blocks import blocks
from tests.support.suites import passed, suite

BOOKS = """
from payment_sandbox import BookEntry


@pytest.fixture
def shop(payment_sandbox):
    app = Flask("shop")
    app.paid, app.mails = {}, []

    @app.post("/buy")
    def buy():
        url = f"{payment_sandbox.base_url}/v1/orders/"
        order = payment_sandbox.session.post(url, json=ORDER, timeout=5).json()
        app.paid[order["id"]] = 0
        return order["id"]

    @app.post("/webhook")
    def webhook():
        look(request.json["order_id"])
        return "", 204

    def look(order_id):
        is_news = not app.paid.get(order_id)
        order = payment_sandbox.session.get(
            f"{payment_sandbox.base_url}/v1/orders/{order_id}/", timeout=5
        )
        if order.status_code != 200:
            raise RuntimeError(order.text)
        if order.json()["status"] == "completed":
            app.paid[order_id] = 1295
            if is_news:
                app.mails.append(order_id)

    payment_sandbox.deliver_to(app)
    payment_sandbox.every("PT1H", lambda: [look(order_id) for order_id, paid in app.paid.items() if not paid])
    return app


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
ALL = ("--payment-rehearse", "--payment-rehearse-report=all.html")
A_SALE = """
def test_a_sale(payment_sandbox, shop):
    bought(payment_sandbox, shop)
"""
LOCKED = BOOKS.replace("        look(request", "        with lock:\n            look(request").replace(
    "    app.paid, app.mails", "    lock = __import__('threading').Lock()\n    app.paid, app.mails"
)


def rehearsed(tmp_path: Path, tests: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Rehearse a suite: its exit code, its report of one test, and what it printed."""
    report = tmp_path / "report.json"
    ran = suite(tmp_path, tests, "--payment-rehearse", f"--payment-rehearse-report={report}", *options)
    assert report.exists(), ran.stdout[-3000:] + ran.stderr[-3000:]
    tested = json.loads(report.read_text())["tests"]
    return ran.returncode, tested[0] if tested else {}, ran.stdout


def rehearsed_until(
    is_enough: Callable[[dict[str, Any]], bool], tmp_path: Path, tests: str, *options: str
) -> tuple[int, dict[str, Any], str]:
    """Rehearse with a larger budget if the machine does much else, and the smaller one was not enough."""
    for budget in ("2s", "20s", "60s"):
        done = rehearsed(tmp_path, tests, f"--payment-rehearse-budget={budget}", *options)
        if is_enough(done[1]):
            break
    return done


def tries_some(told: dict[str, Any]) -> bool:
    """Whether a rehearsal tried anything worth comparing."""
    return bool(told["variations"] > 4)


def tries_many(told: dict[str, Any]) -> bool:
    """Whether a rehearsal came beyond its first variations."""
    return bool(told["variations"] > 10)


def finds(told: dict[str, Any]) -> bool:
    """Whether it found something."""
    return bool(told["findings"])


def test_a_right_shop_passes(tmp_path: Path) -> None:
    """Whatever is tried, and more than a little is."""
    code, told, printed = rehearsed_until(tries_many, tmp_path, LOCKED + A_SALE)
    assert (code, told["findings"]) == (0, []), printed[-3000:]
    assert told["variations"] > 10
    assert f"1 test rehearsed in {told['variations']} variations" in printed


def test_a_strict_review_holds_in_a_rehearsal_too(tmp_path: Path) -> None:
    """What fails a plain run fails the rehearsal of it: here, nobody is told of the payment."""
    untold = """
def test_nobody_is_told(payment_sandbox):
    payment_sandbox.act(place(payment_sandbox)["id"])
"""
    strict = "--payment-review=error"
    plain = suite(tmp_path, untold, strict)
    assert plain.returncode == 1, plain.stdout[-2000:]
    code, told, printed = rehearsed(tmp_path, untold, strict, "--payment-rehearse-budget=1s")
    assert code == 1, printed[-3000:]
    assert "sent no webhook" in told["findings"][0]["sentence"]
    _, told, _ = rehearsed(tmp_path, untold, "--payment-rehearse-budget=1s")
    assert not any("sent no webhook" in finding["sentence"] for finding in told["findings"])


@pytest.mark.parametrize("marker", ["", '@pytest.mark.payment_review(expect=["HOOK-03"])'])
def test_a_mistake_that_is_meant_is_meant_in_a_rehearsal_too(tmp_path: Path, marker: str) -> None:
    """It is no finding of the run as it is, nor of one with a variation."""
    untold = f"""
{marker}
def test_nobody_is_told(payment_sandbox):
    payment_sandbox.act(place(payment_sandbox)["id"])
"""
    _, told, _ = rehearsed(tmp_path, untold, "--payment-review=error", "--payment-rehearse-budget=1s")
    assert any("sent no webhook" in finding["sentence"] for finding in told["findings"]) is not bool(marker)


def test_a_finding_fails_the_test_and_can_be_played_again(tmp_path: Path) -> None:
    """It names the variation and its effect; the command shows it once more."""
    code, told, printed = rehearsed_until(finds, tmp_path, BOOKS + A_SALE)
    (finding,) = told["findings"]
    assert (code, finding["variation"]) == (1, "webhook:1:together")
    sentence = "the webhook of 'processing' arrived twice at the same moment: a mail was sent twice"
    assert finding["sentence"] == sentence
    assert sentence in printed
    assert 'test_shop.py::test_a_sale" --payment-rehearse-only="webhook:1:together"' in printed
    assert "<svg" in finding["picture"]
    assert "is completed" in finding["timeline"]
    again = suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-only=webhook:1:together")
    assert (again.returncode, sentence in again.stdout) == (1, True)
    other = suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-only=webhook:1:twice")
    assert other.returncode == 0, other.stdout[-2000:]


@pytest.mark.prove
def test_two_runs_are_the_same(tmp_path: Path) -> None:
    """In what they try, in which order, and in what they find."""
    (tmp_path / "conftest.py").write_text("""
from pytest_payment_sandbox.rehearsal.exploring import variation_name
from pytest_payment_sandbox import rehearsing


class Told(rehearsing.ItemRun):
    def __init__(self, item, variation=(), **more):
        super().__init__(item, variation, **more)
        print("TRIED", variation_name(variation))


rehearsing.ItemRun = Told
""")
    tried = []
    for _ in range(2):
        _, _, printed = rehearsed_until(tries_some, tmp_path, BOOKS + A_SALE, "-s")
        tried.append([line for line in printed.splitlines() if line.startswith("TRIED")])
    count = min(map(len, tried))
    assert count > 3
    assert tried[0][:count] == tried[1][:count]


def test_the_budget_ends_it(tmp_path: Path) -> None:
    """It says for how many variations there was no time."""
    code, told, printed = rehearsed(tmp_path, LOCKED + A_SALE, "--payment-rehearse-budget=0.2s")
    assert (code, told["left"] > 0) == (0, True)
    assert f"no time for {told['left']} more" in printed


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """No project, and no thread."""
    (tmp_path / "conftest.py").write_text("""
import threading

import pytest


@pytest.fixture(scope="session", autouse=True)
def look(payment_sandbox_server):
    before = {thread.name for thread in threading.enumerate()}
    yield
    left = [project.project_id for project in payment_sandbox_server.in_process.registry.all()]
    threads = {thread.name for thread in threading.enumerate()} - before - {"courier", "overdue"}
    print("LEFT", len(left), sorted(threads))
""")
    _, told, printed = rehearsed_until(tries_many, tmp_path, LOCKED + A_SALE, "-s")
    assert told["variations"] > 3
    assert "LEFT 1 []" in printed, printed[-2000:]  # the project that every server begins with


ONLY = 'only="webhook:1:together"'


def test_single_tests_can_be_marked(tmp_path: Path) -> None:
    """The others run as ever; the marker can name the only variation, which is read as on the command line."""
    tests = (
        BOOKS
        + A_SALE
        + A_SALE.replace("def test_a_sale", f"@pytest.mark.payment_rehearse({ONLY})\ndef test_marked")
    )
    ran = suite(tmp_path, tests)
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert "1 test rehearsed in 1 variation: 1 finding" in ran.stdout
    ran = suite(tmp_path, tests.replace("together", "thrice"))
    assert "'webhook:1:thrice' is not a variation" in ran.stdout + ran.stderr
    assert ran.returncode != 0


@pytest.mark.prove
def test_workers_share_the_tests(tmp_path: Path) -> None:
    """The findings of all are summed up, and stand in one report."""
    tests = BOOKS + A_SALE + A_SALE.replace("test_a_sale", "test_another")
    ran = suite(tmp_path, tests, "-n2", "--payment-rehearse-budget=3s", *ALL)
    assert "2 tests rehearsed" in ran.stdout, ran.stdout[-2000:]
    page = (tmp_path / "all.html").read_text()
    assert page.count("a mail was sent twice</h2>") == 2
    assert "<svg" in page
    assert "<script" not in page


def test_without_books_assertions_judge(tmp_path: Path) -> None:
    """Where they must still hold."""
    counting = """
def test_it_is_told_once(payment_sandbox, shop):
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    assert shop.known == ["completed", "completed"]
"""
    code, told, _ = rehearsed_until(finds, tmp_path, counting)
    sentences = [finding["sentence"] for finding in told["findings"]]
    assert code == 1
    assert sentences[0].startswith(
        "the webhook of 'processing' arrived twice: the test fails: AssertionError"
    )


@pytest.mark.prove
def test_a_shop_is_restarted_where_a_fixture_says_how(tmp_path: Path) -> None:
    """One that keeps what it knows in memory forgets it."""
    restart = """
@pytest.fixture
def payment_shop_restart(shop):
    return shop.paid.clear
"""
    ran = suite(tmp_path, LOCKED + restart + A_SALE, "--payment-rehearse-only=action:1:restarted")
    assert ran.returncode == 1, ran.stdout[-2000:]
    assert "the shop was restarted after the customer's payment: the customer paid €12.95" in ran.stdout
    ran = suite(tmp_path, LOCKED + A_SALE, "--payment-rehearse-only=action:1:restarted")
    assert ran.returncode == 0, "without the fixture nothing is restarted"


def test_a_time_limit_is_for_the_test_as_it_is(tmp_path: Path) -> None:
    """Its variations have the budget."""
    code, told, printed = rehearsed(tmp_path, LOCKED + A_SALE, "--timeout=2", "--payment-rehearse-budget=3s")
    assert (code, told["findings"]) == (0, []), printed[-2000:]


def test_a_test_that_fails_is_not_rehearsed(tmp_path: Path) -> None:
    """It has to pass first; its report is the usual one."""
    ran = suite(tmp_path, BOOKS + A_SALE + "    assert shop.paid == {}\n", "--payment-rehearse")
    assert ran.returncode == 1
    assert "assert {'" in ran.stdout
    assert "rehearsed" not in ran.stdout
    expected = A_SALE.replace("def test", "@pytest.mark.xfail\ndef test") + "    assert shop.paid == {}\n"
    ran = suite(tmp_path, BOOKS + expected, "--payment-rehearse")
    assert "1 xfailed" in ran.stdout


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--payment-rehearse-only=webhook:2:thrice",
            "one of after-payment, late, lost, refused, swapped, together, twice",
        ),
        ("--payment-rehearse-only=webhok:2:twice", "expected a variation such as webhook:2:twice"),
        ("--payment-rehearse-budget=soon", "takes a duration above zero such as 60s or 10m, not 'soon'"),
        ("--payment-rehearse-report=report.txt", "takes an .html or a .json file"),
        ("--payment-rehearse-report=nowhere/report.html", "takes a file in an existing folder"),
        ("--payment-rehearse-budget=inf", "takes a duration above zero"),
        ("--payment-coverage-fail-under=nan", "takes a number from 0 to 100"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, option: str, words: str) -> None:
    """With what was expected."""
    ran = suite(tmp_path, BOOKS + A_SALE, option)
    assert words in ran.stdout + ran.stderr
    assert ran.returncode != 0


def test_a_variation_that_the_test_has_not(tmp_path: Path) -> None:
    """Is told, or one would believe that it passed."""
    ran = suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-only=webhook:9:twice")
    assert "the test has no step for webhook:9:twice" in ran.stdout
    assert ran.returncode == 1, "nothing was proved"


def test_a_run_that_cannot_be_judged_is_a_finding(tmp_path: Path) -> None:
    """The books raise an error as soon as a payment fails."""
    fragile = BOOKS.replace(
        '        assert len(shop.mails) == len(set(shop.mails)), "a mail was sent twice"',
        "        assert all(shop.paid.values()) or 1 / 0",
    )
    only = "--payment-rehearse-only=action:1:fails"
    told = "    payment_sandbox.act(shop.test_client().post('/buy').text)\n"
    code, tested, printed = rehearsed(
        tmp_path, f"{fragile}def test_a_sale(payment_sandbox, shop):\n{told}", only
    )
    assert code == 1, printed[-3000:]
    assert "the run could not be judged: ZeroDivisionError" in tested["findings"][0]["sentence"]


def test_two_customers_may_buy_the_same(tmp_path: Path) -> None:
    """The response to the first creation is lost, and the shop gives that sale up: it sent nothing again."""
    sells = """
def test_two_sales(payment_sandbox, shop):
    for _ in range(2):
        with contextlib.suppress(Exception):
            payment_sandbox.act(shop.test_client().post("/buy").text)
"""
    only = "--payment-rehearse-only=create:1:answer-lost"
    _, tested, printed = rehearsed(tmp_path, "import contextlib\n" + BOOKS + sells, only)
    assert not any("created the order again" in each["sentence"] for each in tested["findings"]), printed


def test_suites_without_rehearsals_are_as_before(tmp_path: Path) -> None:
    """The fixtures for it are there and do nothing."""
    passed(suite(tmp_path, BOOKS + A_SALE + "    payment_sandbox.clock.advance('PT2H')\n"), 1)


def test_the_example_of_the_page_survives(tmp_path: Path) -> None:
    """It is rehearsed as it is pasted."""
    (block,) = [block for block in blocks(read_source("rehearsal")) if block.language == "python"]
    (tmp_path / "report.json").unlink(missing_ok=True)
    code, told, printed = rehearsed(tmp_path, f"\n{block.text}", "--payment-rehearse-budget=3s")
    assert (code, told["findings"]) == (0, []), printed[-2000:]


def test_the_page_names_every_change() -> None:
    """By the name that users write, which means one change of a step."""
    shown, changes = page("rehearsal", lambda: "").text, variations.rehearsal_variations()
    assert [change.name for change in changes if f"`{change.name}`" not in shown] == []
    named = [(f"{kind}:1:{change.name}", change) for change in changes for kind in change.kinds]
    assert [name for name, change in named if parse_changed_step(name).change is not change] == []
