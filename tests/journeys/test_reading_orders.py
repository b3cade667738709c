"""The representation of orders and transactions."""

import re
from collections.abc import Callable

import pytest

from tests.support.driver import START, Sandbox, by, card

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")


@pytest.mark.rule("ORD-01", "ORD-22", "SET-19")
def test_identifiers_are_uuids_and_nobody_can_choose_them(sandbox: Sandbox) -> None:
    """An id in the request is ignored."""
    order = sandbox.place(id="mine", merchant_id="mine", project_id="mine")
    assert all(UUID.fullmatch(order[key]) for key in ("id", "merchant_id", "project_id"))
    assert order["project_id"] == sandbox.project["project_id"]
    assert order["merchant_id"] == sandbox.project["merchant_id"]


@pytest.mark.rule(
    "ORD-17",
    "GEN-02",
    "STA-02",
    "TX-01",
    "TX-02",
    "TX-03",
    "TX-05",
    "TX-06",
    "TX-09",
    "TX-11",
    "TX-14",
    "TX-16",
)
def test_a_transaction_is_answered_as_a_full_record(sandbox: Sandbox) -> None:
    """A transaction has every field that a merchant may rely on."""
    order = sandbox.place(card(), description="Socks")
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("new", "new")
    assert UUID.fullmatch(transaction["id"])
    expected = {
        "order_id": order["id"],
        "merchant_id": order["merchant_id"],
        "project_id": order["project_id"],
        "amount": 1000,
        "currency": "EUR",
        "description": "Socks",
        "credit_debit": "credit",
        "payment_method": "credit-card",
        "payment_method_details": {},
        "created": START,
        "modified": START,
    }
    assert {key: transaction[key] for key in expected} == expected
    assert isinstance(transaction["product_type"], str)
    assert isinstance(transaction["events"], list)
    assert transaction["payment_url"]


@pytest.mark.rule("EVT-01", "EVT-02", "EVT-03", "EVT-04", "TEV-01")
def test_every_status_of_a_transaction_is_an_event(live: Sandbox) -> None:
    """Events have the status, an id, both times and a source."""
    order = live.place(card())
    live.advance("PT1M")
    live.acted(order, "customer visit")
    events = live.read(order)["transactions"][0]["events"]
    assert [event["event"] for event in events] == ["new", "processing"]
    assert all(UUID.fullmatch(event["id"]) and event["source"] == "set_status" for event in events)
    assert events[1]["occurred"] == events[1]["noticed"] == "2026-03-01T12:01:00.000000+00:00"
    live.pay(order)
    events = live.read(order)["transactions"][0]["events"]
    assert [event["event"] for event in events] == ["new", "processing", "completed"]
    transfer = live.place(by("bank-transfer"))
    assert [event["event"] for event in transfer["transactions"][0]["events"]] == ["new", "pending"]


@pytest.mark.rule("ORD-18", "SET-14", "A40")
def test_the_client_is_echoed_or_made_from_the_user_agent(sandbox: Sandbox) -> None:
    """Client and extra are free-form; the default client is the User-Agent of the request."""
    sent = {"user_agent": "Shop/1", "platform": {"name": "any"}}
    order = sandbox.place(client=sent, extra={"basket": [1, {"b": None}]})
    assert order["client"] == sent
    assert order["extra"] == {"basket": [1, {"b": None}]}
    assert sandbox.place()["client"]["user_agent"].startswith("python-requests/")


@pytest.mark.rule("ORD-19", "ORD-20", "ORD-21", "TX-06", "TX-07", "SET-19")
def test_times_are_sandbox_time_with_microseconds_and_offset(sandbox: Sandbox) -> None:
    """Created is constant, modified changes, and completed appears with the completion."""
    order = sandbox.place(card())
    assert all(TIME.fullmatch(order[key]) for key in ("created", "modified", "last_transaction_added"))
    assert "completed" not in order
    assert "completed" not in order["transactions"][0]
    sandbox.advance("PT5M")
    paid = sandbox.pay(order)
    five_past = "2026-03-01T12:05:00.000000+00:00"
    assert (paid["created"], paid["modified"], paid["completed"]) == (START, five_past, five_past)
    (transaction,) = paid["transactions"]
    assert (transaction["created"], transaction["modified"]) == (START, five_past)
    assert transaction["completed"] == five_past


@pytest.mark.rule("ORD-24", "TX-12", "SET-23", "SET-24")
@pytest.mark.parametrize(("absolute", "scheme"), [(False, ""), (True, "http://")])
def test_addresses_have_a_scheme_with_absolute_urls(
    project: Callable[..., Sandbox], absolute: bool, scheme: str
) -> None:
    """Both addresses start with the host, with ``absolute_urls`` with the scheme before it."""
    sandbox = project(absolute_urls=absolute)
    start = f"{scheme}{sandbox.url.partition('://')[2]}/"
    order = sandbox.place(card())
    assert order["order_url"].startswith(start)
    assert order["transactions"][0]["payment_url"].startswith(start)


@pytest.mark.rule("ORD-28", "ORD-29", "END-03", "END-04", "END-05", "END-06")
def test_extra_blocks_can_be_asked_for_one_by_one_or_together(sandbox: Sandbox) -> None:
    """A read without ``fields[]`` has neither block; it may be repeated; an unknown block is refused with the known ones."""
    order = sandbox.authorized()
    assert not {"order_line_details", "amount_details"} & sandbox.read(order).keys()
    assert "order_line_details" in sandbox.read(order, "order_line_details")
    assert "amount_details" in sandbox.read(order, "amount_details")
    both = sandbox.read(order, "order_line_details", "amount_details")
    assert {"order_line_details", "amount_details"} <= both.keys()
    answer = sandbox.get(f"/v1/orders/{order['id']}/?fields[]=everything")
    assert answer.json()["error"]["violations"][0]["allowed"] == ["order_line_details", "amount_details"]


@pytest.mark.rule("SET-18", "ORD-21")
def test_a_choice_on_the_page_appends_a_transaction(sandbox: Sandbox) -> None:
    """After a failed attempt the customer can choose again; the order lists both attempts."""
    order = sandbox.place()
    assert "last_transaction_added" not in order
    sandbox.advance("PT1M")
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    failed = sandbox.acted(order, "customer fail")
    assert (failed["status"], failed["transactions"][0]["status"]) == ("processing", "error")
    sandbox.advance("PT1M")
    chosen_again = sandbox.acted(order, "customer choose", payment_method="wallet-web")
    assert [t["payment_method"] for t in chosen_again["transactions"]] == ["credit-card", "wallet-web"]
    assert chosen_again["last_transaction_added"] == "2026-03-01T12:02:00.000000+00:00"
    assert sandbox.pay(order)["status"] == "completed"


@pytest.mark.rule("SET-26", "SET-29", "TX-04")
def test_mode_shows_in_flags_and_balance(project: Callable[..., Sandbox]) -> None:
    """Flag and balance distinguish test payments from live ones."""
    test_order, live_order = project().place(card()), project(mode="live").place(card())
    assert (test_order["flags"], test_order["transactions"][0]["balance"]) == (["is-test"], "test")
    assert (live_order["flags"], live_order["transactions"][0]["balance"]) == ([], "internal")
    assert test_order["transactions"][0]["channel"] == "ecom"


@pytest.mark.rule("SET-26")
def test_flags_say_what_has_happened(sandbox: Sandbox) -> None:
    """Partial captures, voids and refunds set their flags; a refund has its own flag."""
    plain = sandbox.authorized()
    assert plain["flags"] == ["is-test"]
    assert sandbox.take(plain, "captures/amount", {"amount": 1}).status_code == 200
    assert sandbox.read(plain)["flags"] == ["is-test", "has-captures"]
    assert sandbox.take(plain, "voids/amount", {"amount": 1}).status_code == 200
    assert sandbox.read(plain)["flags"] == ["is-test", "has-captures", "has-voids"]
    refund = sandbox.post(f"/v1/orders/{plain['id']}/refunds/", {"amount": 1}).json()
    assert refund["flags"] == ["is-test", "is-refund"]
    assert sandbox.read(plain)["flags"] == ["is-test", "has-captures", "has-voids", "has-refunds"]


@pytest.mark.rule("TX-10")
def test_brands_are_lower_case(live: Sandbox) -> None:
    """The brand of a transfer is sepa; the brand of a card is its family once it is known."""
    assert live.place(by("bank-transfer"))["transactions"][0]["payment_method_brand"] == "sepa"
    order = live.place(card())
    assert order["transactions"][0]["payment_method_brand"].islower()
    paid = live.pay(order, card="maestro")
    assert paid["transactions"][0]["payment_method_brand"] == "maestro"
