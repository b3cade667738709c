"""The review reports mistakes of an integration, and nothing for a correct one."""

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import Finding, review
from tests.judge.test_judge import (
    MANUAL,
    TWICE,
    Story,
    captures,
    charges_after_a_decline,
    handling,
    lose,
    mistakes,
    pays,
    refunds_once,
    stored_card_charge,
    told,
)
from tests.support.dashboard import Dashboard
from tests.support.driver import LINES, LINES_TOTAL, Sandbox, by, card
from tests.support.payer import Payer, payment_page
from tests.support.shop import Received, Shop

__all__ = ["told"]


def findings(sandbox: Sandbox) -> list[Finding]:
    """Return the findings, except that of a missing address for webhooks."""
    all_findings = review(SandboxClient(sandbox.url, sandbox.key))
    return [finding for finding in all_findings if finding.rule != "HOOK-03"]


def lose_a_response(sandbox: Sandbox) -> None:
    """Replace the response to the first POST with an error, after the call is executed."""
    fault = {"when": {"method": "POST", "nth": 1}, "then": {"status": 504, "phase": "after"}}
    sandbox.put("/control/faults/", {"faults": [fault]})


def cancels_by_itself(sandbox: Sandbox, shop: Shop) -> None:
    """Cancel an order, and learn its status from the response."""
    sandbox.settings(webhook_url=shop.url)
    sandbox.delete(f"/v1/orders/{sandbox.place(card())['id']}/")
    sandbox.settle()


def reads_before_it_retries(sandbox: Sandbox, shop: Shop) -> None:
    """Read and cancel the lost order, then create another one."""
    lose_a_response(sandbox)
    sandbox.create(card())
    (lost,) = {entry["order_id"] for entry in sandbox.get("/control/journal/").json()["items"]}
    sandbox.read({"id": lost})
    sandbox.delete(f"/v1/orders/{lost}/")
    sandbox.create(card())


def remembers_what_it_refunded(sandbox: Sandbox, shop: Shop) -> None:
    """Refund once, however many webhooks arrive."""
    sandbox.put("/control/faults/", TWICE)
    handling(sandbox, shop, refunds_once())
    pays(sandbox, amount=2450)


def refunds_two_parts(sandbox: Sandbox, shop: Shop) -> None:
    """Refund two equal parts, one after the other."""
    sandbox.put("/control/faults/", TWICE)
    order = pays(sandbox, amount=2450)
    for _ in range(2):
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
        sandbox.settle()


def looks_after_a_lost_response(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order after a lost response, then refund an equal second part."""
    order = pays(sandbox, amount=2450)
    lose(sandbox, f"/v1/orders/{order['id']}/refunds/")
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.read(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()


def tries_again_after_the_first_has_expired(sandbox: Sandbox, shop: Shop) -> None:
    """Create a second order with the number of an expired one."""
    sandbox.place(card(expiration_period="PT10M"), merchant_order_id="S-1001")
    sandbox.advance("PT11M")
    sandbox.settle()
    pays(sandbox, merchant_order_id="S-1001")


def tries_again_after_a_decline(sandbox: Sandbox, shop: Shop) -> None:
    """Create a second order after a declined card."""
    sandbox.acted(sandbox.place(card(), merchant_order_id="S-1001"), "customer fail")
    sandbox.settle()
    pays(sandbox, merchant_order_id="S-1001")


def refunds_when_it_cannot_cancel(sandbox: Sandbox, shop: Shop) -> None:
    """Refund an order whose cancellation is refused."""
    order = pays(sandbox)
    sandbox.delete(f"/v1/orders/{order['id']}/")
    sandbox.read(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": order["amount"]})
    sandbox.settle()


def asks_once_a_day(sandbox: Sandbox, shop: Shop) -> None:
    """Read open orders once a day, because webhooks can get lost."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    order = pays(sandbox)
    sandbox.advance("P1D")
    sandbox.read(order)
    sandbox.advance("P2D")


def returns_a_surplus(sandbox: Sandbox, shop: Shop) -> None:
    """Refund the excess of a transfer."""
    order = sandbox.place(by("bank-transfer"), amount=1000)
    sandbox.acted(order, "bank credit", amount=1500)
    sandbox.settle()
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()
    sandbox.advance("P2D")


def misses_dropped_webhooks(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order on the customer's return, since its webhooks are dropped."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    sandbox.read(pays(sandbox))


def sends_two_subscribers_the_same(sandbox: Sandbox, shop: Shop) -> None:
    """Charge two stored cards with the same amount."""
    for _ in range(2):
        sandbox.place(stored_card_charge(sandbox, shop), amount=700)
    sandbox.settle()


def captures_again_after_a_refusal_that_was_lost(sandbox: Sandbox, shop: Shop) -> None:
    """Capture again after a refusal that was lost."""
    order = sandbox.place(MANUAL, amount=2000)
    captures_path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/"
    early = {"when": {"method": "POST", "nth": 1}, "then": {"reset": True, "phase": "after"}}
    sandbox.put("/control/faults/", {"faults": [early]})
    with pytest.raises(requests.ConnectionError):
        sandbox.post(captures_path, {})
    sandbox.put("/control/settings/", {"webhook_url": None})
    sandbox.acted(order, "customer pay")
    assert sandbox.post(captures_path, {}).status_code == 200
    sandbox.read(order)
    sandbox.settle()


def follows_every_advice(sandbox: Sandbox, shop: Shop) -> None:
    """Know the purchase by its number, cancel before another order, capture in time, and read refunds."""
    purchases = {"S-1001", "S-1002"}

    def answer(received: Received) -> int:
        return 200 if sandbox.read(received.body["order_id"])["merchant_order_id"] in purchases else 503

    shop.answer = answer
    sandbox.settings(webhook_timing="before_response")
    first = sandbox.place(card(), merchant_order_id="S-1001", amount=2450)
    sandbox.delete(f"/v1/orders/{first['id']}/")
    addresses = {"return_url": "https://shop.example/thanks", "webhook_url": f"{shop.url}?at=another"}
    sandbox.place(
        customer={"first_name": "Jan"}, extra={"colour": "blue"}, merchant_order_id="S-1002", **addresses
    )
    lines = {"amount": LINES_TOTAL, "order_lines": LINES, "merchant_order_id": "S-1001"}
    order = pays(sandbox, MANUAL, **lines)
    sandbox.advance("P6D")
    captures(sandbox, order["id"], 1500)
    sandbox.take(order, "voids/amount", {"amount": 500})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.advance("P2D")


def stops_after_a_decline(sandbox: Sandbox, shop: Shop) -> None:
    """Stop the series after a declined payment."""
    charges_after_a_decline(sandbox, shop, again=False)


def reads_when_the_customer_is_back(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order when the customer returns, paid or not."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    order = sandbox.place(by("wallet-web"), amount=2450, return_url="http://shop.example/thanks")
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "cancel")
    sandbox.read(order)


RIGHT: list[Story] = [
    captures_again_after_a_refusal_that_was_lost,
    remembers_what_it_refunded,
    refunds_two_parts,
    looks_after_a_lost_response,
    tries_again_after_the_first_has_expired,
    tries_again_after_a_decline,
    refunds_when_it_cannot_cancel,
    asks_once_a_day,
    returns_a_surplus,
    misses_dropped_webhooks,
    sends_two_subscribers_the_same,
    follows_every_advice,
    stops_after_a_decline,
    reads_when_the_customer_is_back,
]
ALSO_RIGHT: list[Story] = [
    cancels_by_itself,
    reads_before_it_retries,
]


@pytest.mark.parametrize("story", [*RIGHT, *ALSO_RIGHT], ids=lambda story: story.__name__)
def test_a_shop_that_resembles_a_wrong_one_has_no_mistake(told: Sandbox, shop: Shop, story: Story) -> None:
    """Handling copies, retries, lost responses and refusals correctly is no mistake, and marked on no page."""
    story(told, shop)
    assert mistakes(told) == []
    browser = Dashboard(told)
    for row in told.get("/control/orders/?limit=100").json()["items"] if story in RIGHT else ():
        page = browser.open(f"orders/{row['id']}/").answer.text
        assert "bad-verdict" not in page
        assert 'class="row missing"' not in page
    assert '<tr class="wrong"' not in browser.open("orders/").answer.text or story in ALSO_RIGHT
    assert 'class="finding"' not in browser.open("mistakes/").answer.text


def test_orders_that_the_journal_had_to_cut_are_reviewed_too(watched: Sandbox) -> None:
    """Responses longer than the journal's limit are reviewed."""
    lines = [{"name": "x" * 200, "amount": 1, "quantity": 1} for _ in range(120)]
    order = watched.place(by("wallet-web"), amount=120, order_lines=lines)
    for _ in range(7):
        assert len(watched.get(f"/v1/orders/{order['id']}/").content) > 16_384
    reported = review(SandboxClient(watched.url, watched.key))
    assert [finding.rule for finding in reported] == ["HOOK-02"]


def test_refused_calls_are_hints(sandbox: Sandbox) -> None:
    """Each kind of refused call is one hint, since tests may send it on purpose."""
    order = sandbox.place(card())
    for amount in (12.5, 12.5, 13.5):
        sandbox.create(card(), amount=amount)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {})
    sandbox.get("/v1/orders/unknown/")
    by_problem = {finding.problem: finding for finding in findings(sandbox)}
    problems = sorted(finding.problem for finding in findings(sandbox))
    assert {finding.kind for finding in by_problem.values()} == {"hint"}
    assert [problem.split(":")[0] for problem in problems] == [
        "The service refused 3 calls, the first with 400 ValidationError",
        "The service refused a call",
        "The service refused a call",
    ]
    assert any("Read the order" in finding.advice for finding in findings(sandbox))


@pytest.mark.parametrize("path", ["/v1/orders/", "/v1/orders/{id}/refunds/"])
def test_a_shop_that_got_no_id_need_not_read_the_order(sandbox: Sandbox, shop: Shop, path: str) -> None:
    """If the response with the id was lost, an unread webhook is no finding."""
    order = sandbox.place(card())
    sandbox.pay(order)
    sandbox.settings(webhook_url=shop.url)
    lose_a_response(sandbox)
    if "refunds" in path:
        sandbox.post(path.format(**order), {"amount": 500})
    else:
        sandbox.create(card())
        lost = sandbox.get("/control/journal/").json()["items"][-1]["order_id"]
        sandbox.acted({"id": lost}, "customer pay")
    sandbox.settle()
    assert shop.received
    assert findings(sandbox) == []
    if "refunds" not in path:
        sandbox.delete(f"/v1/orders/{lost}/")  # so the shop knows the id
        assert [finding.rule for finding in findings(sandbox)][:1] == ["HOOK-08"]


def test_money_for_a_cancelled_order_is_named_until_it_is_returned(told: Sandbox) -> None:
    """A transfer can arrive after the shop has cancelled its order; the shop has a day to return it."""
    told.settings(mode="live")
    order = told.place(by("bank-transfer"), amount=700)
    told.delete(f"/v1/orders/{order['id']}/")
    told.advance("P2D")
    told.acted(order, "bank credit")
    named = "The customer paid €7.00 for an order that was cancelled, and your shop did not return €7.00"
    for period, is_named in (("PT23H", False), ("PT1H", True)):
        told.advance(period)
        items = told.get("/control/review/").json()["items"]
        assert (named in {item["problem"] for item in items}) is is_named
    told.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 700})
    items = told.get("/control/review/").json()["items"]
    assert named not in {item["problem"] for item in items}


@pytest.mark.rule("A01")
def test_a_missing_final_slash_is_named_once(told: Sandbox) -> None:
    """It works here; a shop that always sends it gets no hint."""
    told.post("/v1/orders/", {"currency": "EUR", "amount": 5})
    assert "final slash" not in told.get("/control/review/").text
    for _ in range(2):
        assert told.post("/v1/orders", {"currency": "EUR", "amount": 5}).status_code == 201
    hints = [
        item for item in told.get("/control/review/").json()["items"] if "final slash" in item["problem"]
    ]
    assert [(item["rule"], item["kind"]) for item in hints] == [("SET-01", "hint")]


@pytest.mark.parametrize(("period", "is_found"), [("PT9M", True), ("PT10M", False)])
def test_reading_every_ten_minutes_is_what_the_service_advises(
    told: Sandbox, period: str, is_found: bool
) -> None:
    """More frequent reads without a reason count as polling."""
    order = told.place(by("bank-transfer"))
    for _ in range(30):
        told.read(order)
        told.advance(period)
    assert ("without a change in between" in told.get("/control/review/").text) == is_found


@pytest.mark.parametrize(
    ("path", "status", "body", "advice"),
    [
        ("/webhook", 308, b"", "write webhook_url with the final slash"),
        ("/webhook/", 307, b"", "write webhook_url without the final slash"),
        ("/webhook", 302, b"", "is this your return page?"),
        ("/webhook/", 404, b"404: Not Found", "check the path and its final slash"),
        (
            "/webhook",
            500,
            b"<title>RuntimeError\n at /webhook</title>",
            "If your handler raises RuntimeError",
        ),
        (
            "/webhook",
            500,
            b"RuntimeError at /webhook\nYou ... and you have APPEND_SLASH set.",
            "with the final",
        ),
        ("/webhook", 500, b"<p>my notes on a RuntimeError", "log"),
        ("/webhook", 403, b"<p>CSRF verification failed.", "exempt the route"),
        ("/webhook", 419, b"Page Expired", "exempt the route"),
        ("/webhook", 422, b"<h1>The change you wanted was rejected.</h1>", "exempt the route"),
        ("/webhook", 422, b'{"detail":[{"type":"missing","loc":["query","order"]}]}', "refused the body"),
        ("/webhook", 400, b"<p>The CSRF token is missing.</p>", "exempt the route"),
        (
            "/webhook",
            403,
            b'{"status_code":403,"detail":"CSRF token verification failed"}',
            "exempt the route",
        ),
        ("/webhook", 403, b"403: Forbidden", "check the path"),
    ],
)
def test_the_review_names_what_a_framework_did_to_a_webhook(
    told: Sandbox, shop: Shop, path: str, status: int, body: bytes, advice: str
) -> None:
    """The other slash and a protected route have causes and remedies of their own."""
    shop.says, shop.answer = body, lambda received: status
    order = told.place(by("wallet-web"), webhook_url=shop.url.rstrip("/").removesuffix("/webhook") + path)
    told.acted(order, "customer visit")
    told.settle()
    (found,) = (item for item in told.get("/control/review/").json()["items"] if item["rule"] == "HOOK-09")
    assert advice in found["advice"]
