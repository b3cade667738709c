"""What the page for contributors says is so: its files are there, with room, and its recipes are tried."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from payment_sandbox.web.docs.library import read_source
from payment_sandbox.web.merchant.face import MIDDLEWARES
from tests.support.changed_package import CHECKOUT, PACKAGE
from tests.test_budgets import MODULE_LINES_MAX

PAGE = read_source("contributing")
RECIPES = dict(re.findall(r"^## (Add .+?)\n\n(.+?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
PATH = re.compile(r"`([\w./-]+\.(?:py|tsv|md|json|yml))`")
ROOM_MIN = 20
PLACES = (PACKAGE, PACKAGE.parent, PACKAGE / "web" / "docs" / "pages", CHECKOUT)


def places(text: str) -> Iterator[Path]:
    """The files that a recipe sends its reader to."""
    for name in set(PATH.findall(text)) - {"__init__.py"}:  # that of whichever folder it is
        yield next((place / name for place in PLACES if (place / name).is_file()), Path(name))


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_a_recipe_names_is_there_and_has_room(recipe: str) -> None:
    """Whoever follows it reaches no limit of length with the first lines."""
    for file in places(RECIPES[recipe]):
        assert file.is_absolute(), f"{file} is named, and is not there"
        if file.suffix == ".py":
            lines = file.read_text(encoding="utf-8").count("\n")
            assert lines + ROOM_MIN <= MODULE_LINES_MAX, f"{file} is full"


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_tried(recipe: str) -> None:
    """Each recipe names the test that follows it."""
    assert re.search(r"`tests/[\w/]+/test_\w+\.py` adds \w", RECIPES[recipe]), recipe


def test_the_middlewares_are_those_of_the_merchant_api() -> None:
    """All of them, in their order."""
    (told,) = re.findall(r"`web/merchant/face\.py`, in order: (.+?)\. Each", PAGE, re.DOTALL)
    assert re.findall(r"`(\w+)`", told) == [middleware.__name__ for middleware in MIDDLEWARES]
