"""Requests of public plugins that differ from the documented ones, but are accepted."""

import json
from base64 import b64encode
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from tests.support.driver import CUSTOMER, LINES, NOBODY, Sandbox, by, refused, violations
from tests.support.payer import Payer

EMPTY_BODIES = [b"", b" ", b"{}", b"[]", b"null", b'""', b"\xef\xbb\xbf[]"]


class Answer(NamedTuple):
    """A response with a JSON body."""

    status: int
    json: Any


def send(sandbox: Sandbox, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
    """Send bytes or parts of bytes to a path as it is, which HTTP clients would normalize."""
    connection = HTTPConnection(sandbox.url.removeprefix("http://"))
    key = b64encode(f"{sandbox.key}:".encode()).decode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(
        method, path, body, {"Authorization": f"Basic {key}", "Content-Type": "application/json", **named}
    )
    answer = connection.getresponse()
    known = Answer(answer.status, json.loads(answer.read()))
    connection.close()
    return known


@pytest.mark.rule("A05")
@pytest.mark.parametrize("body", EMPTY_BODIES)
def test_an_empty_value_captures_and_refunds_everything(sandbox: Sandbox, body: bytes) -> None:
    """All notations of an empty body capture and refund in full."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}"
    captured = send(sandbox, "POST", f"{path}/transactions/{order['transactions'][0]['id']}/captures/", body)
    assert (captured.status, captured.json.get("is_fully_captured")) == (200, True), captured.json
    refund = send(sandbox, "POST", f"{path}/refunds/", body)
    assert (refund.status, refund.json["amount"]) == (201, 2000)


@pytest.mark.rule("A05")
def test_a_chunked_body_without_chunks_is_empty(sandbox: Sandbox) -> None:
    """A client that announces a body and expects 100 Continue may send none."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/"
    assert send(sandbox, "POST", path, iter(()), Expect="100-continue").json["is_fully_captured"] is True


@pytest.mark.parametrize("body", [[[]], [1], 0, False, "x"])
def test_other_values_do_not_count_as_empty(sandbox: Sandbox, body: Any) -> None:
    """A list with items, a number or a text is not an object; an empty list is no order."""
    order = sandbox.pay(sandbox.place(by("wallet-web")))
    assert send(sandbox, "POST", f"/v1/orders/{order['id']}/refunds/", json.dumps(body)).status == 400
    assert send(sandbox, "POST", "/v1/orders/", b"[]").status == 400


@pytest.mark.rule("A65")
@pytest.mark.parametrize("query", ["fields[0]={0}&fields[1]={1}", "fields%5B1%5D={0}&fields[]={1}"])
def test_numbered_fields_are_a_list(sandbox: Sandbox, query: str) -> None:
    """Numbered items give the same blocks, and are not reported as unknown."""
    order = sandbox.place(by("wallet-web"), amount=2000, order_lines=LINES)
    names = ("amount_details", "order_line_details")
    answer = sandbox.get(f"/v1/orders/{order['id']}/?{query.format(*names)}")
    assert set(names) <= answer.json().keys()
    assert "Sandbox-Ignored-Fields" not in answer.headers
    other = sandbox.get(f"/v1/orders/{order['id']}/?fields[a]=amount_details")
    assert (other.status_code, "amount_details" in other.json()) == (200, False)
    assert "fields[]" in violations(sandbox.get(f"/v1/orders/{order['id']}/?fields[0]=x"))


@pytest.mark.rule("A64")
@pytest.mark.parametrize("start", ["//v1/orders/", "/v1//orders/", "///v1///orders/", "/v1/%2Forders/"])
def test_empty_segments_before_the_resource_count_as_none(sandbox: Sandbox, start: str) -> None:
    """Faults, the journal and idempotency keys see the normal path; the journal notes it once."""
    sandbox.put(
        "/control/faults/", {"faults": [{"when": {"path": "/v1/orders/", "nth": 3}, "then": {"status": 503}}]}
    )
    body = json.dumps({"currency": "EUR", "amount": 5}).encode()
    first, second = (
        send(sandbox, "POST", path, body, Idempotency_Key="k") for path in (start, "/v1/orders/")
    )
    assert (first.status, first.json) == (201, second.json)
    assert send(sandbox, "POST", start, body).status == 201
    assert send(sandbox, "POST", start, body).status == 503
    entries = sandbox.get("/control/journal/").json()["items"]
    assert {entry["path"].rstrip("/") for entry in entries} == {"/v1/orders"}
    assert ["empty segment" in json.dumps(entry) for entry in entries] == [True, False, False, False]
    assert send(sandbox, "GET", start.replace("v1", "health").partition("orders")[0], b"").status == 200


@pytest.mark.rule("A64")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path",
    ["/v1/orders//", "//v1/orders///", "/v1/orders//refunds/", "/v1//orders//transactions/a/captures/"],
)
def test_an_empty_order_id_is_named(sandbox: Sandbox, method: str, path: str) -> None:
    """A request for the order without an id creates none."""
    answer = send(sandbox, method, path, json.dumps({"currency": "EUR", "amount": 5}).encode())
    assert (answer.status, answer.json["error"]["value"]) == (404, "the order id is empty")
    assert sandbox.get("/control/orders/").json()["items"] == []


@pytest.mark.rule("A64")
def test_an_empty_transaction_id_is_named(sandbox: Sandbox) -> None:
    """The transaction is named, even with an order."""
    order = sandbox.authorized()
    answer = send(sandbox, "POST", f"/v1/orders/{order['id']}/transactions//captures/", b"")
    assert (answer.status, answer.json["error"]["value"]) == (404, "the transaction id is empty")


@pytest.mark.rule("A66")
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "refunds/"), ("PUT", ""), ("POST", "transactions/{transaction}/captures/amount/")],
)
def test_if_match_is_compared_before_the_body(sandbox: Sandbox, method: str, path: str) -> None:
    """An outdated ETag is 412 whatever the body is; an empty one counts as absent."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/" + path.format(transaction=order["transactions"][0]["id"])
    for body in (b"{", b'{"amount": "x"}', b"", b"<xml/>"):
        answer = send(sandbox, method, path, body, If_Match='"old"')
        assert (answer.status, answer.json["error"]["type"]) == (412, "PreconditionFailed")
        assert send(sandbox, method, path, body, If_Match="").status != 412
    assert send(sandbox, method, path, b"{", If_Match="*").status == 400
    unknown = path.replace(order["id"], NOBODY)
    assert send(sandbox, method, unknown, b"{", If_Match='"old"').status == 404


@pytest.fixture
def payer(live: Sandbox) -> Payer:
    """A customer of a project in mode live."""
    return Payer(live)


@pytest.mark.rule("ORD-30")
def test_failure_url_is_stored_changed_and_checked(sandbox: Sandbox) -> None:
    """It is a URL like return_url."""
    order = sandbox.place(by("wallet-web"), failure_url="https://shop.example/no")
    assert sandbox.read(order)["failure_url"] == "https://shop.example/no"
    path = f"/v1/orders/{order['id']}/"
    assert sandbox.put(path, {"failure_url": "https://shop.example/x"}).json()["failure_url"][-1] == "x"
    assert violations(sandbox.put(path, {"failure_url": "shop"})).keys() == {"failure_url"}
    assert violations(sandbox.create(failure_url="myapp://no")).keys() == {"failure_url"}


NO, YES = "https://shop.example/no?a=1", "https://shop.example/yes"


@pytest.mark.rule("A67")
@pytest.mark.parametrize(
    ("urls", "button", "arrives"),
    [
        ({"return_url": YES, "failure_url": NO}, "cancel", NO),
        ({"return_url": YES, "failure_url": NO}, "fail", NO),
        ({"return_url": YES, "failure_url": NO}, "pay", YES),
        ({"return_url": YES}, "cancel", YES),
        ({"failure_url": NO}, "fail", NO),
        ({"failure_url": NO}, "pay", None),
    ],
)
def test_a_failed_payment_leads_to_failure_url(
    live: Sandbox, payer: Payer, urls: dict[str, str], button: str, arrives: str | None
) -> None:
    """The ids are added to either URL; without failure_url, all customers come to return_url."""
    order = live.place(by("wallet-web"), **urls)
    payer.press(payer.open(order["transactions"][0]["payment_url"]), button)
    if arrives is None:
        assert payer.arrived is None
    else:
        ids = f"order_id={order['id']}&project_id={order['project_id']}"
        assert payer.arrived == f"{arrives}{'&' if '?' in arrives else '?'}{ids}"


def leave(payer: Payer, order: dict[str, Any]) -> str:
    """Follow the link back to the shop."""
    payer.open(f"{order['order_url']}back/")
    return payer.arrived or ""


@pytest.mark.rule("A67")
def test_customers_leave_the_hosted_page_to_failure_url(live: Sandbox, payer: Payer) -> None:
    """They do without an open attempt, and after the expiry; with an open transfer they will still pay."""
    left, expired, transfer = (live.place(return_url=YES, failure_url=NO) for _ in range(3))
    assert leave(payer, left).startswith(NO)
    live.acted(transfer, "customer choose", payment_method="bank-transfer")
    assert leave(payer, transfer).startswith(YES)
    live.acted(transfer, "bank credit")
    live.advance("P2D")
    assert live.read(expired)["status"] == "expired"
    assert leave(payer, expired).startswith(NO)
    assert leave(payer, transfer).startswith(YES)


@pytest.mark.rule("ORD-31", "A68")
@pytest.mark.parametrize(
    ("locale", "customer", "language"),
    [
        ("de-DE", None, "de"),
        ("nl-NL", None, "nl"),
        ("nl-BE", None, "nl-BE"),
        ("fr_FR", None, "fr-BE"),
        ("EN", None, "en-GB"),
        (" de ", None, "de"),
        ("de-DE", "nl", "nl"),
        ("sv-SE", None, "en-GB"),
        ("", None, "en-GB"),
        ("\u00e9\n", None, "en-GB"),
    ],
)
def test_the_locale_of_an_order_selects_the_language(
    sandbox: Sandbox, locale: str, customer: str | None, language: str
) -> None:
    """Any text is stored; an unknown language gives English and a warning, whatever the browser prefers."""
    more = {"customer": {"locale": customer}} if customer is not None else {}
    answer = sandbox.create(by("wallet-web"), locale=locale, **more)
    assert answer.json()["locale"] == locale
    page = Payer(sandbox, language="fr-FR").open(answer.json()["transactions"][0]["payment_url"])
    assert page.language == language
    assert ("languages" in answer.headers.get("Sandbox-Warnings", "")) == (
        locale in ("sv-SE", "", "\u00e9\n")
    )
    path = f"/v1/orders/{answer.json()['id']}/"
    changed = sandbox.put(path, {"locale": "no-NO"})
    assert (changed.json()["locale"], "no-NO" in changed.headers["Sandbox-Warnings"]) == ("no-NO", True)
    assert "Sandbox-Warnings" not in sandbox.put(path, {"description": "x"}).headers
    assert "locale" in violations(sandbox.create(locale=7))


@pytest.mark.rule("ORD-32", "A69")
@pytest.mark.parametrize("value", ["x", 7, False, None, 1.5, ["a"], {"a": [1]}])
def test_additional_keys_are_returned_with_any_value(sandbox: Sandbox, value: Any) -> None:
    """Keys of lines, orders and addresses are stored; a null of a customer counts as absent."""
    line_keys = dict.fromkeys(["url", "image_url", "ean", "discount_rate", "id"], value)
    keys = ["postal_code", "housenumber", "merchant_customer_id", "user_agent", "forwarded_ip"]
    address = {"country": "NL", **dict.fromkeys(keys, value)}
    answer = sandbox.create(
        amount=2000,
        order_lines=[{**LINES[0], **line_keys}, LINES[1]],
        verified_terms_of_service=value,
        customer={**CUSTOMER, **address, "additional_addresses": [address]},
    )
    assert "Sandbox-Ignored-Fields" not in answer.headers
    order = sandbox.read(answer.json())
    assert order["order_lines"] == [{**LINES[0], **line_keys}, LINES[1]]
    assert order["verified_terms_of_service"] == value
    if value is not None:
        assert order["customer"] == {**CUSTOMER, **address, "additional_addresses": [address]}
    written = sandbox.put(f"/v1/orders/{order['id']}/", order)
    assert (written.status_code, "Sandbox-Ignored-Fields" in written.headers) == (200, False)
    state = sandbox.get("/control/state/").json()
    assert sandbox.put("/control/state/", state).status_code == 200
    assert sandbox.read(order)["order_lines"] == order["order_lines"]


def test_nulls_in_lists_are_dropped_in_the_customer_only(sandbox: Sandbox) -> None:
    """Elsewhere, null is no object."""
    customer = {"additional_addresses": [None, {"country": "NL"}], "phone_numbers": [None, "0201234567"]}
    stored = sandbox.place(customer=customer)["customer"]
    assert stored == {"additional_addresses": [{"country": "NL"}], "phone_numbers": ["0201234567"]}
    assert refused(sandbox.create(order_lines=[None]), 400, "ValidationError")
    assert refused(sandbox.create(None), 400, "ValidationError")
