"""Suites in Node and PHP explain a shop's failures as clearly as suites in Python."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.howto.test_languages import SUITES
from tests.support.commands import run
from tests.support.documentation import run_command
from tests.support.languages import copied
from tests.support.servers import make_server
from tests.support.tools import require

NODE: Final = """
import { test } from "node:test";
import { newProject, sandboxed } from "payment-sandbox";
import { Shop } from "./shop.mjs";

const run = (handler) => sandboxed(async (sandbox) => {
  const shop = new Shop(sandbox.url, sandbox.apiKey);
  await sandbox.deliverTo(handler(shop, sandbox));
  const order = await shop.checkout(1295);
  await sandbox.pay(order.id);
});
"""
NODE_BUGS: Final = """
test("ships without reading", run(() => (request, response) => { response.writeHead(204).end(); }));
test("refunds twice", run((shop, sandbox) => async (request, response) => {
  await shop.webhook(request, { writeHead: () => ({ end() {} }) });
  for (const id of shop.shipped) {
    const options = { method: "POST", headers: shop.headers, body: JSON.stringify({ amount: 500 }) };
    for (const attempt of [1, 2]) await fetch(`${shop.url}/v1/orders/${id}/refunds/`, options);
  }
  shop.shipped.clear();
  response.writeHead(204).end();
}));
"""
PHP: Final = """<?php
use PaymentSandbox\\UsesPaymentSandbox;
use PHPUnit\\Framework\\TestCase;

final class ShopTest extends TestCase
{
    use UsesPaymentSandbox;

    private function payOrder(callable $handler): string
    {
        $sandbox = $this->paymentSandbox();
        $shop = new Shop($sandbox->url, $sandbox->apiKey);
        $sandbox->deliverTo(fn ($webhook) => $handler($webhook, $shop, $sandbox));
        $id = $shop->checkout(1295);
        $sandbox->pay($id);
        $this->addToAssertionCount(1);
        return $id;
    }
TESTS
}
"""
PHP_BUGS: Final = """
    public function testShipsWithoutReading(): void
    {
        $this->payOrder(fn () => 204);
    }

    public function testRefundsTwice(): void
    {
        $this->payOrder(function ($webhook, $shop, $sandbox) {
            $shop->onWebhook($webhook->body);
            foreach ($shop->shipped as $id => $isShipped) {
                for ($attempt = 1; $attempt <= 2; $attempt++) {
                    $sandbox->call('POST', "/v1/orders/$id/refunds/", ['amount' => 500]);
                }
            }
            $shop->shipped = [];
        });
    }
"""
COMMANDS: Final = {
    "node": (("nodejs",), "shop.test.mjs", ["node", "--test"]),
    "php": (
        ("php-cli", "php-curl", "phpunit", "composer"),
        "ShopTest.php",
        ["phpunit", "--bootstrap", "vendor/autoload.php", "ShopTest.php"],
    ),
}
BUGS: Final = {"node": NODE + NODE_BUGS, "php": PHP.replace("TESTS", PHP_BUGS)}
READ_IN_JAVA: Final = 'String order = sandbox.call("GET", "/v1/orders/" + id + "/", "");'
READ_IN_RUBY: Final = ' if @sandbox.call("GET", "/v1/orders/#{id}/")["status"] == "completed"'
WITHOUT_READING: Final = {
    # the file, its right code, and the wrong code; the last assertion in Java would find the mistake itself
    "java": (
        "ShopTest.java",
        {
            READ_IN_JAVA: READ_IN_JAVA.replace("order", "clock", 1).replace(
                '/v1/orders/" + id + "/"', '/control/clock/"'
            )
            + r' String order = "{\"status\": \"completed\"}";',
            "assertTrue(shipped.isEmpty());": "",
        },
    ),
    "ruby": ("shop_spec.rb", {READ_IN_RUBY: ""}),
}
both_languages = pytest.mark.parametrize("language", ["node", pytest.param("php", marks=pytest.mark.prove)])


def run_suite(
    language: str, tmp_path: Path, suite: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a suite in a copy of the language's project."""
    packages, name, command = COMMANDS[language]
    require(*packages)
    folder = copied(language, tmp_path) if not (tmp_path / language).exists() else tmp_path / language
    (folder / name).write_text(suite)
    return run_command(command, folder, **environment)


@both_languages
def test_mistakes_are_warned_of_by_default(language: str, tmp_path: Path) -> None:
    """Both bugs pass the suite's own assertions; the review names test, amount and remedy."""
    result = run_suite(language, tmp_path, BUGS[language])
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert re.search(r"[Ss]hips ?[Ww]ithout ?[Rr]eading.*: the review found a mistake", output), output
    assert "did not read the order" in output
    assert "€5.00" in output
    assert "GET the order before you fulfil it" in output


@pytest.mark.prove
@pytest.mark.parametrize("language", ["java", "ruby"])
def test_the_recipes_warn_of_mistakes_or_fail(language: str, tmp_path: Path) -> None:
    """Java and Ruby have no package, but the same variable, and warn by default, too."""
    programs, command, _ = SUITES[language]
    require(*programs)
    folder = copied(language, tmp_path)
    name, edits = WITHOUT_READING[language]
    sentence = "did not read the order"
    shop = (folder / name).read_text()
    for right, wrong in edits.items():
        assert right in shop
        shop = shop.replace(right, wrong)
    (folder / name).write_text(shop)
    warned = run_command(["bash", "-euc", command], folder)
    assert warned.returncode == 0, warned.stdout[-3000:] + warned.stderr
    assert sentence in warned.stderr
    failed = run_command(["bash", "-euc", command], folder, PAYMENT_SANDBOX_REVIEW="error")
    assert failed.returncode != 0
    assert sentence in failed.stdout + failed.stderr
    silent = run_command(["bash", "-euc", command], folder, PAYMENT_SANDBOX_REVIEW="off")
    assert (silent.returncode, sentence in silent.stdout + silent.stderr) == (0, False)


@both_languages
def test_advice_to_deliver_webhooks_names_the_call_of_the_language(language: str, tmp_path: Path) -> None:
    """A suite that never delivers webhooks is told of its own call, and not of Python's."""
    suite = re.sub(r".*sandbox(\.|->)deliverTo\(.*\n", "", BUGS[language])
    result = run_suite(language, tmp_path, suite)
    output = result.stdout + result.stderr
    assert re.search(r"In a test, call (\$sandbox->)?deliverTo\(\$?handler\)\. Otherwise make", output), (
        output
    )
    assert "deliver_to" not in output


@both_languages
def test_the_variable_makes_mistakes_fail_or_silences_them(language: str, tmp_path: Path) -> None:
    """The same variable works in all languages, and a typo is refused."""
    variable = "PAYMENT_SANDBOX_REVIEW"
    failed = run_suite(language, tmp_path, BUGS[language], **{variable: "error"})
    assert failed.returncode != 0
    assert "did not read the order" in failed.stdout + failed.stderr
    silent = run_suite(language, tmp_path, BUGS[language], **{variable: "off"})
    assert silent.returncode == 0
    assert "the review found" not in silent.stdout + silent.stderr
    refused = run_suite(language, tmp_path, BUGS[language], **{variable: "loud"})
    assert refused.returncode != 0
    assert f"{variable} must be off, warn or error, not 'loud'" in refused.stdout + refused.stderr


@both_languages
def test_a_shared_server_keeps_mistakes_for_a_review_of_all_projects(language: str, tmp_path: Path) -> None:
    """Each test has its own project; one review after the last test shows the mistakes of all."""
    token = "only-for-tests"
    shared = {"SANDBOX_CONTROL_TOKEN": token}
    with make_server(control_token=token) as server:
        run_suite(language, tmp_path, BUGS[language], SANDBOX_URL=server.url, **shared)
        command = ("review", "--url", server.url, "--all-projects", "--format", "github")
        refused = run(*command)
        assert (refused.returncode, "control token" in refused.stderr) == (2, True)
        reviewed = run(*command, "--control-token", token)
    assert reviewed.returncode == 1
    assert "::error title=HOOK-08::" in reviewed.stdout
    assert "€5.00" in reviewed.stdout


@pytest.mark.prove
@pytest.mark.parametrize("handler", ["(request, response) => {}", "{ fetch: () => new Promise(() => {}) }"])
def test_a_handler_in_node_that_never_answers_is_named(handler: str, tmp_path: Path) -> None:
    """The timeline has the attempt, the limit and the handler's address."""
    fails = f'test("never answers", run(() => ({handler})));'.replace("sandbox.pay(order.id)", "")
    suite = NODE.replace("pay(order.id);", 'pay(order.id);\n  throw new Error("not paid");') + fails
    result = run_suite("node", tmp_path, suite)
    assert re.search(
        r"webhook .*, attempt 1: no answer within 5 seconds, from the webhook handler at http://127.0.0.1[:\d]*/webhook",
        result.stdout,
    ), result.stdout
    assert "could not be read" not in result.stdout
    assert "undefined" not in result.stdout


@pytest.mark.prove
def test_a_slow_handler_in_php_is_named(tmp_path: Path) -> None:
    """The handler runs once, although the server stops waiting for it, and its attempt is on the timeline."""
    slow = """
    public function testSlow(): void
    {
        $runs = 0;
        $this->payOrder(function () use (&$runs) {
            if ($runs++ === 0) {
                sleep(8);
            }
        });
        $this->fail("runs: $runs");
    }
"""
    result = run_suite("php", tmp_path, PHP.replace("TESTS", slow))
    assert "attempt 1: no answer within 5 seconds: the webhook handler took 8." in result.stdout, (
        result.stdout
    )
    assert "do slow work afterwards" in result.stdout
    assert "runs: 2" in result.stdout, "one run for each webhook: processing and completed"
