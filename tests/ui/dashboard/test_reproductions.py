"""A copied test fails with the faulty shop and passes with a correct one, for each kind of mistake."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.judge import test_judge as shops
from tests.judge.test_judge import Story, begin, handling, told
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop
from tests.support.suites import suite

__all__ = ["told"]

FIXTURE: Final = """
import pytest
from flask import Flask, request


@pytest.fixture
def shop(payment_sandbox):
    app, done = Flask("shop"), set()
    api, orders = payment_sandbox.session, f"{payment_sandbox.base_url}/v1/orders/"

    def read(order_id):
        order = api.get(f"{orders}{order_id}/").json()
        return order["status"] if "is-refund" not in order["flags"] else "a refund"

    def refund(order_id):
        api.post(f"{orders}{order_id}/refunds/", json={"amount": 500})

    def capture(order_id):
        attempt = api.get(f"{orders}{order_id}/").json()["transactions"][0]["id"]
        api.post(f"{orders}{order_id}/transactions/{attempt}/captures/")

    def once(what, order_id):
        if order_id not in done:
            done.add(order_id)
            what(order_id)

    @app.get("/thanks")
    def thanks():
        order_id = request.args["order_id"]
        RETURN
        return "thanks"

    @app.post("/webhook")
    def webhook():
        order_id = request.json["order_id"]
        WEBHOOK
        return "", 204

    JOB
    return app


"""
JOB: Final = (
    'payment_sandbox.every("PT6H", lambda: [read(row["id"]) for row in payment_sandbox.client.orders()])'
)


class ShopParts(NamedTuple):
    """The source code in which two shops differ."""

    webhook: str
    on_return: str = "pass"
    job: str = ""

    @property
    def source(self) -> str:
        """Return the module with the shop's fixture."""
        parts = {"RETURN": self.on_return, "WEBHOOK": self.webhook, "JOB": self.job}
        return re.sub("RETURN|WEBHOOK|JOB", lambda name: parts[name[0]], FIXTURE)


READS: Final = ShopParts("read(order_id)")
REFUNDS: Final = ShopParts('if read(order_id) != "a refund": refund(order_id)')
REFUNDS_ONCE: Final = ShopParts('if read(order_id) == "completed": once(refund, order_id)')
RETURNS_SURPLUS: Final = ShopParts("""order = api.get(f"{orders}{order_id}/?fields[]=amount_details").json()
        if order["amount_details"].get("received"):
            once(lambda paid: api.post(f"{orders}{paid}/refunds/", json={"amount": 1000}), order_id)""")
CAPTURES_ONCE: Final = ShopParts('if read(order_id) == "completed": once(capture, order_id)')


def redelivers_by_hand(sandbox: Sandbox, shop: Shop) -> None:
    """Let a developer redeliver a webhook after an hour to a shop that refunds each time."""
    order = sandbox.place(card(), amount=2450)
    sandbox.acted(order, "customer visit")
    sandbox.settle()
    handling(sandbox, shop, shops.refunds_a_part)
    sandbox.acted(order, "customer pay")
    sandbox.settle()
    sandbox.advance("PT1H")
    newest = sandbox.webhooks(order_id=order["id"])[-1]
    sandbox.post(f"/control/webhooks/{newest['id']}/redeliver/")


def captures_repeatedly(sandbox: Sandbox, shop: Shop) -> None:
    """Capture three times after all webhooks are answered, so no webhook explains the calls."""
    order = shops.pays(sandbox, card(capture_mode="manual", expiration_period="P7D"), amount=2450)
    for _ in range(3):
        shops.captures(sandbox, order["id"])
        sandbox.settle()


REPRODUCED: Final[list[tuple[Story, str, ShopParts, ShopParts]]] = [
    # story, mistake, wrong shop, right shop; one for each way to reproduce a mistake
    (shops.refunds_for_each_copy, "HOOK-10: Your shop refunded €5.00 four times", REFUNDS, REFUNDS_ONCE),
    (redelivers_by_hand, "HOOK-10: Your shop refunded €5.00 twice", REFUNDS, REFUNDS_ONCE),
    (
        shops.fails_at_every_webhook,
        "HOOK-09: Your shop answered the webhook with an error (500) ten times",
        ShopParts('return "", read(order_id) and 500'),
        READS,
    ),
    (shops.never_asks, "HOOK-12: Your shop does not know", READS, READS._replace(job=JOB)),
    (shops.keeps_a_surplus, "HOOK-13: The customer transferred", READS, REFUNDS_ONCE),
    (shops.keeps_a_second_payment, "A45: The customer paid an order", READS, RETURNS_SURPLUS),
    (
        shops.lets_the_authorization_expire,
        "CAP-03: The authorization expired",
        READS,
        CAPTURES_ONCE,
    ),
    (
        shops.trusts_the_return,
        "FLOW-15: The customer came back, but",
        READS,
        READS._replace(on_return="read(order_id)"),
    ),
]
BY_OWN_CALLS: Final[list[tuple[Story, str, str, str]]] = [
    # story, mistake, the shop's wrong call, the developer's replacement
    (shops.misspells, "SET-12: The service does not know", "'custommer'", "'customer'"),
    (shops.captures_too_late, "CAP-04: Your shop captured after", "'P8D'", "'P1D'"),
    (
        shops.refunds_again_after_a_lost_response,
        "CTL-23: Your shop refunded €5.00 twice",
        "    # Call your own code",
        "    (lambda: sandbox.session.get(orders + order_id + '/'))()\n    # Call your own code",
    ),
    (
        shops.forgets_its_first_order,
        "ORD-07: Two orders have",
        "    order_id = ",
        "    sandbox.session.delete(orders + sandbox.client.orders()[-1]['id'] + '/')\n    order_id = ",
    ),
    (
        shops.gives_up_at_a_refused_cancellation,
        "Your shop tried to cancel a paid order",
        "    sandbox.client.wait",
        "    sandbox.session.post(orders + order_id + '/refunds/')\n    sandbox.client.wait",
    ),
    (
        captures_repeatedly,
        "SET-47: Your shop had captured €24.50, and tried again: two calls were refused",
        "# Call your own code",
        "return\n    # Call",
    ),
    (
        shops.polls,
        "HOOK-02: Your shop read the order at least",
        "# Call your own code",
        "return\n    # Call",
    ),
]


def read_test_code(sandbox: Sandbox) -> str:
    """Return the test that the page of the newest order with a mistake offers."""
    browser = Dashboard(sandbox)
    for row in sandbox.get("/control/orders/").json()["items"]:
        page = browser.open(f"orders/{row['id']}/")
        code = page.block("test-code")
        if "make-a-test" in page.ids and code is not None:
            return code
    raise AssertionError("no order offers a test of its mistake")


def play_story(sandbox: Sandbox, shop: Shop, story: Story) -> str:
    """Play a story in an empty project and return the resulting test."""
    begin(sandbox, shop)
    story(sandbox, shop)
    return read_test_code(sandbox)


def run_modules(tmp_path: Path, modules: dict[str, str]) -> dict[str, str]:
    """Run the modules and return the failure report of each, empty if it passed."""
    for name, source in modules.items():
        (tmp_path / f"test_{name}.py").write_text(source)
    result = suite(tmp_path, "", "--tb=short")
    reports = re.split(r"^_{3,} test_order_\w+ _{3,}$", result.stdout, flags=re.MULTILINE)[1:]
    assert f"{len(modules) - len(reports)} passed" in result.stdout, result.stdout[-4000:]
    reports_by_name = {
        name: [report for report in reports if f"test_{name}.py:" in report] for name in modules
    }
    return {name: "".join(texts) for name, texts in reports_by_name.items()}


def test_a_copied_test_fails_for_the_wrong_shop_only(told: Sandbox, shop: Shop, tmp_path: Path) -> None:
    """The copied test works unchanged with the developer's fixture, and its report names the mistake."""
    modules: dict[str, str] = {}
    for number, (story, _, wrong, right) in enumerate(REPRODUCED):
        code = play_story(told, shop, story)
        assert "Fails until your handler is fixed" in code
        modules |= {f"wrong_{number}": wrong.source + code, f"right_{number}": right.source + code}
    reports = run_modules(tmp_path, modules)
    for number, (story, mistake, _, _) in enumerate(REPRODUCED):
        assert mistake in reports[f"wrong_{number}"], story.__name__
        assert not reports[f"right_{number}"], story.__name__


def test_a_wrong_call_of_the_shop_is_replaced(told: Sandbox, shop: Shop, tmp_path: Path) -> None:
    """The test repeats the wrong call with a comment, and passes when the developer corrects it."""
    modules: dict[str, str] = {}
    for number, (story, _, call, replacement) in enumerate(BY_OWN_CALLS):
        code = play_story(told, shop, story)
        assert "# Call your own" in code
        assert call in code, code
        modules |= {
            f"wrong_{number}": READS.source + code,
            f"right_{number}": READS.source + code.replace(call, replacement),
        }
    reports = run_modules(tmp_path, modules)
    for number, (story, mistake, _, _) in enumerate(BY_OWN_CALLS):
        assert mistake in reports[f"wrong_{number}"], story.__name__
        assert not reports[f"right_{number}"], story.__name__


@pytest.mark.parametrize(
    "story", [shops.refunds_at_a_double_click, shops.charges_after_a_decline, shops.has_no_address]
)
def test_irreproducible_mistakes_offer_no_test(told: Sandbox, shop: Shop, story: Story) -> None:
    """Mistakes that depend on concurrency, another order or a missing address offer no test of the order."""
    story(told, shop)
    browser = Dashboard(told)
    for row in told.get("/control/orders/").json()["items"]:
        page = browser.open(f"orders/{row['id']}/")
        assert ("make-a-test" in page.ids) == ("bad-verdict" not in page.answer.text)
