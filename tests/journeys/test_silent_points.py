"""Behaviour for which the specification is silent, as the assumptions define it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, card, details, violations
from tests.support.shop import Shop


@pytest.mark.rule("A50")
def test_a_method_that_is_not_on_the_order_s_list(sandbox: Sandbox) -> None:
    """The list of methods restricts only the hosted page."""
    order = sandbox.place(card(), payment_methods=["wallet-qr"])
    assert order["transactions"][0]["payment_method"] == "credit-card"
    assert order["payment_methods"] == ["wallet-qr"]


@pytest.mark.rule("A51")
@pytest.mark.parametrize(
    ("field", "accepted", "refused"), [("country", "ZZ", "Zed"), ("birthdate", "2090-01-01", "2090-13-01")]
)
def test_countries_and_birthdates(sandbox: Sandbox, field: str, accepted: str, refused: str) -> None:
    """Only their format is validated."""
    assert sandbox.place(card(), customer={field: accepted})["customer"] == {field: accepted}
    assert sandbox.create(card(), customer={field: refused}).status_code == 400


def create_and_scan(sandbox: Sandbox, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Create and scan a QR request; return its id and the order."""
    body = {"amount": 1000, "description": "Coffee", **fields}
    code = sandbox.post("/v1/bankqr/", body).json()["id"]
    return code, sandbox.post(f"/control/bankqr/{code}/scan/").json()


@pytest.mark.rule("A52", "A53")
def test_a_one_off_code_is_used_up_by_a_payment_that_fails(sandbox: Sandbox) -> None:
    """After a failed payment, only a reusable code can be scanned again."""
    for is_one_off, status in ((True, 409), (False, 201)):
        code, order = create_and_scan(sandbox, one_off=is_one_off)
        sandbox.acted(order, "customer fail")
        assert sandbox.post(f"/control/bankqr/{code}/scan/").status_code == status


@pytest.mark.rule("A60", "QR-22", "HOOK-03")
def test_a_code_without_an_address_for_webhooks(watched: Sandbox, shop: Shop) -> None:
    """Its orders use the project's address; a code with an address uses its own."""
    _, order = create_and_scan(watched)
    assert "webhook_url" not in watched.get("/control/bankqr/").json()["items"][0]
    assert "webhook_url" not in order
    _, other = create_and_scan(watched, webhook_url=f"{shop.url}/own")
    watched.settle()
    assert [(each.body["order_id"], each.path) for each in shop.received] == [
        (order["id"], "/webhook"),
        (other["id"], "/webhook/own"),
    ]


@pytest.mark.rule("A58", "FLOW-08")
@pytest.mark.parametrize(
    "kind", [{}, {"one_click_type": "first"}, {"recurring_type": "first"}, {"recurring_type": "recurring"}]
)
def test_a_cvc_that_is_not_needed(sandbox: Sandbox, kind: dict[str, str]) -> None:
    """A CVC that is not needed has no effect and is never returned; an invalid one is refused."""
    if "recurring" in kind.values():
        first = sandbox.pay(sandbox.place(details(recurring_type="first")))
        token = first["transactions"][0]["payment_method_details"]["vault_token"]
        kind = {**kind, "vault_token": token}
    without = sandbox.create(details(**kind))
    with_code = sandbox.create(details(**kind, cvc="9173"))
    for answer in (without, with_code):
        assert (answer.status_code, answer.headers.get("Sandbox-Ignored-Fields")) == (201, None)
    assert with_code.json()["status"] == without.json()["status"]
    assert not re.search(r"(?<![\w-])9173(?![\w-])", with_code.text), "an identifier may have these digits"
    path = "transactions[0].payment_method_details.cvc"
    assert set(violations(sandbox.create(details(**kind, cvc="12")))) == {path}


@pytest.mark.rule("A59")
def test_line_details_contain_only_given_fields(sandbox: Sandbox) -> None:
    """Missing names, VAT rates and identifiers of lines are omitted."""
    minimal = {"amount": 400, "quantity": 1}
    complete = {**minimal, "merchant_order_line_id": "a", "name": "Socks", "vat_percentage": 2100}
    lines = [minimal, complete, {**minimal, "name": "Postage"}]
    order = sandbox.pay(sandbox.place(card(capture_mode="manual"), amount=1200, order_lines=lines))
    entries = sandbox.read(order, "order_line_details")["order_line_details"]
    optional = {"merchant_order_line_id", "name", "vat_percentage"}
    assert [entry.keys() & optional for entry in entries] == [set(), optional, {"name"}]
    assert [entry["quantity"] for entry in entries] == ["1", "1", "1"]


def test_an_unknown_path_without_a_key(sandbox: Sandbox) -> None:
    """An unknown path gets 404 with a valid key, a wrong key and no key."""
    for auth in (None, (sandbox.key, ""), ("wrong", "")):
        answer = requests.get(f"{sandbox.url}/v1/nothing/", auth=auth)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NotFound")


@pytest.mark.rule("A57", "SET-71")
def test_a_request_that_is_asked_for_again(sandbox: Sandbox) -> None:
    """A request with a used key is replayed; the key cannot be used for another request."""
    key, body = {"Idempotency-Key": "order-17"}, {"currency": "EUR", "amount": 1295}
    answers = [sandbox.post("/v1/orders/", body, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    assert answers[0].headers["ETag"] == answers[1].headers["ETag"]
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    assert len(sandbox.get("/control/orders/").json()["items"]) == 1
    other = sandbox.post("/v1/orders/", {**body, "amount": 5}, headers=key)
    assert (other.status_code, other.json()["error"]["type"]) == (409, "KeyReused")
    order = sandbox.place(card(capture_mode="manual"), amount=1000)
    sandbox.acted(order, "customer pay")
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/amount/"
    for _ in range(2):
        captured = sandbox.post(path, {"amount": 600}, headers={"Idempotency-Key": "capture-17"})
        assert captured.status_code == 200
    assert sandbox.post(path, {"amount": 600}).status_code == 409, "a call without a key is a new call"


@pytest.mark.rule("A56")
def test_the_period_of_an_order_beside_a_transaction(sandbox: Sandbox) -> None:
    """The period of the transaction takes precedence."""
    order = sandbox.place(card(expiration_period="PT10M"), expiration_period="PT5M")
    assert order["expiration_period"] == "PT5M"
    (due,) = sandbox.get("/control/agenda/").json()["items"]
    assert due["kind"] == "expiry"
    created, expires = (datetime.fromisoformat(at) for at in (order["created"], due["at"]))
    assert expires - created == timedelta(minutes=10)


@pytest.mark.rule("A07", "A16")
def test_what_a_line_needs(sandbox: Sandbox) -> None:
    """An amount per item and a quantity are required; the defaults are physical and EUR."""
    order = sandbox.place(card(capture_mode="manual"), order_lines=[{"amount": 500, "quantity": 2}])
    (line,) = order["order_lines"]
    assert (line["type"], line["currency"], order["amount"]) == ("physical", "EUR", 1000)
    for missing in ("amount", "quantity"):
        lines = [{name: 1 for name in ("amount", "quantity") if name != missing}]
        assert set(violations(sandbox.create(order_lines=lines))) == {f"order_lines[0].{missing}"}
    assert "Sandbox-Warnings" not in sandbox.create(order_lines=[{"amount": 500, "quantity": 2}]).headers
    assert "Sandbox-Warnings" in sandbox.create(order_lines=[{"amount": 1000, "quantity": 2}]).headers


@pytest.mark.rule("A20")
def test_the_etag_of_another_representation(sandbox: Sandbox) -> None:
    """A setting that changes the representation changes the ETag."""
    order = sandbox.place(card())
    tags = []
    for absolute in (False, True, False):
        sandbox.settings(absolute_urls=absolute)
        tags.append(sandbox.get(f"/v1/orders/{order['id']}/").headers["ETag"])
    assert tags[0] == tags[2] != tags[1]


@pytest.mark.rule("A28")
def test_the_webhooks_of_a_refund(watched: Sandbox, shop: Shop) -> None:
    """They have the id of the refund."""
    order = watched.place(card())
    watched.pay(order)
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    watched.settle()
    assert refund["id"] in [received.body["order_id"] for received in shop.received]


@pytest.mark.rule("A31")
def test_the_address_of_a_retried_webhook(watched: Sandbox, shop: Shop) -> None:
    """A retry uses the address at the time of the status change."""
    shop.answer = lambda received: 500
    order = watched.place(card())
    watched.pay(order)
    watched.settle()
    watched.put(f"/v1/orders/{order['id']}/", {"webhook_url": f"{shop.url}?new"})
    first = len(shop.received)
    watched.advance("PT2M")
    assert len(shop.received) > first
    assert not [received for received in shop.received if received.path.endswith("?new")]


@pytest.mark.rule("A36")
def test_when_a_seed_takes_effect(project: Callable[..., Sandbox]) -> None:
    """A new seed takes effect at the next reset, since ids must stay unique."""
    same, changed = project(seed=1), project(seed=1)
    changed.settings(seed=2)
    assert same.place()["id"] == changed.place()["id"]
    for sandbox in (same, changed):
        sandbox.post("/control/reset/")
    assert same.place()["id"] != changed.place()["id"]


@pytest.mark.rule("A37")
def test_the_default_bank(sandbox: Sandbox) -> None:
    """In a control call, the default issuer is the first of the list."""
    order = sandbox.place()
    answer = sandbox.act(order, "customer choose", payment_method="bank-redirect-nl")
    assert answer.status_code == 200, answer.text
    first = sandbox.get("/v1/bank-redirect-nl/issuers/").json()[0]["id"]
    details = sandbox.read(order)["transactions"][0]["payment_method_details"]
    assert details["issuer_id"] == first


@pytest.mark.rule("A47")
def test_unknown_keys_and_parameters_are_named(sandbox: Sandbox) -> None:
    """Unknown keys are named with the nearest known key; unknown query parameters are named, too."""
    sent = {"amuont": 1, "order_number": "1", "cents": 1, "metadata": {}, "custom_fields": {}, "clients": "x"}
    ignored = sandbox.create(card(captures="manual"), **sent).headers["Sandbox-Ignored-Fields"]
    assert dict(each.partition(";nearest=")[::2] for each in ignored.split(", ")) == {
        "amuont": "amount",
        "order_number": "merchant_order_id",  # its name in other APIs
        "cents": "amount",
        "metadata": "extra",
        "custom_fields": "",
        "clients": "",  # client is an object
        "transactions[0].captures": "",
    }
    order = sandbox.place()
    named = sandbox.get(f"/v1/orders/{order['id']}/?colour=red").headers["Sandbox-Ignored-Fields"]
    assert "colour" in named


@pytest.mark.rule("A49")
def test_how_many_lines_there_may_be(sandbox: Sandbox) -> None:
    """An order may have a thousand lines."""
    line = {"amount": 1, "quantity": 1}
    assert sandbox.create(amount=1000, order_lines=[line] * 1000).status_code == 201
    assert sandbox.create(amount=1001, order_lines=[line] * 1001).status_code == 400


def test_how_long_the_payment_after_a_scan_lasts(sandbox: Sandbox) -> None:
    """A scanned payment has the default period of its method."""
    _, order = create_and_scan(sandbox)
    assert order["transactions"][0]["expiration_period"] == "PT60M"
    wallet = sandbox.place({"payment_method": "wallet-qr"})
    assert wallet["transactions"][0]["expiration_period"] == "PT30M"
    sandbox.advance("PT59M")
    assert sandbox.read(order)["status"] == "processing"
    sandbox.advance("PT1M")
    assert sandbox.read(order)["status"] == "expired"
