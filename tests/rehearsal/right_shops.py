"""Rehearses shops without mistakes in full: every finding is a false alarm.

``python -m tests.rehearsal.right_shops 60s`` rehearses each shop for at most a minute.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from payment_sandbox.ui.docs.library import read_source
from tests.rehearsal import test_busy, test_rehearsing, test_right_shops
from tests.rehearsal.planting import RehearsalResult, plant_mistake, run_suite
from tests.support.blocks import blocks
from tests.support.documentation import ROOT
from tests.support.suites import SHOP

PROJECTS: Final = ROOT / "tests" / "howto" / "projects"
FRAMEWORKS: Final = {"flask": "sqlalchemy", "fastapi": "fastapi", "django": "pytest_django"}
"""The package of each example."""
FLASK_JOB: Final = """
    def look():
        for sale in app.database.query(Sale).filter_by(status="open").all():
            app.test_client().post("/webhook", json={"order_id": sale.order_id})

    payment_sandbox.every("PT1H", look)
    return app
"""
FASTAPI_JOB: Final = """
    shop.ordered.clear()

    def look():
        for order_id in shop.ordered - shop.paid:
            TestClient(shop.app).post("/webhook", json={"order_id": order_id})

    payment_sandbox.every("PT1H", look)
    return payment_sandbox
"""
DJANGO_JOB: Final = """
import pytest
from django.test import Client
from shop.models import Sale


@pytest.fixture(autouse=True)
def look(request):
    def look():
        for sale in Sale.objects.filter(status="open"):
            data = {"order_id": sale.order_id}
            Client().post("/payments/webhook/", data, content_type="application/json")

    if "payment_sandbox" in request.fixturenames:
        request.getfixturevalue("payment_sandbox").every("PT1H", look)
"""
JOBS: Final = {
    "flask": {"test_shop.py": [("    return app\n", FLASK_JOB)]},
    "fastapi": {
        "test_shop.py": [("    return payment_sandbox\n", FASTAPI_JOB)],
        "shop.py": [
            ("paid: set[str]", "ordered: set[str] = set()\npaid: set[str]"),
            ("    order = answer.json()\n", "    order = answer.json()\n    ordered.add(order['id'])\n"),
        ],
    },
    "django": {"conftest.py": [("", DJANGO_JOB)]},
}
"""The edits of each example's files that add a job: it reads open orders, so that no payment is lost."""
PERIODS: Final = ("PT1M", "PT5M", "PT15M", "PT1H", "PT6H", "P1D")
PlaceShop = Callable[[Path], object]
"""Places a shop and its tests in a folder."""


def write_tests(text: str) -> PlaceShop:
    """Return a function that writes a shop with its tests in one file."""
    return lambda folder: (folder / "test_shop.py").write_text(text)


def copy_project(name: str) -> PlaceShop:
    """Return a function that copies the example of a framework, and adds a job."""

    def place(folder: Path) -> None:
        shutil.copytree(PROJECTS / name, folder, dirs_exist_ok=True)
        for file, edits in JOBS[name].items():
            text = (folder / file).read_text() if (folder / file).exists() else ""
            for old, new in edits:
                assert text.count(old) == 1, (name, file, old)
                text = text.replace(old, new)
            (folder / file).write_text(text)

    return place


def right_shops() -> Iterator[tuple[str, PlaceShop]]:
    """Yield the name of each shop, and the function that places it."""
    yield "sock shop with books", lambda folder: plant_mistake(folder, None)
    yield "sock shop without books", lambda folder: plant_mistake(folder, None, has_books=False)
    installed = (name for name, package in FRAMEWORKS.items() if find_spec(package) is not None)
    yield from ((name, copy_project(name)) for name in installed)
    (example,) = [block for block in blocks(read_source("agents")) if block.language == "python"]
    yield "documentation", write_tests(example.text)
    yield "locked", write_tests(SHOP + test_rehearsing.LOCKED + test_rehearsing.A_SALE)
    for manner in test_busy.LOCK_ARGUMENTS:
        yield f"busy: {manner}", write_tests(SHOP + test_busy.suite_with_lock(manner))
    yield "cart", write_tests(SHOP + test_right_shops.CART)
    yield "catches up", write_tests(SHOP + test_right_shops.CATCHES_UP)
    for period in PERIODS:
        text = test_right_shops.LOOKS_OFTEN.replace("PERIOD", period)
        yield f"job every {period}", write_tests(SHOP + text)


def rehearse_shop(place: PlaceShop, budget: str) -> RehearsalResult:
    """Rehearse a shop in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place(folder)
        return run_suite(folder, "--payment-rehearse", f"--payment-rehearse-budget={budget}")


def main() -> None:
    """Rehearse all shops, or those whose names contain a text, and print their findings as JSON lines."""
    budget, wanted = [*sys.argv[1:], *("60s", "")[len(sys.argv) - 1 :]][:2]
    variations = findings = 0
    for name, place in right_shops():
        if wanted not in name:
            continue
        result = rehearse_shop(place, budget)
        variations += result.count("variations")
        findings += len(result.findings) + (result.code != 0 and not result.findings)
        summary = {
            "shop": name,
            "code": result.code,
            "seconds": round(result.seconds, 1),
            "tests": len(result.tests),
            "variations": result.count("variations"),
            "alike": result.count("alike"),
            "left": result.count("left"),
            "findings": [f"{each['again']}: {each['sentence']}" for each in result.findings],
            "notes": sorted({note for test in result.tests for note in test["notes"]}),
        }
        print(json.dumps(summary, ensure_ascii=False), flush=True)
        if result.code and not result.findings:
            print(result.text[-2000:], file=sys.stderr)
    print(json.dumps({"variations": variations, "findings": findings}))
    sys.exit(int(findings > 0))


if __name__ == "__main__":
    main()
