"""Ten planted mistakes are found with their cause, with and without books; their right twins are not accused."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.rehearsal.running import RehearsalResult, run_suite

FOUND: Final = """
shop            with books          without            before: with        without        what it does wrong
ShipsEarly      paid-for-nothing    shown-paid         paid-for-nothing    shown-paid     ships on processing
FirstOnly       payment-missed      shown-differently  payment-missed      -              looks at the first transaction
ReturnBooks     paid-for-nothing    shown-paid         paid-for-nothing    shown-paid     the return page books
SkipsCapture    lapsed              lapsed             -                   -              no capture after the return
RetriesBlindly  review CTL-23       review CTL-23      review CTL-23       review CTL-23  retries without a key
ShipsAgain      shipped-twice       -                  shipped-twice       -              a second webhook ships again
RefundDone      refunds-differ      -                  -                   -              takes a refund as done
LateTransfer    payment-missed      shown-differently  -                   -              ignores a late transfer
NewestSale      payment-missed      -                  payment-missed      -              another customer's payment
StoresCvc       secret              secret             secret              secret         stores the CVC
"""
"""The first finding of each shop, now and by the earlier driver, which accused nine of the right twins."""
ROWS: Final = [line.replace("review ", "review_").split() for line in FOUND.strip().splitlines()[1:]]


def rehearse_ten(folder: Path, **environment: str) -> RehearsalResult:
    """Rehearse all ten shops and their twins to the end."""
    shutil.copyfile(Path(__file__).with_name("ten_shops.py"), folder / "test_shop.py")
    return run_suite(folder, "--payment-rehearse", **environment)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], list[dict[str, Any]]]:
    """The findings of each shop, such as ``ShipsEarly-wrong``, with and without books."""
    found: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for has_books in (True, False):
        folder = tmp_path_factory.mktemp("ten")
        result = rehearse_ten(folder, **({} if has_books else {"NO_BOOKS": "1"}))
        assert all(test["left"] == 0 for test in result.tests), result.text[-3000:]
        found |= {
            (each["test"].partition("[")[2].rstrip("]"), has_books): each["findings"] for each in result.tests
        }
    return found


@pytest.mark.parametrize("has_books", [True, False], ids=["books", "no books"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_mistake_is_found_and_its_right_twin_is_not_accused(
    row: list[str], has_books: bool, findings: dict[tuple[str, bool], list[dict[str, Any]]]
) -> None:
    """The first finding has the kind in the table, and the right twin has none."""
    expected = row[1 if has_books else 2].replace("_", " ")
    assert findings[(f"{row[0]}-right", has_books)] == []
    wrong = findings[(f"{row[0]}-wrong", has_books)]
    assert [each["kind"] for each in wrong][:1] == ([] if expected == "-" else [expected])
