"""The tests of the planted shops, one for each shop and variation; copied to a folder with the shops."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import shops  # type: ignore[import-not-found]

from payment_sandbox import BookEntry, PaymentSandbox

CASES = tuple(line.split() for line in os.environ.get("CASES", "").splitlines())


def cases() -> list[Any]:
    """Return each shop with its variation, or for a search without one."""
    return [
        pytest.param(
            name,
            is_wrong == "wrong",
            marks=pytest.mark.payment_rehearse(only=variation) if variation != "-" else (),
            id=f"{name}-{variation}-{is_wrong}",
        )
        for name, variation, is_wrong in CASES
    ]


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox, name: str, mistake: bool) -> shops.Shop:
    """The shop."""
    kind: type[shops.Shop] = getattr(shops, name)
    return kind(payment_sandbox, mistake)


@pytest.fixture
def payment_books(shop: shops.Shop) -> Callable[[], list[BookEntry]] | None:
    """The books, if the shop has any."""
    return shop.books if shop.has_books else None


@pytest.fixture
def payment_shop_restart(shop: shops.Shop) -> Any:
    """Restart the shop."""
    return shop.restart


@pytest.mark.parametrize(("name", "mistake"), cases())
def test_a_shop(shop: shops.Shop) -> None:
    """A customer buys and pays."""
    shop.test()
