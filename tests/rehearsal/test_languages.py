"""Suites for Node and PHP: each test is judged on its own, with its books, and the right one is named."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.documentation import environment
from tests.support.languages import INSTALL, require

SUITES = Path(__file__).parent / "suites"


class Planted(NamedTuple):
    """A mistake, the variation that shows it, the test that it is in, and what it does there."""

    name: str
    variation: str
    test: str
    effect: str


class Language(NamedTuple):
    """A suite with two tests, how it is run, as a whole and one test of it, and its mistakes."""

    name: str
    programs: tuple[str, ...]
    command: tuple[str, ...]
    one: str
    mistakes: tuple[Planted, Planted]


NODE = Language(
    "node",
    ("node",),
    ("node", "--test"),
    "node --test --test-name-pattern={test}",
    (
        Planted(
            "counts-webhooks", "action:1:fails", "a paid sale is shipped", "S-1: the shop marks it as paid"
        ),
        Planted(
            "refunds-again",
            "change:1:answer-lost",
            "a sale is given back (in part)",
            "S-2: the shop recorded refunds of €5.00, but the customer received €10.00",
        ),
    ),
)
PHPUNIT = "phpunit --bootstrap vendor/autoload.php ShopTest.php"
PHP = Language(
    "php",
    ("php", "phpunit", "composer"),
    tuple(PHPUNIT.split()),
    f"{PHPUNIT} --filter {{test}}",
    (
        Planted(
            "believes-webhooks",
            "action:1:fails",
            "ShopTest::testAPaidSaleIsShipped",
            "S-1: the shop marks it as paid, but no payment was made",
        ),
        Planted(
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
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
main()
"""


def begun(language: Language, folder: Path, *options: str, mistakes: str = "") -> "subprocess.Popen[str]":
    """Begin to rehearse a copy of a language's suite, into which mistakes are planted."""
    require(*language.programs)
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
    """Rehearse it to the end."""
    with begun(language, folder, *options, mistakes=mistakes) as process:
        printed, said = process.communicate(timeout=200)
    return subprocess.CompletedProcess(process.args, process.returncode, printed, said)


def findings(ran: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The findings, as JSON says them."""
    told: dict[str, Any] = json.loads(ran.stdout)
    assert [test["test"] for test in told["tests"]], ran.stderr
    found: list[dict[str, Any]] = told["findings"]
    return found


def only(language: Language) -> list[str]:
    """The options that play the variations which show the mistakes."""
    return [word for planted in language.mistakes for word in ("--only", planted.variation)]


@every_language
def test_planted_mistakes_are_named_with_their_tests(language: Language, tmp_path: Path) -> None:
    """Each variation is played in both tests; each is judged on its own, by its shop's books."""
    names = " ".join(planted.name for planted in language.mistakes)
    ran = rehearse(language, tmp_path / "suite", *only(language), "--json", mistakes=names)
    told = findings(ran)
    assert ran.returncode == 1
    for planted in language.mistakes:
        finding = next(each for each in told if planted.effect in each["effect"])
        assert (finding["test"], finding["variation"]) == (planted.test, planted.variation)
        assert finding["section"].startswith("/docs/mistakes/#")
        assert finding["sentence"] == f"{finding['change']}: {finding['effect']}"
        assert f'--only "{planted.variation}" --test ' in finding["again"]
    if language is NODE:
        line = next(each["line"] for each in told if each["variation"] == "change:1:answer-lost")
        assert re.fullmatch(r"shop\.mjs:\d+", line), "where the shop makes the changed call"


def test_a_finding_of_two_changes_is_confirmed_alone(tmp_path: Path) -> None:
    """A shop without a job and books, whose review shows the loss of both webhooks days after the test."""
    require(*NODE.programs)
    folder = shutil.copytree(SUITES / NODE.name, tmp_path / "suite")
    INSTALL[NODE.name](folder)
    suite = folder / "shop.test.mjs"
    lines = suite.read_text().splitlines(keepends=True)
    less = [line for line in lines if "sandbox.every" not in line and "tellBooks" not in line]
    assert len(less) == len(lines) - 2
    suite.write_text("".join(less))
    both = "webhook:1:lost+webhook:2:lost"
    ran = rehearse(NODE, folder, "--only", both, "--json")
    assert {(each["test"], each["variation"]) for each in findings(ran)} >= {(NODE.mistakes[1].test, both)}
    assert ran.returncode == 1


@pytest.mark.prove
@pytest.mark.parametrize("language", [NODE, PHP], ids=lambda language: language.name)
def test_a_right_shop_is_silent(language: Language, tmp_path: Path) -> None:
    """After the same changes, where its runner runs one test at a time."""
    ran = rehearse(language, tmp_path / "suite", *only(language), "--one", language.one)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 tests rehearsed in 4 variations: no findings" in ran.stdout
    assert "changing one thing at a time in 2 tests" in ran.stderr


@pytest.mark.prove
def test_what_was_tried_is_not_tried_again(tmp_path: Path) -> None:
    """After Ctrl-C, which still reports what was found."""
    with begun(NODE, tmp_path / "suite", "--budget", "10m") as stopped:
        assert stopped.stderr is not None
        lines = iter(stopped.stderr.readline, "")
        assert next((line for line in lines if " tried, no findings, " in line), None), (
            "it says how it goes on"
        )
        stopped.send_signal(signal.SIGINT)
        printed, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    assert "some variations were not tried: --continue resumes with them" in printed
    ran = rehearse(NODE, tmp_path / "suite", "--budget", "1s", "--continue")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " variations were tried before" in ran.stderr


@pytest.mark.prove
def test_tests_are_named_where_none_matches(tmp_path: Path) -> None:
    """So that a new user sees their names."""
    ran = rehearse(NODE, tmp_path / "suite", "--test", "refund")
    assert ran.returncode == 2
    names = "'a paid sale is shipped', 'a sale is given back (in part)'"
    assert f"no test has 'refund' in its name; the tests are: {names}" in ran.stderr
