"""The review reports mistakes of an integration, and nothing for a correct one."""

from collections.abc import Callable

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.history import Finding, review
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Payer, payment_page
from tests.support.shop import Shop

RETURN = "http://shop.example/thanks"


def findings(sandbox: Sandbox) -> list[Finding]:
    """Return the findings, except that of a missing address for webhooks."""
    all_findings = review(SandboxClient(sandbox.url, sandbox.key))
    return [finding for finding in all_findings if finding.rule != "HOOK-03"]


def trusts_the_return(sandbox: Sandbox, shop: Shop) -> None:
    """Take the customer's return for a payment."""
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(sandbox.place(by("wallet-web"), return_url=RETURN))), "cancel")


def lose_a_response(sandbox: Sandbox) -> None:
    """Replace the response to the first POST with an error, after the call is executed."""
    fault = {"when": {"method": "POST", "nth": 1}, "then": {"status": 504, "phase": "after"}}
    sandbox.put("/control/faults/", {"faults": [fault]})


def retries_after_another_order(sandbox: Sandbox, shop: Shop) -> None:
    """Create the order again after another customer's order."""
    lose_a_response(sandbox)
    for amount in (5, 6, 5):
        sandbox.create(card(), amount=amount)


def uses_a_word_of_the_sandbox(sandbox: Sandbox, shop: Shop) -> None:
    """Use an address with a word of the sandbox, at which no server listens."""
    sandbox.settings(webhook_url="http://127.0.0.1:9/scenario")
    order = sandbox.place(card())
    sandbox.acted(order, "customer visit")
    sandbox.settle()
    sandbox.read(order)


def polls(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order repeatedly."""
    order = sandbox.place(card())
    for _ in range(6):
        sandbox.read(order)


WRONG = [
    (trusts_the_return, "FLOW-15"),
    (retries_after_another_order, "CTL-23"),
    (uses_a_word_of_the_sandbox, "HOOK-09"),
    (polls, "HOOK-02"),
]


@pytest.mark.parametrize(("story", "rule"), WRONG)
def test_a_mistake_is_named(
    sandbox: Sandbox, shop: Shop, story: Callable[[Sandbox, Shop], None], rule: str
) -> None:
    """The finding has its rule, the requests and the advice."""
    story(sandbox, shop)
    (finding,) = findings(sandbox)
    assert finding.rule == rule
    assert finding.requests
    assert finding.advice in str(finding)


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


def sells_the_same_twice(sandbox: Sandbox, shop: Shop) -> None:
    """Create equal orders for two customers while responses are slow."""
    sandbox.put("/control/faults/", {"faults": [{"then": {"latency": 0.01}}]})
    for _ in range(2):
        sandbox.place(card())


def is_refused_reading(sandbox: Sandbox, shop: Shop) -> None:
    """Try to read the order, and get 429 from a fault."""
    sandbox.settings(webhook_url=shop.url)
    sandbox.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": {"status": 429}}]})
    shop.answer = lambda received: (
        200 if sandbox.get(f"/v1/orders/{received.body['order_id']}/") is not None else 500
    )
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def reads_after_every_copy(sandbox: Sandbox, shop: Shop) -> None:
    """Read the order for each of six copies."""
    sandbox.settings(webhook_url=shop.url)
    sandbox.scenario(webhooks=[{"then": {"duplicate": 6}}])
    shop.answer = lambda received: 200 if sandbox.read(received.body["order_id"]) else 500
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()


def looks_every_day(sandbox: Sandbox, shop: Shop) -> None:
    """Read a pending transfer once a day."""
    order = sandbox.place(by("bank-transfer"))
    for _ in range(6):
        sandbox.advance("P1D")
        sandbox.read(order)


@pytest.mark.parametrize(
    "story",
    [
        cancels_by_itself,
        reads_before_it_retries,
        sells_the_same_twice,
        looks_every_day,
        is_refused_reading,
        reads_after_every_copy,
    ],
)
def test_a_correct_shop_has_no_finding(
    sandbox: Sandbox, shop: Shop, story: Callable[[Sandbox, Shop], None]
) -> None:
    """A correct shop has no finding, though it resembles a wrong one."""
    story(sandbox, shop)
    assert findings(sandbox) == []


def test_a_clean_integration_gives_no_finding(sandbox: Sandbox, shop: Shop) -> None:
    """Waiting for webhooks, reading orders, answering 2xx and capturing in time give no finding."""
    sandbox.settings(webhook_url=shop.url)
    shop.answer = lambda received: 200 if sandbox.read(received.body["order_id"]) else 500
    order = sandbox.place(card(capture_mode="manual"), merchant_order_id="basket-8", return_url=RETURN)
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "pay")
    sandbox.settle()
    sandbox.take(order, "captures")
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5})
    sandbox.advance("PT1M")
    cancelled = sandbox.place(card(), merchant_order_id="basket-9")
    sandbox.delete(f"/v1/orders/{cancelled['id']}/")
    sandbox.place(card(), merchant_order_id="basket-9")
    sandbox.settle()
    assert findings(sandbox) == []


def test_effects_of_a_scenario_are_no_findings(watched: Sandbox, shop: Shop) -> None:
    """A webhook that a scenario answers gives no finding."""
    watched.scenario(webhooks=[{"when": {"attempt": 1}, "then": {"answer": 503}}])
    shop.answer = lambda received: 200 if watched.read(received.body["order_id"]) else 500
    watched.acted(watched.place(card()), "customer visit")
    watched.advance("PT2M")
    assert findings(watched) == []


def test_orders_that_the_journal_had_to_cut_are_reviewed_too(watched: Sandbox) -> None:
    """Responses longer than the journal's limit are reviewed."""
    lines = [{"name": "x" * 200, "amount": 1, "quantity": 1} for _ in range(120)]
    order = watched.place(by("wallet-web"), amount=120, order_lines=lines)
    for _ in range(7):
        assert len(watched.get(f"/v1/orders/{order['id']}/").content) > 16_384
    reported = review(SandboxClient(watched.url, watched.key))
    assert [finding.rule for finding in reported] == ["HOOK-02"]


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (500, "an error", "Your handler failed"),
        (404, "a refusal", "Your shop refused it"),
        (302, "a redirect", "is this your return page?"),
    ],
)
def test_advice_fits_the_answer(sandbox: Sandbox, shop: Shop, status: int, kind: str, advice: str) -> None:
    """The advice depends on the status of the answer."""
    shop.answer = lambda received: status if sandbox.read(received.body["order_id"]) else 200
    sandbox.settings(webhook_url=shop.url)
    sandbox.acted(sandbox.place(card()), "customer visit")
    sandbox.settle()
    (finding,) = findings(sandbox)
    assert finding.problem == f"Your shop answered the webhook with {kind} ({status})"
    assert advice in finding.advice


def test_refused_calls_are_hints(sandbox: Sandbox) -> None:
    """Each kind of refused call is one hint, since tests may send it on purpose."""
    order = sandbox.place(card())
    for _ in range(2):
        sandbox.create(card(), amount=12.5)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {})
    sandbox.get("/v1/orders/unknown/")
    by_problem = {finding.problem: finding for finding in findings(sandbox)}
    problems = sorted(finding.problem for finding in findings(sandbox))
    assert {finding.kind for finding in by_problem.values()} == {"hint"}
    assert [problem.split(":")[0] for problem in problems] == [
        "The service refused 2 calls",
        "The service refused a call",
        "The service refused a call",
    ]
    assert any("Read the order" in finding.advice for finding in findings(sandbox))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["customer visit"], "Your shop did not answer the webhook: "),
        (["customer visit", "customer pay"], "Your shop answered neither of two webhooks: "),
    ],
)
def test_unanswered_webhooks_are_counted(sandbox: Sandbox, steps: list[str], words: str) -> None:
    """The finding says whether one or both webhooks were unanswered."""
    sandbox.settings(webhook_url="http://127.0.0.1:9/webhook")
    order = sandbox.place(card())
    for step in steps:
        sandbox.acted(order, step)
    sandbox.settle()
    sandbox.read(order)
    assert [words in finding.problem for finding in findings(sandbox)] == [True]


def test_a_webhook_of_a_refund_is_not_one_of_a_payment(sandbox: Sandbox, shop: Shop) -> None:
    """An unread webhook of a refund has a finding of its own."""
    sandbox.settings(webhook_url=shop.url)
    order = sandbox.place(card())
    sandbox.pay(order)
    sandbox.settle()
    sandbox.read(order)
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    sandbox.settle()
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.order_id) == ("HOOK-08", refund["id"])
    assert finding.problem == "Your shop answered a webhook for a refund, but did not read the refund"
    assert finding.risk == "€5.00: a customer is owed money, but never gets it"
    assert finding.page.endswith("#refunds-can-fail")
    sandbox.read(refund)
    assert findings(sandbox) == []


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
