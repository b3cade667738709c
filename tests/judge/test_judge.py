"""Small shops with one mistake each, and the finding of the review that names it."""

from collections.abc import Callable
from threading import Barrier, Event, Thread
from typing import Any, NamedTuple, TypeVar

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import Finding, review
from payment_sandbox.orders.amounts import euros
from tests.support.dashboard import Dashboard
from tests.support.driver import LINES, Sandbox, by, card, details
from tests.support.payer import Payer, payment_page
from tests.support.ports import free_port
from tests.support.shop import Received, Shop

Story = Callable[[Sandbox, Shop], None]
AnyStory = TypeVar("AnyStory", bound=Story)
Handler = Callable[[Sandbox, str], Any]
TWICE = {"webhooks": [{"then": {"duplicate": 2}}]}
MANUAL = card(capture_mode="manual", expiration_period="P7D")
LOST: dict[str, Any] = {"status": 503, "phase": "after"}


class Mistake(NamedTuple):
    """A shop, and the beginnings of the problem and the advice of its finding, with the amount at risk."""

    story: Story
    rule: str
    amount: int
    problem: str
    advice: str


WRONG: list[Mistake] = []


def wrong(rule: str, amount: int, problem: str, advice: str) -> Callable[[AnyStory], AnyStory]:
    """Add a shop with its finding to ``WRONG``."""

    def add(story: AnyStory) -> AnyStory:
        WRONG.append(Mistake(story, rule, amount, problem, advice))
        return story

    return add


def handling(sandbox: Sandbox, shop: Shop, *handlers: Handler) -> None:
    """Let the shop answer each webhook with 200 after it has handled it."""

    def answer(received: Received) -> int:
        for handler in handlers:
            handler(sandbox, received.body["order_id"])
        return 200

    shop.answer = answer


def reads(sandbox: Sandbox, order_id: str) -> Any:
    """Read the order."""
    return sandbox.read(order_id)


def refunds_a_part(sandbox: Sandbox, order_id: str) -> None:
    """Refund €5.00 for every webhook of the purchase."""
    if "is-refund" not in sandbox.read(order_id)["flags"]:
        sandbox.post(f"/v1/orders/{order_id}/refunds/", {"amount": 500})


def refunds_once() -> Handler:
    """Return a handler that refunds €5.00 of each paid purchase once, however many webhooks arrive."""
    refunded: set[str] = set()

    def refund(sandbox: Sandbox, order_id: str) -> None:
        if sandbox.read(order_id)["status"] == "completed" and order_id not in refunded:
            refunded.add(order_id)
            refunds_a_part(sandbox, order_id)

    return refund


def captures(sandbox: Sandbox, order_id: str, amount: int | None = None) -> None:
    """Capture everything, or a part."""
    attempt = sandbox.read(order_id)["transactions"][0]["id"]
    path = f"/v1/orders/{order_id}/transactions/{attempt}/captures/"
    sandbox.post(path if amount is None else f"{path}amount/", None if amount is None else {"amount": amount})


def pays(sandbox: Sandbox, *attempts: Any, **fields: Any) -> dict[str, Any]:
    """Let a customer pay an order, and wait for its webhooks."""
    order = sandbox.acted(sandbox.place(*(attempts or [card()]), **fields), "customer pay")
    sandbox.settle()
    return order


def visits(sandbox: Sandbox) -> None:
    """Let a customer open a payment page, and wait for the webhook."""
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def lose(sandbox: Sandbox, path: str) -> None:
    """Lose the next response to a POST to this path."""
    when = {"method": "POST", "path": path, "nth": 1}
    sandbox.put("/control/faults/", {"faults": [{"when": when, "then": LOST}]})


# Mistakes


def stored_card_charge(sandbox: Sandbox, shop: Shop) -> dict[str, Any]:
    """Return a charge of a subscriber's stored card."""
    first = pays(sandbox, details(recurring_type="first"), amount=700)
    token = sandbox.read(first)["transactions"][0]["payment_method_details"]["vault_token"]
    return details(recurring_type="recurring", vault_token=token)


@wrong("HOOK-10", 1500, "Your shop refunded €5.00 four times for two status changes", "Webhooks can arrive")
def refunds_for_each_copy(sandbox: Sandbox, shop: Shop) -> None:
    """Refund at each of two webhooks that are delivered twice."""
    sandbox.put("/control/faults/", TWICE)
    handling(sandbox, shop, refunds_a_part)
    pays(sandbox, amount=2450)


@wrong("HOOK-10", 500, "Your shop refunded €5.00 ", "Webhooks can arrive")
def refunds_again_at_a_retry(sandbox: Sandbox, shop: Shop) -> None:
    """Refund, fail in the handler, and refund again at the retry."""
    order = sandbox.place(card(), amount=2450)
    sandbox.acted(order, "customer visit")
    sandbox.settle()

    def refund_and_fail(received: Received) -> int:
        if received.body["order_id"] == order["id"]:
            refunds_a_part(sandbox, order["id"])
        return 500 if len(shop.received) < 4 else 200

    shop.answer = refund_and_fail
    sandbox.acted(order, "customer pay")
    sandbox.settle()
    sandbox.advance("PT4M")


@wrong("HOOK-10", 1200, "Your shop captured €4.00 four times", "Webhooks can arrive")
def captures_a_part_for_each_copy(sandbox: Sandbox, shop: Shop) -> None:
    """Capture a part at each copy of a webhook."""
    sandbox.put("/control/faults/", TWICE)
    handling(sandbox, shop, lambda own, order_id: captures(own, order_id, 400))
    pays(sandbox, MANUAL, amount=2000)


@wrong(
    "SET-47",
    0,
    "Your shop had captured €24.50, and tried again: three calls were refused",
    "Record that you captured",
)
def captures_everything_for_each_copy(sandbox: Sandbox, shop: Shop) -> None:
    """Capture in full at each copy; all captures but the first are refused."""
    sandbox.put("/control/faults/", TWICE)
    handling(sandbox, shop, captures)
    pays(sandbox, MANUAL, amount=2450)


@wrong("HOOK-10", 2100, "Your shop charged €7.00 four times for two status changes", "Webhooks can")
def charges_a_stored_card_for_each_copy(sandbox: Sandbox, shop: Shop) -> None:
    """Charge a stored card at each copy of a webhook."""
    charge = stored_card_charge(sandbox, shop)
    order = sandbox.place(card(), amount=900)

    def charges(own: Sandbox, order_id: str) -> None:
        if sandbox.read(order_id)["status"] == "completed" and order_id == order["id"]:
            sandbox.place(charge, amount=700)

    handling(sandbox, shop, charges)
    sandbox.put("/control/faults/", TWICE)
    sandbox.acted(order, "customer pay")
    sandbox.settle()


@wrong("FLOW-09", 700, "Your shop charged a recurring series again", "Stop the series")
def charges_after_a_decline(sandbox: Sandbox, shop: Shop, *, again: bool = True) -> None:
    """Charge a series again after a declined payment."""
    charge = stored_card_charge(sandbox, shop)
    sandbox.scenario({"when": {"payment_method": "credit-card"}, "then": {"processor": "fails"}})
    for _ in range(1 + again):
        sandbox.place(charge, amount=700)
        sandbox.advance("P30D")
        sandbox.settle()


@wrong(
    "CTL-23", 500, "Your shop refunded €5.00 twice: the first response", "After a lost response, first read"
)
def refunds_again_after_a_lost_response(sandbox: Sandbox, shop: Shop) -> None:
    """Refund again without reading the order."""
    order = pays(sandbox, amount=2450)
    lose(sandbox, f"/v1/orders/{order['id']}/refunds/")
    for _ in range(2):
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()


@wrong("SET-03", 500, "Your shop refunded €5.00 twice at the same moment", "Accept only one of two clicks")
def refunds_at_a_double_click(sandbox: Sandbox, shop: Shop) -> None:
    """Send two refunds at the same moment."""
    order = pays(sandbox, amount=2450)
    sandbox.put("/control/faults/", {"faults": [{"when": {"method": "POST"}, "then": {"latency": 0.3}}]})
    clicked = Barrier(2)

    def click() -> None:
        clicked.wait()
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})

    clicks = [Thread(target=click) for _ in range(2)]
    for each in clicks:
        each.start()
    for each in clicks:
        each.join()
    sandbox.settle()


@wrong(
    "SET-12",
    2050,
    "Your shop asked to capture €4.00 and captured everything",
    "Send 'amount' to captures/amount/",
)
def captures_a_part_at_the_wrong_call(sandbox: Sandbox, shop: Shop) -> None:
    """Send a partial amount to the full capture."""
    order = pays(sandbox, MANUAL, amount=2450)
    attempt = sandbox.read(order)["transactions"][0]["id"]
    sandbox.post(f"/v1/orders/{order['id']}/transactions/{attempt}/captures/", {"amount": 400})


@wrong("ORD-07", 2450, "Two orders have the number 'S-1001'", "Store the id of each new order")
def forgets_its_first_order(sandbox: Sandbox, shop: Shop) -> None:
    """Create a second order, and let the first one expire."""
    sandbox.place(card(), merchant_order_id="S-1001", amount=2450)
    pays(sandbox, merchant_order_id="S-1001", amount=2450)
    sandbox.advance("P1D")


@wrong("CTL-23", 2450, "Your shop created the order again", "After a lost response, first check")
def creates_it_again_after_a_lost_response(sandbox: Sandbox, shop: Shop) -> None:
    """Create the order again after another customer's order, without a merchant_order_id."""
    lose(sandbox, "/v1/orders/")
    for amount in (2450, 500, 2450):
        sandbox.create(card(), amount=amount)


@wrong("SET-50", 2450, "Your shop tried to cancel a paid order", "If a cancellation is refused")
def gives_up_at_a_refused_cancellation(sandbox: Sandbox, shop: Shop) -> None:
    """Cancel an order that was paid in the meantime, and ignore the refusal."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    order = pays(sandbox, amount=2450)
    sandbox.delete(f"/v1/orders/{order['id']}/")


@wrong("HOOK-12", 2450, "Your shop does not know that the customer paid €24.50", "Webhooks can get lost")
def never_asks(sandbox: Sandbox, shop: Shop) -> None:
    """Miss all webhooks, and read nothing for days."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    pays(sandbox, amount=2450)
    sandbox.advance("P2D")


@wrong("HOOK-12", 2450, "Your shop does not know that the customer paid €24.50", "Webhooks can get lost")
def never_asks_again(sandbox: Sandbox, shop: Shop) -> None:
    """Read a new order once, miss the webhook about its payment, and read nothing for days."""
    lost = {"when": {"status": "completed"}, "then": {"drop": True}}
    sandbox.put("/control/faults/", {"webhooks": [lost]})
    order = sandbox.acted(sandbox.place(card(), amount=2450), "customer visit")
    sandbox.settle()
    sandbox.acted(order, "customer pay")
    sandbox.advance("P2D")


@wrong(
    "HOOK-13",
    500,
    "The customer transferred €15.00 for €10.00, and your shop did not return €5.00",
    "Compare the",
)
def keeps_a_surplus(sandbox: Sandbox, shop: Shop) -> None:
    """Keep the excess of a transfer."""
    order = sandbox.place(by("bank-transfer"), amount=1000)
    sandbox.acted(order, "bank credit", amount=1500)
    sandbox.settle()
    sandbox.advance("P2D")


@wrong("A45", 1000, "The customer paid an order of €10.00 twice: €10.00 by bank-transfer", "Compare the")
def keeps_a_second_payment(sandbox: Sandbox, shop: Shop) -> None:
    """Keep a transfer that arrives beside another payment."""
    order = sandbox.place(amount=1000)
    for method in ("bank-transfer", "credit-card"):
        sandbox.acted(order, "customer choose", payment_method=method)
    sandbox.pay(order)
    sandbox.acted(order, "bank credit")
    sandbox.settle()
    sandbox.advance("P2D")


@wrong("HOOK-08", 2450, "Your shop answered a webhook, but did not read the order", "A webhook carries no")
def trusts_webhooks(sandbox: Sandbox, shop: Shop) -> None:
    """Answer webhooks without reading the order."""
    handling(sandbox, shop)
    pays(sandbox, amount=2450)


@wrong("FLOW-15", 2450, "The customer came back, but your shop did not read the order", "Customers come back")
def trusts_the_return(sandbox: Sandbox, shop: Shop) -> None:
    """Take the customer's return for a payment."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    order = sandbox.place(by("wallet-web"), amount=2450, return_url="http://shop.example/thanks")
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "cancel")


@wrong("HOOK-09", 0, "Your shop answered the webhook with an error (500) ten times", "Your handler failed")
def fails_at_every_webhook(sandbox: Sandbox, shop: Shop) -> None:
    """Answer each webhook with 500 until the service gives up."""

    def answer(received: Received) -> int:
        sandbox.read(received.body["order_id"])
        return 500

    shop.answer = answer
    sandbox.acted(sandbox.place(card(), amount=2450), "customer visit")
    sandbox.advance("PT20M")


def answers_both_webhooks(status: int) -> Story:
    """Return a shop that answers both webhooks of a payment with this status until the service gives up."""

    def story(sandbox: Sandbox, shop: Shop) -> None:
        shop.answer = lambda received: status
        sandbox.acted(sandbox.place(card(), amount=2450), "customer pay")
        sandbox.advance("PT30M")

    return story


@wrong("CAP-03", 2450, "The authorization expired: the customer agreed to pay", "Capture when you ship")
def lets_the_authorization_expire(sandbox: Sandbox, shop: Shop) -> None:
    """Let the authorization expire without a capture."""
    pays(sandbox, MANUAL, amount=2450)
    sandbox.advance("P8D")


@wrong(
    "CAP-04", 2450, "Your shop captured after the authorization had expired", "Request an expiration_period"
)
def captures_too_late(sandbox: Sandbox, shop: Shop) -> None:
    """Capture a day after the authorization expired."""
    order = pays(sandbox, MANUAL, amount=2450)
    sandbox.advance("P8D")
    captures(sandbox, order["id"])


@wrong("SET-12", 0, "The service does not know the key 'custommer'", "Send 'customer' instead.")
def misspells(sandbox: Sandbox, shop: Shop) -> None:
    """Send a misspelled key."""
    sandbox.place(card(), custommer={"first_name": "Jan"})


@wrong("SET-12", 0, "The service does not know", "Leave it out.")
def sends_an_unknown_parameter(sandbox: Sandbox, shop: Shop) -> None:
    """Send an unknown query parameter."""
    sandbox.get(f"/v1/orders/{sandbox.place(card())['id']}/?colour=blue")


@wrong(
    "SET-31",
    0,
    "The service accepted a request with a warning: order_lines add up to €20.00",
    "Send what the warning asks for",
)
def adds_up_wrongly(sandbox: Sandbox, shop: Shop) -> None:
    """Send lines that do not add up to the amount."""
    sandbox.place(card(), amount=1234, order_lines=LINES)


@wrong(
    "HOOK-08",
    500,
    "Your shop answered a webhook for a refund, but did not read the refund",
    "A refund can fail",
)
def trusts_the_webhook_of_a_refund(sandbox: Sandbox, shop: Shop) -> None:
    """Read orders, but not refunds."""
    handling(sandbox, shop)
    order = pays(sandbox, amount=2450)
    sandbox.settle()
    sandbox.read(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()


@wrong(
    "HOOK-09",
    0,
    "Your shop did not answer the webhook: connection refused: no server listens",
    "Make the shop listen at this address",
)
def has_no_server(sandbox: Sandbox, shop: Shop) -> None:
    """Use an address with a word of the sandbox, at which no server listens."""
    sandbox.settings(webhook_url=f"http://127.0.0.1:{free_port()}/scenario")
    visits(sandbox)


@wrong("HOOK-09", 0, "Your shop did not answer the webhook: 127.0.0.1", "Your handler crashed")
def crashes(sandbox: Sandbox, shop: Shop) -> None:
    """Crash in the handler, so that the connection closes."""

    def crash(received: Received) -> int:
        sandbox.read(received.body["order_id"])
        raise KeyError("sale")

    shop.answer = crash
    visits(sandbox)


@wrong("HOOK-09", 0, "Your shop did not answer the webhook: no answer within 5 seconds", "Answer 2xx once")
def works_before_it_answers(sandbox: Sandbox, shop: Shop) -> None:
    """Work for longer than the timeout before answering."""
    handling(sandbox, shop, reads, lambda *_: Event().wait(6))
    visits(sandbox)


@wrong(
    "HOOK-09",
    0,
    "Your shop answered the webhook with a refusal (404)",
    "The webhook arrived before the response",
)
def knows_no_order_yet(sandbox: Sandbox, shop: Shop) -> None:
    """Refuse a webhook that arrives before the response."""
    charge, known = stored_card_charge(sandbox, shop), set[str]()
    sandbox.settings(webhook_timing="before_response")
    shop.answer = lambda received: 200 if received.body["order_id"] in known else 404
    known.add(sandbox.place(charge, amount=700)["id"])
    sandbox.settle()
    sandbox.read(known.pop())


@wrong("HOOK-02", 0, "Your shop read the order at least", "Wait for the webhook")
def polls(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order repeatedly."""
    order = sandbox.place(card())
    for _ in range(6):
        sandbox.read(order)


@wrong("HOOK-03", 0, "2 status changes sent no webhook", "Make the shop listen at an address")
def has_no_address(sandbox: Sandbox, shop: Shop) -> None:
    """Remove the address for webhooks."""
    sandbox.settings(webhook_url=None)
    pays(sandbox)


@wrong(
    "HOOK-04",
    0,
    "The return_url and webhook_url of the same host mix http and https",
    "Build both from the base",
)
def mixes_schemes(sandbox: Sandbox, shop: Shop) -> None:
    """Use two schemes for one host."""
    sandbox.place(card(), return_url="http://shop.example/thanks", webhook_url="https://shop.example/hook")


@wrong(
    "HOOK-04",
    0,
    "The webhook_url uses https, but your shop serves plain http at that address: https://127",
    "Use the scheme",
)
def serves_http_at_an_https_address(sandbox: Sandbox, shop: Shop) -> None:
    """Serve plain http at an https address."""
    sandbox.settings(webhook_url=shop.url.replace("http:", "https:"))
    visits(sandbox)


@wrong("HOOK-09", 0, "Your shop answered the webhook with a redirect (302)", "A redirect counts")
def answers_with_a_redirect(sandbox: Sandbox, shop: Shop) -> None:
    """Redirect the webhook, as a return page does."""
    shop.answer = lambda received: 302 if sandbox.read(received.body["order_id"]) else 500
    visits(sandbox)


wrong(
    "HOOK-09",
    2450,
    "Your shop answered both webhooks with an error (500), in 20 attempts",
    "Your handler failed",
)(answers_both_webhooks(500))
wrong(
    "HOOK-09",
    2450,
    "Your shop answered both webhooks with a refusal (404), in 20 attempts",
    "Your shop refused it",
)(answers_both_webhooks(404))

ALSO: dict[Story, set[str]] = {
    refunds_again_at_a_retry: {"HOOK-08"},
    serves_http_at_an_https_address: {"HOOK-09"},
}
"""The rules of other findings: that shop reads none of its refunds, and gets no webhook."""
RISKS: dict[Story, str] = {
    captures_a_part_for_each_copy: "the customer is charged twice",
    charges_a_stored_card_for_each_copy: "the customer is charged twice",
    refunds_for_each_copy: "money is refunded twice",
}
"""A repeated capture or charge costs the customer money, a repeated refund the shop."""


def mistakes(sandbox: Sandbox) -> list[Finding]:
    """Return the open findings."""
    return [each for each in review(SandboxClient(sandbox.url, sandbox.key)) if each.is_open]


def verdicts(sandbox: Sandbox) -> list[str]:
    """Return the verdict above the history on the page of each order, in lower case."""
    texts = []
    for row in sandbox.get("/control/orders/").json()["items"]:
        page = Dashboard(sandbox).open(f"orders/{row['id']}/")
        if "verdict" in page.ids:
            html = page.answer.text
            assert html.index('data-testid="verdict"') < html.index('id="history"')
            texts.append(" ".join(page.ids["verdict"].lower().split()))
    return texts


@pytest.fixture
def told(sandbox: Sandbox, shop: Shop) -> Sandbox:
    """A live project whose webhooks go to the shop."""
    begin(sandbox, shop)
    return sandbox


def begin(sandbox: Sandbox, shop: Shop) -> None:
    """Empty a live project, with a shop that reads the order for each webhook."""
    sandbox.post("/control/reset/")
    sandbox.settings(webhook_url=shop.url, mode="live")
    shop.received.clear()
    handling(sandbox, shop, reads)


@pytest.mark.parametrize("mistake", WRONG, ids=lambda mistake: f"{mistake.rule} {mistake.story.__name__}")
def test_a_mistake_is_named(told: Sandbox, shop: Shop, mistake: Mistake) -> None:
    """The finding names rule, mistake, requests, remedy and amount at risk; the order's page shows it first."""
    story, rule, amount, problem, advice = mistake
    story(told, shop)
    by_cost = sorted(mistakes(told), key=lambda each: -each.amount)
    (finding,) = [each for each in by_cost if each.problem.startswith(problem)]
    assert {each.rule for each in by_cost} == {rule, *ALSO.get(story, ())}
    assert (finding.rule, finding.kind, finding.amount) == (rule, "mistake", amount)
    assert bool(finding.requests) is not (rule in ("A45", "CAP-03", "HOOK-03", "HOOK-12", "HOOK-13"))
    assert finding.advice.startswith(advice)
    assert finding.advice in str(finding)
    assert finding.risk
    assert_linked(told, finding.page)
    assert not amount or finding.risk.startswith(euros(amount))
    assert RISKS.get(story, "") in finding.risk
    if finding.order_id is not None:
        assert any(problem.lower() in each and advice.lower() in each for each in verdicts(told))


def assert_linked(sandbox: Sandbox, page: str) -> None:
    """Assert that the page of a finding exists, with the section to which it links."""
    path, _, anchor = page.partition("#")
    response = requests.get(f"{sandbox.url}{path}")
    assert response.status_code == 200, page
    assert f'id="{anchor}"' in response.text, page


def test_a_successful_retry_closes_the_finding(told: Sandbox, shop: Shop) -> None:
    """The finding remains and is marked as healed; the order's page shows the correction without a mark."""
    shop.answer = lambda received: (
        200 if told.read(received.body["order_id"]) and len(shop.received) > 1 else 503
    )
    told.acted(told.place(card()), "customer visit")
    told.settle()
    assert mistakes(told)
    told.advance("PT2M")
    told.settle()
    assert mistakes(told) == []
    (finding,) = review(SandboxClient(told.url, told.key))
    assert "was answered with 200" in finding.healed
    assert finding.healed in str(finding)
    page = Dashboard(told).open(f"orders/{finding.order_id}/")
    assert page.ids["healed"].startswith(f"Corrected: {finding.problem}")
