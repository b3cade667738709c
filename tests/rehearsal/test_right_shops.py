"""A right shop has no findings: each test is a false alarm of an earlier release."""

from pathlib import Path

import pytest

from tests.rehearsal.test_rehearsing import A_SALE, BOOKS, rehearse_suite

ADDS_TO_A_CART = """    app.cart, app.amounts = [], {}

    @app.post("/cart")
    def add():
        app.cart.append(1000)
        return "added"

    @app.post("/buy")"""
BUYS_A_CART = """ORDER | {"amount": sum(app.cart)})["id"]
        app.amounts[order_id] = sum(app.cart)"""
CART = (
    BOOKS.replace('    @app.post("/buy")', ADDS_TO_A_CART)
    .replace('ORDER)["id"]', BUYS_A_CART)
    .replace("app.paid[order_id] = 1295", "app.paid[order_id] = app.amounts[order_id]")
    .replace("1295, paid)", "shop.amounts[order_id], paid, paid)")
    + """
def test_a_cart(payment_sandbox, shop):
    shop.test_client().post("/cart")
    bought(payment_sandbox, shop)
"""
)


LOOKS_OFTEN = (BOOKS + A_SALE).replace("PT1H", "PT1M").replace("def payment_books", "def no_books")


@pytest.mark.parametrize(
    ("tests", "variation"),
    [
        pytest.param(CART, "press:1:twice", id="the cart holds two items"),
        pytest.param(CART, "press:1:again-later", id="the cart changes after the checkout"),
        pytest.param(LOOKS_OFTEN, "action:1:walks-away", id="a job looks each minute"),
    ],
)
def test_a_right_shop_survives_a_variation(tmp_path: Path, tests: str, variation: str) -> None:
    """A right shop has no finding in a variation that looks like a mistake."""
    code, report, output = rehearse_suite(tmp_path, tests, f"--payment-rehearse-only={variation}")
    assert (code, report["findings"]) == (0, []), output[-3000:]


def test_a_shop_that_ships_what_is_in_the_cart_has_a_finding(tmp_path: Path) -> None:
    """It looks at the cart rather than at the paid order."""
    changed = CART.replace("app.paid[order_id] = app.amounts[order_id]", "app.paid[order_id] = sum(app.cart)")
    assert changed != CART
    code, report, output = rehearse_suite(tmp_path, changed, "--payment-rehearse-only=press:1:again-later")
    assert code == 1, output[-3000:]
    sentence = report["findings"][0]["sentence"]
    assert "€20.00 were shipped, but the purchase costs only €10.00" in sentence
