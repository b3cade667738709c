"""People find an order by what they call it, and lists say in words what happened and why."""

import re

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card


@pytest.mark.parametrize(
    "text",
    ["€1.05", "1,05", "1.05", "lukasz", "Łukasz", "LUKASZ", "soren"],
)
def test_an_order_is_found_as_people_write_it(sandbox: Sandbox, text: str) -> None:
    """An amount with a point, a comma or a sign; a name with and without accents and strokes."""
    customer = {"first_name": "Łukasz", "last_name": "Søren", "email_address": "l@example.com"}
    wanted = sandbox.place(card(), amount=105, customer=customer)
    other = sandbox.place(card(), amount=2300)
    page = Dashboard(sandbox).open(f"orders/?text={text}")
    assert f"order-{wanted['id']}" in page.ids
    assert f"order-{other['id']}" not in page.ids


def test_a_large_amount_is_found(sandbox: Sandbox) -> None:
    """With and without a comma between the thousands."""
    wanted = sandbox.place(card(), amount=123_450)
    for text in ("€1,234.50", "1234.50", "1234,50"):
        assert f"order-{wanted['id']}" in Dashboard(sandbox).open(f"orders/?text={text}").ids


def test_lists_name_the_order_by_the_shops_number(watched: Sandbox) -> None:
    """Webhooks, journal, agenda and review; an order without a number has the beginning of its id."""
    order = watched.pay(watched.place(card(), merchant_order_id="S-77"))
    nameless = watched.pay(watched.place(card()))
    watched.settle()
    watched.place(card(), merchant_order_id="S-78")
    browser = Dashboard(watched)
    webhooks = browser.open("webhooks/")
    assert "S-77" in webhooks.ids["webhooks"]
    assert nameless["id"][:8] in webhooks.ids["webhooks"]
    assert "S-77" in browser.open("review/").text
    watched.read(order)
    assert "S-77" in browser.open("journal/").ids["journal"]
    assert "S-78" in browser.open().ids["agenda"]


def test_a_refund_is_named_by_its_order(watched: Sandbox) -> None:
    """With its amount, since its own number is the order's."""
    order = watched.pay(watched.place(card(), merchant_order_id="S-77"))
    nameless = watched.pay(watched.place(card()))
    for each in (order, nameless):
        watched.post(f"/v1/orders/{each['id']}/refunds/", {"amount": 500})
    watched.settle()
    (refund,) = watched.get(f"/control/orders/{order['id']}/").json()["refunds"]
    watched.read(refund["id"])
    browser = Dashboard(watched)
    webhooks = browser.open("webhooks/").ids["webhooks"]
    assert "Refund €5.00 of S-77" in webhooks
    assert f"Refund €5.00 of {nameless['id'][:8]}" in webhooks
    (webhook, *_) = (each for each in watched.webhooks(order_id=refund["id"]))
    assert "OrderRefund €5.00 of S-77" in browser.open(f"webhooks/{webhook['id']}/").ids["webhooks"]
    assert "Refund €5.00 of S-77" in browser.open("journal/").ids["journal"]
    page = browser.open(f"orders/{order['id']}/")
    assert "completedRefund €5.00delivered" in page.ids["order-webhooks"]


def test_the_journal_says_why_a_call_was_refused(sandbox: Sandbox) -> None:
    """In a sentence, and a fault by its name."""
    order = sandbox.authorized(merchant_order_id="S-77")
    sandbox.take(order, "captures/amount", {"amount": 99_900})
    browser = Dashboard(sandbox)
    assert "€999.00 is too much: €20.00 are left to capture" in browser.open("journal/").ids["journal"]
    sandbox.put("/control/faults/", {"faults": [{"then": {"status": 503, "phase": "after"}}]})
    sandbox.call("GET", f"/v1/orders/{order['id']}/")
    page = browser.open("journal/")
    assert "response lost (503 instead)" in page.ids["journal"]
    request = next(link for link in page.links if "/requests/" in link)
    assert "by a fault: response lost (503 instead)" in browser.open(f"{sandbox.url}{request}").text


@pytest.mark.rule("SET-49")
def test_a_refusal_has_room_for_its_reason(sandbox: Sandbox) -> None:
    """Ids are short in lists and in the review, and the page of the request has the whole sentence."""
    order = sandbox.place(card())
    sandbox.pay(order)
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    sandbox.post(f"/v1/orders/{refund['id']}/refunds/", {"amount": 500})
    browser = Dashboard(sandbox)
    said = f"order {refund['id'][:8]}… is itself a refund: nothing to refund"
    page = browser.open("journal/")
    assert f"{said[0].upper()}{said[1:]}" in page.ids["journal"]
    request = next(link for link in page.links if "/requests/" in link)
    whole = f"Order {refund['id']} is itself a refund: nothing to refund"
    assert whole in browser.open(f"{sandbox.url}{request}").text
    review = browser.open("review/?now=1").text
    assert said in review
    assert re.search(rf"\d\d:\d\d:\d\d  POST /v1/orders/{refund['id'][:8]}…/refunds/ → 409", review)


def test_the_path_of_a_field_keeps_its_spelling(sandbox: Sandbox) -> None:
    """Although it begins a sentence."""
    assert sandbox.create({"payment_method": "bank-redirect-nl"}).status_code == 400
    assert "transactions[0].payment_method_details" in Dashboard(sandbox).open("journal/").ids["journal"]


def test_a_copy_of_a_webhook_is_called_a_copy(watched: Sandbox) -> None:
    """It has the number of its original."""
    watched.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    order = watched.place(card())
    watched.pay(order)
    watched.settle()
    webhook = watched.get(f"/control/webhooks/?order_id={order['id']}").json()["items"][0]
    text = Dashboard(watched).open(f"webhooks/{webhook['id']}/").text
    assert text.count("Attempt 1, a copy") == 1
    assert text.count("Attempt 1") == 2


def test_rules_are_sentences(sandbox: Sandbox) -> None:
    """Those for attempts, for webhooks and for requests."""
    sandbox.scenario(
        {"when": {"amount": 500}, "then": {"customer": "pays", "after": "PT10S"}},
        webhooks=[{"then": {"duplicate": 2}}],
        faults=[{"when": {"nth": 3}, "then": {"status": 503}}],
    )
    page = Dashboard(sandbox).open("scenario/")
    assert page.ids["rules"] == "For €5.00: the customer pays after 10 seconds."
    assert "For every webhook: the webhook arrives 2 times." in page.text
    assert "For call number 3: refused with 503." in page.text


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("idempotency", "The service has no idempotency keys"),
        ("Idempotent key", "The service has no idempotency keys"),
        ("chargeback", "no chargebacks and no disputes"),
        ("disputes", "no chargebacks and no disputes"),
        ("webhook signature", "Webhooks have no signature"),
        ("iDEAL", "There is no method named iDEAL"),
        ("klarna", "There is no method named Klarna"),
    ],
)
def test_the_documentation_says_what_there_is_not(sandbox: Sandbox, words: str, answer: str) -> None:
    """With a link to what there is instead, which leads somewhere."""
    browser = Dashboard(sandbox)
    page = browser.http.get(f"{sandbox.url}/docs/search/", params={"q": words}, timeout=10).text
    assert answer in page
    link = page.partition(answer)[2].partition('href="')[2].partition('"')[0]
    place, _, anchor = link.partition("#")
    shown = browser.http.get(f"{sandbox.url}{place}", timeout=10)
    assert shown.status_code == 200
    assert not anchor or f'id="{anchor}"' in shown.text


def test_the_documentation_answers_nothing_unasked(sandbox: Sandbox) -> None:
    """Words that only look alike get no such answer."""
    page = Dashboard(sandbox).http.get(f"{sandbox.url}/docs/search/?q=refund", timeout=10).text
    assert "There is no method" not in page
    assert "The service has no" not in page
