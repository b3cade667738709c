"""Suites for Node and PHP: each test has its own verdict and books, and a finding names its test."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.rehearsal.running import assert_reproduced
from tests.support.documentation import environment
from tests.support.languages import INSTALL
from tests.support.tools import require

SUITES = Path(__file__).parent / "suites"


class PlantedMistake(NamedTuple):
    """A mistake, the variation and the test that reveal it, and its effect."""

    name: str
    variation: str
    test: str
    effect: str


class Language(NamedTuple):
    """A suite with two tests, the command for the suite, and its mistakes."""

    name: str
    packages: tuple[str, ...]
    command: tuple[str, ...]
    mistakes: tuple[PlantedMistake, PlantedMistake]


NODE = Language(
    "node",
    ("nodejs",),
    ("node", "--test"),
    (
        PlantedMistake(
            "counts-webhooks", "action:1:fails", "a paid sale is shipped", "S-1: the shop marks it as paid"
        ),
        PlantedMistake(
            "refunds-again",
            "change:1:answer-lost",
            "a sale is refunded (in part)",
            "S-2: the shop recorded refunds of €5.00, but the customer received €10.00",
        ),
    ),
)
PHP = Language(
    "php",
    ("php-cli", "php-curl", "phpunit", "composer"),
    ("phpunit", "--bootstrap", "vendor/autoload.php", "ShopTest.php"),
    (
        PlantedMistake(
            "believes-webhooks",
            "action:1:fails",
            "ShopTest::testAPaidSaleIsShipped",
            "S-1: the shop marks it as paid, but no payment was made",
        ),
        PlantedMistake(
            "believes-failures",
            "change:1:answer-lost",
            "ShopTest::testASaleIsRefunded",
            "S-2: the shop recorded refunds of €0.00, but the customer received €25.90",
        ),
    ),
)
every_language = pytest.mark.parametrize(
    "language", [NODE, pytest.param(PHP, marks=pytest.mark.prove)], ids=lambda language: language.name
)


INTERRUPTIBLE = """
import signal
from payment_sandbox.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it by default
main()
"""


def start_rehearsal(
    language: Language, folder: Path, *options: str, mistakes: str = ""
) -> "subprocess.Popen[str]":
    """Start to rehearse a copy of a language's suite with planted mistakes."""
    require(*language.packages)
    if not folder.exists():
        shutil.copytree(SUITES / language.name, folder)
        INSTALL[language.name](folder)
    return subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "rehearse", *options, "--", *language.command],
        cwd=folder,
        env=environment(MISTAKES=mistakes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rehearse(
    language: Language, folder: Path, *options: str, mistakes: str = ""
) -> subprocess.CompletedProcess[str]:
    """Rehearse a copy of a language's suite to the end."""
    with start_rehearsal(language, folder, *options, mistakes=mistakes) as process:
        printed, errors = process.communicate(timeout=280)
    return subprocess.CompletedProcess(process.args, process.returncode, printed, errors)


def findings(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the findings of the JSON report."""
    tests: list[dict[str, Any]] = json.loads(result.stdout)["tests"]
    assert tests, result.stderr
    return [{"test": test["test"], **finding} for test in tests for finding in test["findings"]]


def only_options(language: Language) -> list[str]:
    """Return the options that select the variations of the mistakes."""
    return [word for mistake in language.mistakes for word in ("--only", mistake.variation)]


@every_language
def test_planted_mistakes_are_named_with_their_tests(language: Language, tmp_path: Path) -> None:
    """Each finding names its variation, and the only test that shows it."""
    names = " ".join(mistake.name for mistake in language.mistakes)
    result = rehearse(language, tmp_path / "suite", *only_options(language), "--json", mistakes=names)
    reported = findings(result)
    assert result.returncode == 1
    for mistake in language.mistakes:
        finding = next(each for each in reported if mistake.effect in each["effect"])
        assert (finding["test"], finding["variation"]) == (mistake.test, mistake.variation)
        assert finding["section"].startswith("/docs/mistakes/#")
        assert finding["sentence"] == f"{finding['change']}: {finding['effect']}"
        assert f'--only "{mistake.variation}" --test ' in finding["again"]
    if language is NODE:
        line = next(each["line"] for each in reported if each["variation"] == "change:1:answer-lost")
        assert re.fullmatch(r"shop\.mjs:\d+", line), "where the shop makes the changed call"
        by_test = {each["test"]: each for each in reported}
        assert_reproduced([*by_test.values()], tmp_path / "suite", MISTAKES=names)


def test_a_finding_of_two_changes_is_confirmed_alone(tmp_path: Path) -> None:
    """The review reports the loss of both webhooks in a shop without a job and books."""
    require(*NODE.packages)
    folder = shutil.copytree(SUITES / NODE.name, tmp_path / "suite")
    INSTALL[NODE.name](folder)
    suite = folder / "shop.test.mjs"
    lines = suite.read_text().splitlines(keepends=True)
    reduced = [line for line in lines if "sandbox.every" not in line and "tellBooks" not in line]
    assert len(reduced) == len(lines) - 2
    suite.write_text("".join(reduced))
    pair = "webhook:1:lost+webhook:2:lost"
    result = rehearse(NODE, folder, "--only", pair, "--json")
    assert {(each["test"], each["variation"]) for each in findings(result)} >= {(NODE.mistakes[1].test, pair)}
    assert result.returncode == 1


@pytest.mark.prove
@pytest.mark.parametrize("language", [NODE, PHP], ids=lambda language: language.name)
def test_a_correct_shop_has_no_findings(language: Language, tmp_path: Path) -> None:
    """A correct shop has no findings."""
    result = rehearse(language, tmp_path / "suite", *only_options(language))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 tests rehearsed in 4 variations: no findings" in result.stdout
    assert "changing one thing at a time in 2 tests" in result.stderr


@pytest.mark.prove
def test_an_interrupted_rehearsal_reports_its_findings(tmp_path: Path) -> None:
    """Ctrl-C ends a rehearsal with its findings so far."""
    with start_rehearsal(NODE, tmp_path / "suite", "--budget", "10m") as interrupted:
        assert interrupted.stderr is not None
        lines = iter(interrupted.stderr.readline, "")
        assert next((line for line in lines if " tried, no findings, " in line), None), (
            "the progress is not printed"
        )
        interrupted.send_signal(signal.SIGINT)
        printed, _ = interrupted.communicate(timeout=280)
    assert interrupted.returncode == 130
    assert "2 tests rehearsed in " in printed


@pytest.mark.prove
def test_an_unknown_test_name_lists_the_tests(tmp_path: Path) -> None:
    """If no test matches, the error lists the test names."""
    result = rehearse(NODE, tmp_path / "suite", "--test", "checkout")
    assert result.returncode == 2
    names = "'a paid sale is shipped', 'a sale is refunded (in part)'"
    assert f"no test has 'checkout' in its name; the tests are: {names}" in result.stderr
