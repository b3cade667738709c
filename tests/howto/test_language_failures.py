"""Suites in other languages explain a shop's failures as clearly as suites in Python."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.howto.languages import copied
from tests.howto.test_languages import SUITES
from tests.support.commands import run
from tests.support.documentation import run_command
from tests.support.servers import make_server
from tests.support.tools import require

Edits = tuple[tuple[str, str, str], ...]
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
}
PAID_IN_SHOP: Final = {
    # the shop's file, and an edit after which the shop expects another status of a paid order
    "node": ("shop.mjs", '"completed"', '"paid"'),
    "php": ("Shop.php", "'completed'", "'paid'"),
}
TEST_NAMES: Final = {
    "node": "a paid order is shipped",
    "php": "ShopTest::testAPaidOrderIsShipped",
}
"""The packages name the project of a test after it."""
VARIABLE: Final = "PAYMENT_SANDBOX_REVIEW"
SENTENCE: Final = "did not read the order"
pytestmark = pytest.mark.prove
both_packages = pytest.mark.parametrize("language", TEST_NAMES)


def run_edited(
    language: str, tmp_path: Path, edits: Edits, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a suite after edits of its files."""
    programs, command, _ = SUITES[language]
    require(*programs)
    folder = tmp_path / language
    if not folder.exists():
        copied(language, tmp_path)
        for file, right, wrong in edits:
            text = (folder / file).read_text()
            assert right in text
            (folder / file).write_text(text.replace(right, wrong))
    return run_command(["bash", "-euc", command], folder, **environment)


@both_packages
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
    assert re.search(r"[Aa] ?[Pp]aid ?[Oo]rder.*: the review found a mistake", output), output
    refused = run_edited(language, tmp_path, (), **{VARIABLE: "loud"})
    assert refused.returncode != 0
    assert f"{VARIABLE} must be off, warn or error, not 'loud'" in refused.stdout + refused.stderr


@both_packages
def test_a_failed_test_prints_the_timeline(language: str, tmp_path: Path) -> None:
    """The timeline shows the status that the shop mistook, and the read of the order."""
    result = run_edited(language, tmp_path, (PAID_IN_SHOP[language],))
    assert result.returncode != 0
    printed = result.stdout + result.stderr
    order_id = re.search(r"order ([0-9a-f-]{36}) is completed", printed)
    assert order_id is not None, printed[-3000:]
    assert f"GET /v1/orders/{order_id[1]}/ -> 200" in printed


@both_packages
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
    assert reviewed.stdout.count("HOOK-08: ") > 1, reviewed.stdout
    assert f"\n  Test: {TEST_NAMES[language]}" in reviewed.stdout
