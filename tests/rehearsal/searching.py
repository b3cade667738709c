"""Searches the small shop for each mistake without a given variation, and right shops for false alarms.

``python -m tests.rehearsal.searching 60m`` rehearses the small shop for at most an hour, and then each right
shop for a minute.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from payment_sandbox.ui.docs.library import read_source
from tests.rehearsal import test_busy, test_rehearsing, test_right_shops
from tests.rehearsal.running import RIGHT, RehearsalResult, copy_cells, run_suite
from tests.support.blocks import blocks
from tests.support.suites import SHOP

PERIODS: Final = ("PT1M", "PT5M", "PT15M", "PT1H", "PT6H", "P1D")


def right_shops() -> Iterator[tuple[str, str]]:
    """Yield the name of each right shop, and its tests."""
    (example,) = [block for block in blocks(read_source("agents")) if block.language == "python"]
    yield "documentation", example.text
    yield "books", SHOP + test_rehearsing.BOOKS + test_rehearsing.A_SALE
    for manner in test_busy.LOCK_ARGUMENTS:
        yield f"busy: {manner}", SHOP + test_busy.suite_with_lock(manner)
    yield "cart", SHOP + test_right_shops.CART
    yield "catches up", SHOP + test_right_shops.CATCHES_UP
    for period in PERIODS:
        yield f"job every {period}", SHOP + test_right_shops.LOOKS_OFTEN.replace("PERIOD", period)


def search_mistakes(budget: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each mistake, and the effects that a search finds with it but not in the right shop."""
    with TemporaryDirectory() as name:
        copy_cells(Path(name))
        options = ("--payment-rehearse", f"--payment-rehearse-budget={budget}")
        tests = run_suite(Path(name), *options, SEARCH="1").tests
    effects: dict[tuple[str, str], set[str]] = defaultdict(set)
    for test in tests:
        flow, *_, mistake = test["test"].partition("[")[2].rstrip("]").split("-")
        effects[flow, mistake].update(finding["effect"] for finding in test["findings"])
    for (flow, mistake), observed in effects.items():
        if mistake != "right":
            yield f"{flow}: {mistake}", sorted(observed - effects[flow, "right"])


def search_false_alarms() -> Iterator[tuple[str, RehearsalResult]]:
    """Yield each right shop, and the result of a rehearsal."""
    with TemporaryDirectory() as name:
        copy_cells(Path(name))
        yield "small shop", run_suite(Path(name), "--payment-rehearse", "-k", RIGHT, SEARCH="1")
    for shop, tests in right_shops():
        with TemporaryDirectory() as name:
            (Path(name) / "test_shop.py").write_text(tests)
            yield shop, run_suite(Path(name), "--payment-rehearse")


def main() -> None:
    """Print the effects of each mistake and the findings of each right shop; a false alarm is an error."""
    os.environ.pop("PYTEST_ADDOPTS", None)
    found = alarms = 0
    for mistake, effects in search_mistakes([*sys.argv[1:], "30m"][0]):
        found += bool(effects)
        print(json.dumps({"mistake": mistake, "effects": effects}, ensure_ascii=False), flush=True)
    for shop, result in search_false_alarms():
        alarms += result.code != 0
        sentences = [finding["sentence"] for finding in result.findings]
        print(json.dumps({"shop": shop, "variations": result.count("variations"), "findings": sentences}))
    print(json.dumps({"found": found, "false alarms": alarms}))
    sys.exit(int(alarms > 0))


if __name__ == "__main__":
    main()
