"""Suites in other languages explain a shop's failures as clearly as suites in Python."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.howto.test_languages import SUITES
from tests.support.commands import run
from tests.support.documentation import run_command
from tests.support.languages import copied
from tests.support.samples import of_the_day
from tests.support.servers import make_server
from tests.support.tools import require

Edits = tuple[tuple[str, str, str], ...]
READ_IN_JAVA: Final = 'String order = sandbox.call("GET", "/v1/orders/" + id + "/", "");'
READ_IN_NODE: Final = (
    "await (await fetch(`${this.url}/v1/orders/${id}/`, { headers: this.headers })).json();"  # of the project
)
WITHOUT_READING: Final[dict[str, Edits]] = {
    # the file, its right code, and the wrong code; some assertions would find the mistake themselves
    "node": (
        ("shop.mjs", READ_IN_NODE, '{ status: "completed" };'),
        ("shop.test.mjs", "  assert.equal(shop.shipped.size, 0);\n", ""),
    ),
    "php": (
        ("Shop.php", "$this->api('GET', \"/v1/orders/$id/\")['status'] === 'completed'", "$id"),
        ("ShopTest.php", "        $this->assertSame([], $this->shop->shipped);\n", ""),
    ),
    "java": (
        (
            "ShopTest.java",
            READ_IN_JAVA,
            READ_IN_JAVA.replace("order", "clock", 1).replace('/v1/orders/" + id + "/"', '/control/clock/"')
            + r' String order = "{\"status\": \"completed\"}";',
        ),
        ("ShopTest.java", "assertTrue(shipped.isEmpty());", ""),
    ),
    "ruby": (("shop_spec.rb", ' if @sandbox.call("GET", "/v1/orders/#{id}/")["status"] == "completed"', ""),),
}
PAID_IN_SHOP: Final = {
    # the shop's file, and an edit after which the shop expects another status of a paid order
    "node": ("shop.mjs", '"completed"', '"paid"'),
    "php": ("Shop.php", "'completed'", "'paid'"),
    "java": ("ShopTest.java", '"completed"', '"paid"'),
    "ruby": ("shop_spec.rb", '"completed"', '"paid"'),
}
DELIVER: Final = {
    # the file, and its call that delivers webhooks to the shop
    "node": ("shop.test.mjs", "await sandbox.deliverTo(shop.webhook);"),
    "php": (
        "ShopTest.php",
        "$sandbox->deliverTo(fn (Webhook $webhook) => $this->shop->onWebhook($webhook->body));",
    ),
}
SLOW_IN_PHP: Final = """$sandbox->deliverTo(function () {
            static $runs = 0;
            fwrite(STDERR, 'run ' . ++$runs . PHP_EOL);
            sleep($runs === 1 ? 8 : 0);
        });"""
TEST_NAMES: Final = {
    "node": "a paid order is shipped",
    "php": "ShopTest::testAPaidOrderIsShipped",
}
"""The packages name the project of a test after it."""
NEVER_IN_NODE: Final = ("(request, response) => {}", "{ fetch: () => new Promise(() => {}) }")
VARIABLE: Final = "PAYMENT_SANDBOX_REVIEW"
SENTENCE: Final = "did not read the order"
OTHERS: Final = [name for name in SUITES if name != "node"]
some_languages = pytest.mark.parametrize(
    "language", ["node", *(pytest.param(name, marks=pytest.mark.prove) for name in of_the_day(OTHERS, 1))]
)
both_packages = pytest.mark.parametrize("language", ["node", pytest.param("php", marks=pytest.mark.prove)])


def run_edited(
    language: str, tmp_path: Path, edits: Edits, only: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a suite after edits of its files, and only some of its tests."""
    programs, command, _ = SUITES[language]
    require(*programs)
    folder = tmp_path / language
    if not folder.exists():
        copied(language, tmp_path)
        for file, right, wrong in edits:
            text = (folder / file).read_text()
            assert right in text
            (folder / file).write_text(text.replace(right, wrong))
    return run_command(["bash", "-euc", f"{command}{only}"], folder, **environment)


@some_languages
def test_mistakes_are_warned_of_or_fail_or_are_silenced(language: str, tmp_path: Path) -> None:
    """A mistake that the suite's own assertions miss is a warning by default; a variable changes that."""
    warned = run_edited(language, tmp_path, WITHOUT_READING[language])
    output = warned.stdout + warned.stderr
    assert warned.returncode == 0, output
    assert SENTENCE in output
    assert "GET the order before you fulfil it" in output
    failed = run_edited(language, tmp_path, (), **{VARIABLE: "error"})
    assert failed.returncode != 0
    assert SENTENCE in failed.stdout + failed.stderr
    silent = run_edited(language, tmp_path, (), **{VARIABLE: "off"})
    assert (silent.returncode, SENTENCE in silent.stdout + silent.stderr) == (0, False)
    if language in DELIVER:
        assert re.search(r"[Aa] ?[Pp]aid ?[Oo]rder.*: the review found a mistake", output), output
        refused = run_edited(language, tmp_path, (), **{VARIABLE: "loud"})
        assert refused.returncode != 0
        assert f"{VARIABLE} must be off, warn or error, not 'loud'" in refused.stdout + refused.stderr


@both_packages
def test_advice_to_deliver_webhooks_names_the_call_of_the_language(language: str, tmp_path: Path) -> None:
    """A suite that never delivers webhooks is told of its own call, and not of Python's."""
    file, call = DELIVER[language]
    result = run_edited(language, tmp_path, ((file, call, ""),))
    output = result.stdout + result.stderr
    advice = r"In a test, call (\$sandbox->)?deliverTo\(\$?handler\)\. Otherwise make"
    assert re.search(advice, output), output
    assert "deliver_to" not in output


@some_languages
def test_a_failed_test_prints_the_timeline(language: str, tmp_path: Path) -> None:
    """The timeline shows the status that the shop mistook, and the read of the order."""
    result = run_edited(language, tmp_path, (PAID_IN_SHOP[language],))
    assert result.returncode != 0
    printed = result.stdout + result.stderr
    order_id = re.search(r"order ([0-9a-f-]{36}) is completed", printed)
    assert order_id is not None, printed[-3000:]
    assert f"GET /v1/orders/{order_id[1]}/ -> 200" in printed


@some_languages
def test_a_service_container_keeps_mistakes_for_a_review_of_all_projects(
    language: str, tmp_path: Path
) -> None:
    """The suite passes with a control token; each test has a project, and one review shows all mistakes."""
    token = "only-for-tests"
    with make_server(control_token=token) as server:
        shared = {"SANDBOX_URL": server.url, "SANDBOX_CONTROL_TOKEN": token}
        passed = run_edited(language, tmp_path, WITHOUT_READING[language], **shared)
        command = ("review", "--url", server.url, "--all-projects")
        refused = run(*command)
        assert (refused.returncode, "control token" in refused.stderr) == (2, True)
        reviewed = run(*command, "--control-token", token)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert reviewed.returncode == 1
    mistake_count = reviewed.stdout.count("HOOK-08: ")
    assert mistake_count > (1 if language in DELIVER else 0), reviewed.stdout
    assert (f"\n  Test: {TEST_NAMES[language]}" in reviewed.stdout) if language in DELIVER else True


@pytest.mark.prove
@pytest.mark.parametrize("handler", NEVER_IN_NODE)
def test_a_handler_in_node_that_never_answers_is_named(handler: str, tmp_path: Path) -> None:
    """The timeline has the attempt, the limit and the handler's address."""
    file, call = DELIVER["node"]
    edit = (file, call, f"await sandbox.deliverTo({handler});")
    result = run_edited("node", tmp_path, (edit,), ' --test-name-pattern="a paid order"')
    assert re.search(
        r"webhook .*, attempt 1: no answer within 5 seconds from http://127.0.0.1[:\d]*/webhook",
        result.stdout,
    ), result.stdout
    assert "could not be read" not in result.stdout
    assert "undefined" not in result.stdout


@pytest.mark.prove
def test_a_slow_handler_in_php_is_named(tmp_path: Path) -> None:
    """The handler runs once for each webhook, although the server stops waiting; the timeline has its attempt."""
    file, call = DELIVER["php"]
    result = run_edited("php", tmp_path, ((file, call, SLOW_IN_PHP),), " --filter testAPaidOrderIsShipped")
    assert "attempt 1: no answer within 5 seconds from the listener" in result.stdout, result.stdout
    assert "do slow work afterwards" in result.stdout
    assert "no answer within 5 seconds: the webhook handler took 8." in result.stderr
    assert result.stderr.count("run ") == 2, "one run for each webhook: processing and completed"
