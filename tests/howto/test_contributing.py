"""The page for contributors names existing files with room for changes, and tested recipes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from payment_sandbox.ui.docs.library import read_source
from payment_sandbox.web.merchant.merchant_face import MIDDLEWARES
from tests.support.changed_package import CHECKOUT, PACKAGE
from tests.test_budgets import MODULE_LINES_MAX

PAGE = read_source("contributing")
RECIPES = dict(re.findall(r"^## (Add .+?)\n\n(.+?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
PATH = re.compile(r"`([\w./-]+\.(?:py|tsv|md|json|yml))`")
ROOM_MIN = 20
FOLDERS = (PACKAGE, PACKAGE.parent, PACKAGE / "ui" / "docs" / "pages", CHECKOUT)


def named_files(text: str) -> Iterator[Path]:
    """Yield the files that a recipe names."""
    for name in set(PATH.findall(text)) - {"__init__.py"}:  # in any folder
        yield next((place / name for place in FOLDERS if (place / name).is_file()), Path(name))


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_files_of_a_recipe_exist_and_have_room(recipe: str) -> None:
    """Each file exists, and a few more lines do not exceed the limit of its length."""
    for file in named_files(RECIPES[recipe]):
        assert file.is_absolute(), f"{file} does not exist"
        if file.suffix == ".py":
            lines = file.read_text(encoding="utf-8").count("\n")
            assert lines + ROOM_MIN <= MODULE_LINES_MAX, f"{file} is full"


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_tested(recipe: str) -> None:
    """Each recipe names the test that follows it."""
    assert re.search(r"`tests/[\w/]+/test_\w+\.py` adds \w", RECIPES[recipe]), recipe


def test_the_middlewares_are_those_of_the_merchant_api() -> None:
    """The page names all middlewares in their order."""
    (names,) = re.findall(
        r"`web/merchant/merchant_face\.py` lists them in order: (.+?)\. An", PAGE, re.DOTALL
    )
    steps = [step for middleware in MIDDLEWARES for step in middleware if step is not None]
    assert re.findall(r"`(\w+)`", names) == [step.__name__ for step in steps]
