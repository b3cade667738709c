"""The rehearsal of a merchant's suite repeats each test with one change at a time."""

from pathlib import Path
from typing import Any

import pytest

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


WITHOUT_WEBHOOK = """
MARKER
def test_without_a_webhook(payment_sandbox):
    payment_sandbox.act(place(payment_sandbox)["id"])
"""


@pytest.mark.parametrize(
    ("marker", "option", "is_finding"),
    [
        pytest.param("", "error", True, id="a finding that fails a plain run fails its rehearsal"),
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
    """A finding is one block: its sentence, its lesson, other changes, the command and the timeline."""
    code, report, output = rehearse_suite(
        tmp_path, UNLOCKED + A_SALE, "--payment-rehearse-only=webhook:1:together"
    )
    (finding,) = report["findings"]
    assert (code, finding["variation"]) == (1, "webhook:1:together")
    sentence = "the webhook of 'processing' arrived twice at the same moment: a mail was sent twice"
    assert finding["sentence"] == sentence
    assert sentence in output
    assert 'test_shop.py::test_a_sale" --payment-rehearse-only="webhook:1:together"' in output
    assert "is completed" in finding["timeline"]
    assert f">>> {sentence.partition(': ')[0]}" in finding["timeline"].splitlines()
    assert_reproduced([finding], tmp_path)
    other = suite(tmp_path, UNLOCKED + A_SALE, "--payment-rehearse-only=webhook:1:twice")
    assert other.returncode == 0, other.stdout[-2000:]


def test_one_finding_stands_for_a_kind_of_problem_and_of_step(tmp_path: Path) -> None:
    """The other variations that show it are named; what a time limit cuts off is named, too, and fails the test."""
    early = BOOKS.replace('if status == "completed":', 'if status != "new":') + A_SALE
    _, report, output = rehearse_suite(tmp_path, early)
    by_step = {each["variation"].partition(":")[0]: each for each in report["findings"]}
    assert by_step["action"]["also_after"]
    assert "also after: action:1:" in output
    code, report, output = rehearse_suite(tmp_path, BOOKS + A_SALE, "--payment-rehearse-seconds=0.05")
    assert (code, report["left"] > 0) == (1, True)
    assert "(increase --payment-rehearse-seconds)" in output


def test_a_run_that_the_time_limit_ends_is_named(tmp_path: Path) -> None:
    """The decisive run never ends, as nobody pays: the rehearsal says so."""
    waits = BOOKS.replace(
        "    assert shop.paid[order_id]",
        "    while not shop.paid[order_id]:\n        payment_sandbox.clock.advance('PT1S')\n        look_again(payment_sandbox, order_id)",
    )
    waits += "\n\ndef look_again(payment_sandbox, order_id):\n    payment_sandbox.session.get(payment_sandbox.base_url + f'/v1/orders/{order_id}/')\n"
    options = ("--payment-rehearse-only=action:1:walks-away", "--payment-rehearse-seconds=1")
    code, report, output = rehearse_suite(tmp_path, waits + A_SALE, *options)
    assert (code, report["cut_off"]) == (1, ["action:1:walks-away"]), output[-3000:]
    assert "cut off before its end: action:1:walks-away" in output


def test_a_shop_that_polls_endlessly_is_stopped(tmp_path: Path) -> None:
    """A call that is made 300 times at one moment is a finding."""
    polls = BOOKS.replace(
        "    assert shop.paid[order_id]",
        "    while not shop.paid[order_id]:\n        look_again(payment_sandbox, order_id)",
    )
    polls += "\n\ndef look_again(payment_sandbox, order_id):\n    try:\n        payment_sandbox.session.get(payment_sandbox.base_url + f'/v1/orders/{order_id}/')\n    except Exception:\n        pass\n"
    code, report, output = rehearse_suite(tmp_path, polls + A_SALE, "--payment-rehearse-only=action:1:fails")
    assert code == 1, output[-3000:]
    assert "the shop polls endlessly: GET /v1/orders/…/" in report["findings"][0]["sentence"]


def test_a_shop_that_answers_no_webhook_is_not_rehearsed_further(tmp_path: Path) -> None:
    """The finding of the unchanged run says what to mend first."""
    slow = BOOKS.replace(
        "        with lock:\n            look(request",
        "        import time\n        time.sleep(1.2)\n        with lock:\n            look(request",
    )
    marker = "@pytest.mark.payment_settings(webhook_timeout=1)\n"
    code, report, output = rehearse_suite(tmp_path, slow + A_SALE.replace("def test", f"{marker}def test"))
    assert (code, report["variations"]) == (1, 0), output[-3000:]
    assert report["findings"][0]["variation"] == "unchanged"


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


def test_two_customers_may_buy_the_same_without_books(tmp_path: Path) -> None:
    """A second customer's order is no repeated creation of the first, lost one; money is not judged without books."""
    sells = """
def test_two_sales(payment_sandbox, shop):
    for _ in range(2):
        with contextlib.suppress(Exception):
            payment_sandbox.act(shop.test_client().post("/buy").text)
"""
    tests = "import contextlib\n" + BOOKS.replace("def payment_books", "def no_books") + sells
    only = "--payment-rehearse-only=create:1:answer-lost"
    _, report, output = rehearse_suite(tmp_path, tests, only)
    assert not any("created the order again" in each["sentence"] for each in report["findings"]), output
    assert report["notes"] == ["money and goods were not judged: no payment_books"]
    assert report["notes"][0] in output


def test_single_tests_can_be_marked(tmp_path: Path) -> None:
    """A marker selects a test and can name its only variation; other tests and failing ones run once."""
    sale = A_SALE.replace("def test_a_sale", "MARKER\ndef test_marked")
    marker = '@pytest.mark.payment_rehearse(only="webhook:1:together")'
    failing = sale.replace("test_marked", "test_failing") + "    assert shop.paid == {}\n"
    result = suite(tmp_path, UNLOCKED + A_SALE + (sale + failing).replace("MARKER", marker))
    assert "2 failed, 1 passed" in result.stdout
    assert "assert {'" in result.stdout
    assert "1 test rehearsed in 1 variation: 1 finding" in result.stdout
    for only, words in (
        ("webhook:1:thrice", "'webhook:1:thrice' is not a variation"),
        ("webhook:9:twice", "the test has no step for webhook:9:twice"),
    ):
        result = suite(
            tmp_path, UNLOCKED + sale.replace("MARKER", marker.replace("webhook:1:together", only))
        )
        assert words in result.stdout + result.stderr
        assert result.returncode in (1, 4), "nothing was proved"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--payment-rehearse-only=webhook:2:thrice", "one of late, lost, lost-and-unread, together, twice"),
        ("--payment-rehearse-only=webhok:2:twice", "expected kind:number:name, such as webhook:2:twice"),
        ("--payment-rehearse-report=report.html", "takes a .json file"),
        ("--payment-rehearse-seconds=0", "takes a number above zero, not 0"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, option: str, words: str) -> None:
    """An invalid option is refused with the expected values."""
    result = suite(tmp_path, BOOKS + A_SALE, option)
    assert words in result.stdout + result.stderr
    assert result.returncode != 0
