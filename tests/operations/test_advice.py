"""Following an advice of the review removes its finding; the link of the finding explains the mistake."""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from threading import Event

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import Finding, review
from payment_sandbox.operations import review as judge
from tests.operations import test_judge as shops
from tests.operations import test_review as right_shops
from tests.operations.test_judge import (
    MANUAL,
    Story,
    captures,
    handling,
    pays,
    reads,
    stored_card_charge,
    told,
)
from tests.support.driver import LINES, Sandbox, by, card
from tests.support.payer import Payer, payment_page
from tests.support.ports import free_port
from tests.support.shop import Received, Shop

__all__ = ["told"]
CALLS = ("Finding", "_moved_again")
THANKS = "http://shop.example/thanks"


def misspells(sandbox: Sandbox, shop: Shop) -> None:
    """Send a misspelled key."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), custommer={"first_name": "Jan"})


def spells_correctly(sandbox: Sandbox, shop: Shop) -> None:
    """Send the suggested key."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), customer={"first_name": "Jan"})


def sends_an_unknown_key(sandbox: Sandbox, shop: Shop) -> None:
    """Send an unknown key."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), colour="blue")


def sends_it_in_extra(sandbox: Sandbox, shop: Shop) -> None:
    """Send the key in extra."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), extra={"colour": "blue"})


def sends_an_unknown_parameter(sandbox: Sandbox, shop: Shop) -> None:
    """Send an unknown query parameter."""
    handling(sandbox, shop, reads)
    sandbox.get(f"/v1/orders/{sandbox.place(card())['id']}/?colour=blue")


def sends_no_parameter(sandbox: Sandbox, shop: Shop) -> None:
    """Send no query parameter."""
    handling(sandbox, shop, reads)
    sandbox.get(f"/v1/orders/{sandbox.place(card())['id']}/")


def captures_a_part_by_amount(sandbox: Sandbox, shop: Shop) -> None:
    """Capture a part with captures/amount/."""
    handling(sandbox, shop, reads)
    captures(sandbox, pays(sandbox, MANUAL, amount=2450)["id"], 400)


def adds_up_wrongly(sandbox: Sandbox, shop: Shop) -> None:
    """Send lines that do not add up to the amount."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), amount=1234, order_lines=LINES)


def adds_up(sandbox: Sandbox, shop: Shop) -> None:
    """Send lines that add up to the amount."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), amount=2000, order_lines=LINES)


def cancels_before_it_creates_another(sandbox: Sandbox, shop: Shop) -> None:
    """Cancel the first order by its stored id."""
    handling(sandbox, shop, reads)
    first = sandbox.place(card(), merchant_order_id="S-1001", amount=2450)
    sandbox.delete(f"/v1/orders/{first['id']}/")
    pays(sandbox, merchant_order_id="S-1001", amount=2450)


def captures_in_time(sandbox: Sandbox, shop: Shop) -> None:
    """Capture within the requested week, and void the rest."""
    handling(sandbox, shop, reads)
    order = pays(sandbox, MANUAL, amount=2450)
    sandbox.advance("P6D")
    captures(sandbox, order["id"], 2000)
    attempt = sandbox.read(order)["transactions"][0]["id"]
    sandbox.post(f"/v1/orders/{order['id']}/transactions/{attempt}/voids/amount/", {"amount": 450})
    sandbox.advance("P2D")


def finds_the_order_by_its_webhook(sandbox: Sandbox, shop: Shop) -> None:
    """After a lost response, learn the order's id from its webhook."""
    handling(sandbox, shop, reads)
    shops.lose(sandbox, "/v1/orders/")
    sandbox.create(card(), amount=2450)
    (order_id,) = {each["order_id"] for each in sandbox.get("/control/journal/").json()["items"]}
    sandbox.acted({"id": order_id}, "customer pay")
    sandbox.settle()


def trusts_the_webhook_of_a_refund(sandbox: Sandbox, shop: Shop) -> None:
    """Read orders, but not refunds."""
    order = pays(sandbox, amount=2450)
    sandbox.settle()
    sandbox.read(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()


def lets_one_click_win(sandbox: Sandbox, shop: Shop) -> None:
    """Send one refund for two clicks."""
    handling(sandbox, shop, reads)
    order = pays(sandbox, amount=2450)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    sandbox.settle()


def captures_four_times(sandbox: Sandbox, shop: Shop) -> None:
    """Capture in full four times."""
    handling(sandbox, shop, reads)
    order = pays(sandbox, MANUAL, amount=2450)
    for _ in range(4):
        captures(sandbox, order["id"])


def records_its_captures(sandbox: Sandbox, shop: Shop) -> None:
    """Capture each order once, by a record."""
    handling(sandbox, shop, reads)
    order = pays(sandbox, MANUAL, amount=2450)
    recorded: set[str] = set()
    for _ in range(4):
        if order["id"] not in recorded:
            recorded.add(order["id"])
            captures(sandbox, order["id"])


def reads_at_each_webhook(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order for each webhook."""
    handling(sandbox, shop, reads)
    pays(sandbox, amount=2450)


def reads_when_the_customer_is_back(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order when the customer returns, paid or not."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]})
    order = sandbox.place(by("wallet-web"), amount=2450, return_url=THANKS)
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "cancel")
    sandbox.read(order)


def shop_answering(status: int, *, path: str | None = None) -> Story:
    """Return a shop that reads orders and answers webhooks with this status, except at a path."""

    def story(sandbox: Sandbox, shop: Shop) -> None:
        def answer(received: Received) -> int:
            sandbox.read(received.body["order_id"])
            return 200 if path is not None and received.path == path else status

        shop.answer = answer
        if path is not None:
            sandbox.settings(webhook_url=shop.url.replace("/webhook", path))
        sandbox.acted(sandbox.place(card()), "customer visit")
        sandbox.settle()

    return story


def has_no_server(sandbox: Sandbox, shop: Shop) -> None:
    """Use an address at which no server listens."""
    sandbox.settings(webhook_url=f"http://127.0.0.1:{free_port()}/webhook")
    handling(sandbox, shop, reads)
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def crashes(sandbox: Sandbox, shop: Shop) -> None:
    """Crash in the handler, so that the connection closes."""

    def crash(received: Received) -> int:
        sandbox.read(received.body["order_id"])
        raise KeyError("sale")

    shop.answer = crash
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def works_before_it_answers(sandbox: Sandbox, shop: Shop) -> None:
    """Work for longer than the timeout before answering."""
    handling(sandbox, shop, reads, lambda *_: Event().wait(6))
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def knows_no_order_yet(sandbox: Sandbox, shop: Shop) -> None:
    """Refuse a webhook that arrives before the response."""
    charge, known = stored_card_charge(sandbox, shop), set[str]()
    sandbox.settings(webhook_timing="before_response")
    shop.answer = lambda received: 200 if received.body["order_id"] in known else 404
    known.add(sandbox.place(charge, amount=700)["id"])
    sandbox.settle()
    sandbox.read(known.pop())


def finds_the_purchase_by_its_number(sandbox: Sandbox, shop: Shop) -> None:
    """Identify the purchase by the number in the order."""
    charge, purchases = stored_card_charge(sandbox, shop), {"S-1001"}
    sandbox.settings(webhook_timing="before_response")

    def answer(received: Received) -> int:
        return 200 if sandbox.read(received.body["order_id"])["merchant_order_id"] in purchases else 503

    shop.answer = answer
    sandbox.place(charge, amount=700, merchant_order_id="S-1001")
    sandbox.settle()


def polls(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order repeatedly."""
    handling(sandbox, shop, reads)
    order = sandbox.place(card())
    for _ in range(6):
        sandbox.read(order)


def has_no_address(sandbox: Sandbox, shop: Shop) -> None:
    """Remove the address for webhooks."""
    sandbox.settings(webhook_url=None)
    pays(sandbox)


def mixes_schemes(sandbox: Sandbox, shop: Shop) -> None:
    """Use two schemes for one host."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), return_url=THANKS, webhook_url="https://shop.example/hook")


def uses_one_scheme(sandbox: Sandbox, shop: Shop) -> None:
    """Use one scheme for both addresses."""
    handling(sandbox, shop, reads)
    sandbox.place(card(), return_url=THANKS, webhook_url="http://shop.example/hook")


def serves_http_at_an_https_address(sandbox: Sandbox, shop: Shop) -> None:
    """Serve plain http at an https address."""
    handling(sandbox, shop, reads)
    sandbox.settings(webhook_url=shop.url.replace("http:", "https:"))
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def stops_after_a_decline(sandbox: Sandbox, shop: Shop) -> None:
    """Stop the series after a declined payment."""
    shops.charges_after_a_decline(sandbox, shop, again=False)


def refunds_what_is_not_paid(sandbox: Sandbox, shop: Shop) -> None:
    """Refund an unpaid order without reading it."""
    handling(sandbox, shop, reads)
    sandbox.post(f"/v1/orders/{sandbox.place(card())['id']}/refunds/", {})


def sends_a_fractional_amount(sandbox: Sandbox, shop: Shop) -> None:
    """Send an amount that is not an integer."""
    handling(sandbox, shop, reads)
    sandbox.create(card(), amount=12.5)


def has_a_rule_without_a_match(sandbox: Sandbox, shop: Shop) -> None:
    """Set a scenario with a rule that never matches."""
    handling(sandbox, shop, reads)
    sandbox.scenario({"when": {"amount": 7}, "then": {"customer": "pays"}})
    sandbox.place(card())


def has_a_rule_with_a_match(sandbox: Sandbox, shop: Shop) -> None:
    """Set a scenario with a rule that matches."""
    handling(sandbox, shop, reads)
    sandbox.scenario({"when": {"amount": 7}, "then": {"customer": "pays"}})
    sandbox.place(card(), amount=7)
    sandbox.settle()


FOLLOWED: dict[str, tuple[Story, Story]] = {
    "Store the id of each new order": (shops.forgets_its_first_order, cancels_before_it_creates_another),
    "Request an expiration_period": (shops.captures_too_late, captures_in_time),
    "After a lost response, first check": (
        shops.creates_it_again_after_a_lost_response,
        finds_the_order_by_its_webhook,
    ),
    "Send 'customer' instead.": (misspells, spells_correctly),
    "Leave it out, or put it into extra.": (sends_an_unknown_key, sends_it_in_extra),
    "Leave it out.": (sends_an_unknown_parameter, sends_no_parameter),
    "Send 'amount' to captures/amount/.": (
        shops.captures_a_part_at_the_wrong_call,
        captures_a_part_by_amount,
    ),
    "Send what the warning asks for": (adds_up_wrongly, adds_up),
    "Webhooks can arrive more than once": (
        shops.refunds_for_each_copy,
        right_shops.remembers_what_it_refunded,
    ),
    "After a lost response, first read": (
        shops.refunds_again_after_a_lost_response,
        right_shops.looks_after_a_lost_response,
    ),
    "Accept only one of two clicks": (shops.refunds_at_a_double_click, lets_one_click_win),
    "Record that you captured the order": (captures_four_times, records_its_captures),
    "If a cancellation is refused": (
        shops.gives_up_at_a_refused_cancellation,
        right_shops.refunds_when_it_cannot_cancel,
    ),
    "Compare the received money": (shops.keeps_a_surplus, right_shops.returns_a_surplus),
    "Webhooks can get lost": (shops.never_asks, right_shops.asks_once_a_day),
    "A webhook carries no status": (shops.trusts_webhooks, reads_at_each_webhook),
    "A refund can fail": (trusts_the_webhook_of_a_refund, lets_one_click_win),
    "Customers come back to return_url": (shops.trusts_the_return, reads_when_the_customer_is_back),
    "Your handler failed": (shop_answering(500), shop_answering(200)),
    "Your shop refused it": (shop_answering(404), shop_answering(404, path="/hook")),
    "A redirect counts": (shop_answering(302), shop_answering(302, path="/hook")),
    "Make the shop listen at this address": (has_no_server, shop_answering(200)),
    "Your handler crashed": (crashes, shop_answering(200)),
    "Answer 2xx once": (works_before_it_answers, shop_answering(200)),
    "The webhook arrived before the response": (knows_no_order_yet, finds_the_purchase_by_its_number),
    "Wait for the webhook": (polls, reads_at_each_webhook),
    "Make the shop listen at an address": (has_no_address, reads_at_each_webhook),
    "Build both from the base": (mixes_schemes, uses_one_scheme),
    "Use the scheme": (serves_http_at_an_https_address, reads_at_each_webhook),
    "Capture when you ship": (shops.lets_the_authorization_expire, captures_in_time),
    "Stop the series": (shops.charges_after_a_decline, stops_after_a_decline),
    "Read the order before": (refunds_what_is_not_paid, lets_one_click_win),
    "Correct the request": (sends_a_fractional_amount, reads_at_each_webhook),
    "Create orders that match": (has_a_rule_without_a_match, has_a_rule_with_a_match),
}


EXPLAINED: dict[str, str] = {
    # by the advice of a finding: the explanation that the linked text must contain
    "Store the id of each new order": "cancel the order that you know before you create another one",
    "Request an expiration_period": "expiration_period .* longer than it takes you to ship",
    "After a lost response, first check": "response to a creation is lost, the order exists",
    "Send 'customer' instead.": "unknown keys are ignored",
    "Leave it out, or put it into extra.": "unknown keys .*extra",
    "Leave it out.": "unknown keys are ignored",
    "Send 'amount' to captures/amount/.": "captures everything.*captures/amount/",
    "Send what the warning asks for": "inconsistent sums are reported in sandbox-warnings",
    "Webhooks can arrive more than once": "refunded twice. webhooks arrive twice",
    "After a lost response, first read": "refund whose response was lost .* read the order before you resend the call",
    "Accept only one of two clicks": "people click twice. take a lock",
    "Record that you captured the order": r"capture\(sale\) on every webhook if not sale\.captured",
    "If a cancellation is refused": "if the cancellation is refused, .* refund the payment",
    "Compare the received money": "compare it, .* with the amount of the order, and refund the overpayment",
    "Webhooks can get lost": "a webhook can get lost, so also read open orders in a job",
    "A webhook carries no status": "a webhook says that something has changed, not what",
    "A refund can fail": "record it as done once it is completed",
    "Customers come back to return_url": "a customer who comes back may have cancelled",
    "Your handler failed": "answer 2xx once you have recorded the order",
    "Your shop refused it": "answer 2xx once you have recorded the order, even for orders that you do not know",
    "A redirect counts": "answer 2xx once you have recorded the order",
    "Make the shop listen at this address": "set webhook_url in the order or the project",
    "Your handler crashed": "answer 2xx once you have recorded the order",
    "Answer 2xx once": "answer 2xx .* within five seconds, and do slow work afterwards",
    "The webhook arrived before the response": "an order whose response has not arrived yet find the purchase",
    "Wait for the webhook": "shops that poll.* read the order when its webhook arrives",
    "Make the shop listen at an address": "set webhook_url in the order or the project",
    "Build both from the base": "return_url and webhook_url from one base address",
    "Use the scheme": "with the scheme that your shop serves",
    "Capture when you ship": "the authorization has lapsed.* void the amount that you will not ship",
    "Stop the series": "if a payment of a recurring series fails, stop the series",
    "Read the order before": "refund",
    "Correct the request": "integer",
    "Create orders that match": "unmatched conditions",
}


def linked_text(sandbox: Sandbox, page: str) -> str:
    """Return the text at a link: a section, a row or a whole page."""
    path, _, anchor = page.partition("#")
    response = requests.get(f"{sandbox.url}{path}")
    assert response.status_code == 200, page
    text = response.text
    if anchor:
        begin = re.search(rf'<(\w+)[^>]* id="{anchor}"', text)
        assert begin is not None, page
        end = "</tr>" if begin[1] == "tr" else f"<{begin[1]}"
        text = text[begin.end() :].partition(">")[2].partition(end)[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", text)).lower().split())


def findings(sandbox: Sandbox) -> list[Finding]:
    """Return all findings of the review, including hints."""
    return review(SandboxClient(sandbox.url, sandbox.key))


@pytest.mark.parametrize("advice", FOLLOWED)
def test_advice_that_is_followed_mends_it(told: Sandbox, shop: Shop, advice: str) -> None:
    """The wrong shop gets the advice with a link; the shop that follows it gets no finding."""
    wrong, right = FOLLOWED[advice]
    wrong(told, shop)
    (finding, *_) = (each for each in findings(told) if each.advice.startswith(advice))
    assert re.search(EXPLAINED[advice], linked_text(told, finding.page)), linked_text(told, finding.page)
    told.post("/control/reset/")
    shop.received.clear()
    told.settings(webhook_url=shop.url, webhook_timing="after_response")
    right(told, shop)
    assert [each for each in findings(told) if each.is_open or each.advice.startswith(advice)] == []


def test_plain_http_at_an_https_address_is_named(told: Sandbox, shop: Shop) -> None:
    """The finding names the address, beside that of the failed webhook."""
    serves_http_at_an_https_address(told, shop)
    (problem,) = [each.problem for each in findings(told) if each.rule == "HOOK-04"]
    address = shop.url.replace("http:", "https:")
    assert (
        problem == f"The webhook_url uses https, but your shop serves plain http at that address: {address}"
    )


def test_every_advice_is_followed() -> None:
    """Each advice in the source of the review has a shop that follows it."""
    for path in sorted(Path(judge.__file__).parent.glob("*.py")):
        for advice in advices(ast.parse(path.read_text())):
            assert any(_agree(advice, known) for known in FOLLOWED), f"{path.name}: {advice}"


def advices(module: ast.Module) -> Iterator[str]:
    """Yield the advice of each finding, up to its first variable part."""
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.AnnAssign) and isinstance(target := node.target, ast.Name)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in CALLS:
            continue
        position = 2 if node.func.id == "Finding" else 4
        for part in ast.walk(node.args[position]) if len(node.args) > position else ():
            text: ast.AST | None = constants.get(part.id) if isinstance(part, ast.Name) else part
            if isinstance(text, ast.JoinedStr):
                text = text.values[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and _is_sentence(text.value):
                yield text.value


def _is_sentence(text: str) -> bool:
    return text[:1].isupper() and " " in text.strip()


def _agree(advice: str, known: str) -> bool:
    return advice.strip() in known or advice.startswith(known) or known.startswith(advice)
