"""Creating and reading orders: every field of the request and of the record."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, START, Sandbox, by, card, violations

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")

FULL = {
    "description": "Two pairs of socks",
    "merchant_order_id": "shop-1001",
    "return_url": "https://shop.example/thanks?basket=7#top",
    "webhook_url": "https://shop.example/webhook",
    "expiration_period": "PT90M",
    "payment_methods": ["credit-card", "wallet-web"],
    "customer": {"locale": "nl-BE"},
}


@pytest.mark.rule("GEN-01", "STA-03", "END-02", "SET-07")
def test_amount_and_currency_alone_make_an_order(sandbox: Sandbox) -> None:
    """The smallest order is new, has no transaction and a hosted page."""
    answer = sandbox.post("/v1/orders/", {"currency": "EUR", "amount": 1295})
    assert answer.status_code == 201
    order = answer.json()
    assert (order["status"], order["amount"], order["transactions"]) == ("new", 1295, [])
    assert order["order_url"]


@pytest.mark.rule("FLOW-01", "ORD-06", "ORD-07", "ORD-08", "ORD-11", "ORD-13", "ORD-15")
def test_a_hosted_order_takes_and_echoes_all_its_fields(sandbox: Sandbox) -> None:
    """What a merchant sends with a hosted order comes back as it was sent, and is stored."""
    order = sandbox.place(**FULL)
    assert order["status"] == "new"
    assert {key: order[key] for key in FULL} == FULL
    assert sandbox.read(order) == order


@pytest.mark.rule("ORD-01", "ORD-22", "SET-19")
def test_identifiers_are_uuids_and_nobody_can_choose_them(sandbox: Sandbox) -> None:
    """An id in the request is dropped, not taken."""
    order = sandbox.place(id="mine", merchant_id="mine", project_id="mine")
    assert all(UUID.fullmatch(order[key]) for key in ("id", "merchant_id", "project_id"))
    assert order["project_id"] == sandbox.project["project_id"]
    assert order["merchant_id"] == sandbox.project["merchant_id"]


@pytest.mark.rule("ORD-02", "ORD-04")
def test_currency_and_amount_are_required(sandbox: Sandbox) -> None:
    """Both are named at once when both are missing."""
    assert violations(sandbox.post("/v1/orders/", {})) == {
        "currency": "is required",
        "amount": "is required",
    }


@pytest.mark.rule("ORD-03", "LIM-01")
@pytest.mark.parametrize("currency", ["USD", "eur", "", 978, None])
def test_only_euros_are_taken(sandbox: Sandbox, currency: Any) -> None:
    """Any other currency is refused by name."""
    assert "currency" in violations(sandbox.create(currency=currency))


@pytest.mark.rule("ORD-05", "SET-11", "LIM-02")
@pytest.mark.parametrize("amount", [12.95, 1295.0, "1295", True, None, 0, -1, 2**53, 10**400, [], {}])
def test_an_amount_is_whole_cents_and_never_rounded(sandbox: Sandbox, amount: Any) -> None:
    """What is no whole number from 1 to 2^53-1 is refused."""
    assert "amount" in violations(sandbox.create(amount=amount))


@pytest.mark.parametrize("amount", [1, 2**53 - 1])
def test_the_bounds_of_amounts_are_amounts(sandbox: Sandbox, amount: int) -> None:
    """The smallest and the largest amount work."""
    assert sandbox.place(amount=amount)["amount"] == amount


@pytest.mark.rule("ORD-08")
@pytest.mark.parametrize("field", ["return_url", "webhook_url"])
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://shop.example/",
        "https://",
        "https:///path",
        "//shop.example/",
        "shop.example",
        "https://user:secret@shop.example/",
        "https://shop.example:99999/",
        "https://shop.example/a b",
        "https://shop.example/\n",
        "https://[::1/",
        "http://shop.example\\@evil.example/",
        "",
        7,
        None,
        "https://shop.example/" + "x" * 3000,
    ],
)
def test_only_web_addresses_are_taken(sandbox: Sandbox, field: str, url: Any) -> None:
    """Another scheme, no host, credentials or control characters are refused."""
    assert list(violations(sandbox.create(**{field: url}))) == [field]


@pytest.mark.rule("ORD-11", "SET-21", "TRQ-03")
@pytest.mark.parametrize(
    "period",
    ["", "P", "PT", "30M", "PT0S", "P0D", "-PT30M", "PT-5M", "P1.5DT1H", "P1.5M", "pt5m", 30, None, "PT5M "],
)
def test_a_period_is_an_iso_8601_duration_above_zero(sandbox: Sandbox, period: Any) -> None:
    """Negative, zero and misspelled periods are refused, on orders and on transactions."""
    answer = sandbox.create(card(expiration_period=period), expiration_period=period)
    assert set(violations(answer)) == {"expiration_period", "transactions[0].expiration_period"}


@pytest.mark.rule("SET-20", "TX-08")
@pytest.mark.parametrize("period", ["PT60M", "PT1H", "P7D", "P1W", "P1M", "P1Y2M3DT4H5M6S", "PT0.5S"])
def test_periods_keep_their_spelling(sandbox: Sandbox, period: str) -> None:
    """PT60M stays PT60M."""
    order = sandbox.place(card(expiration_period=period), expiration_period=period)
    assert order["expiration_period"] == period
    assert order["transactions"][0]["expiration_period"] == period


@pytest.mark.rule("ORD-12", "SET-35")
def test_a_hosted_page_expires_after_the_orders_period(sandbox: Sandbox) -> None:
    """One second before it is open, then it is expired."""
    order = sandbox.place(expiration_period="PT90M")
    sandbox.advance("PT89M59S")
    assert sandbox.read(order)["status"] == "new"
    events = sandbox.advance("PT1S")
    assert [event["kind"] for event in events] == ["page-expiry"]
    assert sandbox.read(order)["status"] == "expired"


@pytest.mark.rule("SET-69")
def test_a_hosted_page_expires_after_a_day_by_default(sandbox: Sandbox) -> None:
    """Without a period of its own an order's page is open for one day."""
    order = sandbox.place()
    assert [(item["at"], item["order_id"]) for item in sandbox.agenda()] == [
        ("2026-03-02T12:00:00.000000+00:00", order["id"])
    ]


@pytest.mark.rule("ORD-13", "GEN-04")
def test_the_allow_list_narrows_what_a_customer_can_choose(sandbox: Sandbox) -> None:
    """A method outside the list is not offered."""
    order = sandbox.place(payment_methods=["wallet-web", "pay-later-a"])
    answer = sandbox.act(order, "customer choose", payment_method="credit-card")
    assert answer.json()["error"]["violations"][0]["allowed"] == ["wallet-web"]
    chosen = sandbox.acted(order, "customer choose", payment_method="wallet-web")
    assert chosen["transactions"][0]["payment_method"] == "wallet-web"


@pytest.mark.rule("GEN-04")
def test_a_list_of_methods_that_the_merchant_may_not_use_is_refused(project: Callable[..., Sandbox]) -> None:
    """Also where only a feature is missing."""
    sandbox = project(cards_approved=False)
    answer = sandbox.create(payment_methods=["credit-card"])
    assert set(violations(answer)) == {"payment_methods"}
    assert "credit-card" not in answer.json()["error"]["violations"][0]["allowed"]
    assert sandbox.create(payment_methods=["credit-card", "wallet-web"]).status_code == 201


@pytest.mark.rule("ORD-14", "GEN-03", "SET-61")
def test_without_an_allow_list_every_usable_method_is_offered(sandbox: Sandbox) -> None:
    """All enabled methods that test mode can play and that the order has what they need for."""
    order = sandbox.place()
    answer = sandbox.act(order, "customer choose", payment_method="carrier-pigeon")
    assert answer.json()["error"]["violations"][0]["allowed"] == [
        "credit-card",
        "bank-transfer",
        "bank-redirect-nl",
        "bank-redirect-de",
        "wallet-qr",
        "wallet-web",
        "wallet-google",
    ]


@pytest.mark.rule("FLOW-12", "FLOW-13")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_screened_methods_can_be_asked_for_by_allow_list(sandbox: Sandbox, method: str) -> None:
    """With lines and customer the list is taken; the customer then chooses the method."""
    order = sandbox.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, payment_methods=[method])
    chosen = sandbox.acted(order, "customer choose", payment_method=method)
    assert chosen["transactions"][0]["payment_method"] == method


@pytest.mark.parametrize(
    "methods", [["pay-later-a"], ["invoice-later-b", "pay-later-a"], [], ["bank-redirect-be"]]
)
def test_an_allow_list_without_a_usable_method_is_refused(sandbox: Sandbox, methods: list[str]) -> None:
    """Nobody could pay such an order."""
    assert list(violations(sandbox.create(payment_methods=methods))) == ["payment_methods"]


def test_an_allow_list_names_each_unknown_method(sandbox: Sandbox) -> None:
    """Every unknown name has its own path, and the known ones are listed."""
    answer = sandbox.create(payment_methods=["credit-card", "cash", "cheque"])
    assert list(violations(answer)) == ["payment_methods[1]", "payment_methods[2]"]
    assert "wallet-qr" in answer.json()["error"]["violations"][0]["allowed"]


@pytest.mark.rule("ORD-16", "PLA-01", "INV-01", "INV-02")
@pytest.mark.parametrize(
    ("method", "missing"),
    [("pay-later-a", {"order_lines"}), ("invoice-later-b", {"order_lines", "customer"})],
)
def test_screened_methods_need_lines_and_customer(sandbox: Sandbox, method: str, missing: set[str]) -> None:
    """What is missing is named, all of it at once."""
    assert set(violations(sandbox.create(by(method)))) == missing


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
    """One attempt, one method, and every field that a merchant may rely on."""
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
    """Events carry the status, an id, both times and where they come from."""
    order = live.place(card())
    live.advance("PT1M")
    live.acted(order, "customer visit")
    events = live.read(order)["transactions"][0]["events"]
    assert [event["event"] for event in events] == ["new", "processing"]
    assert all(UUID.fullmatch(event["id"]) and event["source"] == "set_status" for event in events)
    assert events[1]["occurred"] == events[1]["noticed"] == "2026-03-01T12:01:00.000000+00:00"
    transfer = live.place(by("bank-transfer"))
    assert [event["event"] for event in transfer["transactions"][0]["events"]] == ["new", "pending"]


@pytest.mark.rule("ORD-18", "SET-14")
def test_the_client_is_echoed_or_made_from_the_user_agent(sandbox: Sandbox) -> None:
    """Client and extra are free-form; without a client the request's User-Agent stands in."""
    sent = {"user_agent": "Shop/1", "platform": {"name": "any"}}
    order = sandbox.place(client=sent, extra={"basket": [1, {"b": None}]})
    assert order["client"] == sent
    assert order["extra"] == {"basket": [1, {"b": None}]}
    assert sandbox.place()["client"]["user_agent"].startswith("python-requests/")


@pytest.mark.rule("ORD-19", "ORD-20", "ORD-21", "TX-06", "TX-07", "SET-19")
def test_times_are_sandbox_time_with_microseconds_and_offset(sandbox: Sandbox) -> None:
    """Created stays, modified follows, completed comes with completion and not before."""
    order = sandbox.place(card())
    assert all(TIME.fullmatch(order[key]) for key in ("created", "modified", "last_transaction_added"))
    assert "completed" not in order
    assert "completed" not in order["transactions"][0]
    sandbox.advance("PT5M")
    paid = sandbox.pay(order)
    five_past = "2026-03-01T12:05:00.000000+00:00"
    assert (paid["created"], paid["modified"], paid["completed"]) == (START, five_past, five_past)
    assert paid["transactions"][0]["completed"] == five_past


@pytest.mark.rule("ORD-24", "TX-12", "SET-24")
def test_addresses_have_no_scheme(sandbox: Sandbox) -> None:
    """Both addresses begin with the host; orders with a customer's page carry order_url too."""
    host = sandbox.url.partition("://")[2]
    order = sandbox.place(card())
    assert order["order_url"].startswith(f"{host}/")
    assert order["transactions"][0]["payment_url"].startswith(f"{host}/")


@pytest.mark.rule("SET-23")
def test_absolute_urls_adds_the_scheme(project: Callable[..., Sandbox]) -> None:
    """With the setting both addresses can be followed as they are."""
    sandbox = project(absolute_urls=True)
    order = sandbox.place(card())
    assert order["order_url"].startswith("http://")
    assert order["transactions"][0]["payment_url"].startswith("http://")


@pytest.mark.rule("ORD-28", "ORD-29", "END-03")
def test_extra_blocks_appear_only_when_asked_for(sandbox: Sandbox) -> None:
    """A plain read has neither block."""
    order = sandbox.read(sandbox.authorized())
    assert "order_line_details" not in order
    assert "amount_details" not in order


@pytest.mark.rule("END-04", "END-05", "END-06")
def test_extra_blocks_can_be_asked_for_one_by_one_or_together(sandbox: Sandbox) -> None:
    """``fields[]`` may be repeated; an unknown block is refused with the known ones."""
    order = sandbox.authorized()
    assert "order_line_details" in sandbox.read(order, "order_line_details")
    assert "amount_details" in sandbox.read(order, "amount_details")
    both = sandbox.read(order, "order_line_details", "amount_details")
    assert {"order_line_details", "amount_details"} <= both.keys()
    answer = sandbox.get(f"/v1/orders/{order['id']}/?fields[]=everything")
    assert answer.json()["error"]["violations"][0]["allowed"] == ["order_line_details", "amount_details"]


@pytest.mark.rule("SET-17")
def test_an_order_is_created_with_one_transaction_or_none(sandbox: Sandbox) -> None:
    """Two are refused, and what is wrong inside of them is named as well."""
    answer = sandbox.create(card(), {"capture_mode": "later"})
    assert set(violations(answer)) == {
        "transactions",
        "transactions[1].payment_method",
        "transactions[1].capture_mode",
    }
    assert sandbox.place(transactions=[])["order_url"]


@pytest.mark.rule("SET-18", "ORD-21")
def test_a_choice_on_the_page_appends_a_transaction(sandbox: Sandbox) -> None:
    """After a failed attempt the customer chooses again; the order keeps both attempts."""
    order = sandbox.place()
    assert "last_transaction_added" not in order
    sandbox.advance("PT1M")
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    failed = sandbox.acted(order, "customer fail")
    assert (failed["status"], failed["transactions"][0]["status"]) == ("processing", "error")
    sandbox.advance("PT1M")
    again = sandbox.acted(order, "customer choose", payment_method="wallet-web")
    assert [t["payment_method"] for t in again["transactions"]] == ["credit-card", "wallet-web"]
    assert again["last_transaction_added"] == "2026-03-01T12:02:00.000000+00:00"
    assert sandbox.pay(order)["status"] == "completed"


@pytest.mark.rule("SET-26", "SET-29", "TX-04")
def test_mode_shows_in_flags_and_balance(project: Callable[..., Sandbox]) -> None:
    """Test money and real money cannot be mixed up."""
    tested, lived = project().place(card()), project(mode="live").place(card())
    assert (tested["flags"], tested["transactions"][0]["balance"]) == (["is-test"], "test")
    assert (lived["flags"], lived["transactions"][0]["balance"]) == ([], "internal")
    assert tested["transactions"][0]["channel"] == "ecom"


@pytest.mark.rule("TRQ-01", "TRQ-02")
def test_a_transaction_needs_a_known_method(sandbox: Sandbox) -> None:
    """A missing method is missing; an unknown one is refused with the list of those there are."""
    assert violations(sandbox.create({})) == {"transactions[0].payment_method": "is required"}
    answer = sandbox.create(by("cash"))
    assert list(violations(answer)) == ["transactions[0].payment_method"]
    assert "credit-card" in answer.json()["error"]["violations"][0]["allowed"]


@pytest.mark.rule("TRQ-06", "TRQ-07")
def test_capture_mode_and_details_have_their_form(sandbox: Sandbox) -> None:
    """Only manual and delayed are modes; details are an object."""
    answer = sandbox.create(card(capture_mode="instant", payment_method_details=[]))
    assert set(violations(answer)) == {
        "transactions[0].capture_mode",
        "transactions[0].payment_method_details",
    }


@pytest.mark.parametrize("method", ["bank-transfer", "bank-redirect-nl", "wallet-qr", "wallet-google"])
def test_capture_mode_is_refused_where_nothing_is_authorized(sandbox: Sandbox, method: str) -> None:
    """A method that is paid at once has nothing to capture later."""
    answer = sandbox.create(by(method, capture_mode="manual"))
    assert list(violations(answer)) == ["transactions[0].capture_mode"]


@pytest.mark.rule("TRQ-04", "SET-65", "SET-66", "SET-67", "SET-68", "LIM-12", "LIM-13", "LIM-14")
@pytest.mark.parametrize(
    ("method", "period"),
    [
        ("credit-card", "PT30M"),
        ("wallet-qr", "PT30M"),
        ("wallet-web", "PT30M"),
        ("wallet-apple", "PT30M"),
        ("wallet-google", "PT30M"),
        ("bank-redirect-nl", "PT60M"),
        ("bank-redirect-be", "PT60M"),
        ("bank-redirect-de", "PT60M"),
        ("bank-transfer", "P30D"),
        ("invoice-later-b", "P30D"),
        ("pay-later-a", "PT48H"),
    ],
)
def test_every_method_has_a_default_expiration(live: Sandbox, method: str, period: str) -> None:
    """Without a period of its own an attempt takes its method's."""
    order = live.place_with_lines(method)
    assert order["transactions"][0]["expiration_period"] == period


@pytest.mark.rule("TRQ-05")
def test_an_attempt_expires_after_its_period_and_cannot_be_captured(sandbox: Sandbox) -> None:
    """Order and transaction expire together when the merchant chose the method."""
    order = sandbox.place(card(expiration_period="P1M", capture_mode="manual"))
    sandbox.advance(to="2026-04-01T11:59:59Z")
    assert sandbox.status(order) == ("new", "new")
    sandbox.advance("PT1S")
    assert sandbox.status(order) == ("expired", "expired")
    assert sandbox.take(order, "captures").json()["error"]["type"] == "AuthorizationExpired"
    assert sandbox.act(order, "customer pay").status_code == 409


@pytest.mark.rule("TX-10")
def test_brands_are_lower_case(live: Sandbox) -> None:
    """A transfer's brand is sepa, a card's is its family once it is known."""
    assert live.place(by("bank-transfer"))["transactions"][0]["payment_method_brand"] == "sepa"
    order = live.place(card())
    assert order["transactions"][0]["payment_method_brand"].islower()
    paid = live.pay(order, card="maestro")
    assert paid["transactions"][0]["payment_method_brand"] == "maestro"


@pytest.mark.rule("SET-31", "LINE-08")
def test_lines_that_do_not_add_up_are_accepted_with_a_warning(sandbox: Sandbox) -> None:
    """The header tells both sums; lines that do add up give no warning."""
    odd = sandbox.create(amount=1999, order_lines=LINES)
    assert odd.status_code == 201
    assert odd.headers["Sandbox-Warnings"] == "order_lines add up to 2000 cents and amount is 1999"
    assert "Sandbox-Warnings" not in sandbox.create(amount=2000, order_lines=LINES).headers


@pytest.mark.rule("LINE-01", "LINE-02", "LINE-03", "LINE-04", "LINE-05", "LINE-06", "LINE-07", "SET-30")
def test_every_field_of_a_line_has_its_form(sandbox: Sandbox) -> None:
    """Each wrong field is named by the line's index."""
    wrong = {
        "type": "magic",
        "amount": 9.5,
        "currency": "USD",
        "merchant_order_line_id": 7,
        "name": False,
        "quantity": 0,
        "vat_percentage": 10001,
    }
    answer = sandbox.create(order_lines=[LINES[0], wrong, "socks"])
    assert set(violations(answer)) == {f"order_lines[1].{key}" for key in wrong} | {"order_lines[2]"}
    assert sandbox.place(amount=LINES_TOTAL, order_lines=LINES)["order_lines"] == LINES


@pytest.mark.rule("LINE-01")
@pytest.mark.parametrize(
    "kind",
    [
        "physical",
        "discount",
        "shipping_fee",
        "sales_tax",
        "digital",
        "gift_card",
        "store_credit",
        "surcharge",
    ],
)
def test_all_eight_line_types_are_taken(sandbox: Sandbox, kind: str) -> None:
    """Only what lowers the sum may be negative."""
    line = {**LINES[0], "type": kind}
    assert sandbox.place(amount=1500, order_lines=[line])["order_lines"][0]["type"] == kind
    answer = sandbox.create(amount=1500, order_lines=[{**line, "amount": -500}])
    assert (answer.status_code == 201) == (kind in ("discount", "gift_card", "store_credit"))


CUSTOMER_FULL: dict[str, Any] = {
    "first_name": "Jan",
    "last_name": "de Vries",
    "gender": "male",
    "birthdate": "1980-02-29",
    "email_address": "jan@example.com",
    "phone_numbers": ["+31612345678"],
    "address": "Kade 1\n1011 AB Amsterdam",
    "address_type": "customer",
    "additional_addresses": [{"address": "Steeg 2", "address_type": "billing", "country": "BE"}],
    "country": "NL",
    "ip_address": "10.0.0.1",
    "locale": "nl",
    "postal_code": "1011 AB",
    "housenumber": 1,
    "merchant_customer_id": "c-9",
    "user_agent": "Mozilla/5.0",
    "forwarded_ip": "10.0.0.2",
}


@pytest.mark.rule(
    "CUS-01", "CUS-02", "CUS-03", "CUS-04", "CUS-05", "CUS-06", "CUS-07", "CUS-08", "CUS-09", "CUS-10", "CUS-11",
    "SET-16", "SET-25",
)  # fmt: skip
def test_a_customer_is_echoed_in_full(sandbox: Sandbox) -> None:
    """Every documented key and the extra ones are taken, and none is reported as ignored."""
    answer = sandbox.create(customer=CUSTOMER_FULL)
    assert answer.json()["customer"] == CUSTOMER_FULL
    assert "Sandbox-Ignored-Fields" not in answer.headers


@pytest.mark.rule("CUS-03", "CUS-05", "CUS-08", "CUS-09", "CUS-11")
@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("first_name", 7, "first_name"),
        ("birthdate", "29-02-1980", "birthdate"),
        ("birthdate", "1981-02-29", "birthdate"),
        ("birthdate", "19800229", "birthdate"),
        ("phone_numbers", "+31612345678", "phone_numbers"),
        ("phone_numbers", ["+31612345678", 7], "phone_numbers[1]"),
        ("additional_addresses", [{"country": "Belgium"}], "additional_addresses[0].country"),
        ("country", "NLD", "country"),
        ("country", "N\n", "country"),
        ("locale", "fr", "locale"),
        ("locale", "en-gb", "locale"),
        ("email_address", [], "email_address"),
        ("housenumber", 1.5, "housenumber"),
    ],
)
def test_a_wrong_customer_field_is_named(sandbox: Sandbox, field: str, value: Any, path: str) -> None:
    """The path points into the customer."""
    assert list(violations(sandbox.create(customer={field: value}))) == [f"customer.{path}"]


@pytest.mark.rule("SET-15")
def test_nulls_in_a_customer_are_absent(sandbox: Sandbox) -> None:
    """Shop plugins send nulls for what they do not know."""
    order = sandbox.place(
        customer={
            "country": "NL",
            "gender": None,
            "additional_addresses": [{"country": None, "address": "A"}],
        }
    )
    assert order["customer"] == {"country": "NL", "additional_addresses": [{"address": "A"}]}


@pytest.mark.rule("CUS-13", "SET-25")
def test_reduced_customer_answers_country_and_address_only(project: Callable[..., Sandbox]) -> None:
    """Some accounts get no more than that, and writing it back loses nothing."""
    sandbox = project(reduced_customer=True)
    order = sandbox.place(customer=CUSTOMER_FULL)
    assert order["customer"] == {"country": "NL", "ip_address": "10.0.0.1"}
    assert sandbox.put(f"/v1/orders/{order['id']}/", order).json() == order
    sandbox.settings(reduced_customer=False)
    assert sandbox.read(order)["customer"] == CUSTOMER_FULL


@pytest.mark.rule("SET-12")
def test_unknown_keys_are_dropped_and_named(sandbox: Sandbox) -> None:
    """The header spells them as violations do; the journal keeps them too."""
    answer = sandbox.create(
        card(colour="red"), nonsense=1, customer={"shoe, size": 42}, order_lines=[{**LINES[0], "weight": 2}]
    )
    assert answer.headers["Sandbox-Ignored-Fields"] == (
        "nonsense, customer.shoe%2C%20size, order_lines[0].weight, transactions[0].colour"
    )
    assert "nonsense" not in answer.json()
    entry = sandbox.get("/control/journal/").json()["items"][-1]
    assert entry["ignored"] == [
        "nonsense", "customer.shoe, size", "order_lines[0].weight", "transactions[0].colour"
    ]  # fmt: skip


@pytest.mark.rule("SET-13")
def test_unknown_keys_can_be_refused(project: Callable[..., Sandbox]) -> None:
    """With unknown_fields reject each is a violation that names the nearest known key."""
    sandbox = project(unknown_fields="reject")
    answer = sandbox.create(descripton="Socks", customer={"mail": "x"})
    found = violations(answer)
    assert found.keys() == {"descripton", "customer.mail"}
    assert "did you mean 'description'?" in found["descripton"]


@pytest.mark.rule("SET-54")
def test_currencies_lists_the_enabled_methods(project: Callable[..., Sandbox]) -> None:
    """Each enabled method with its currency, and no other."""
    sandbox = project(payment_methods=["wallet-qr", "credit-card"])
    assert sandbox.get("/v1/merchants/self/projects/self/currencies/").json() == {
        "payment_methods": {"credit-card": {"currencies": ["EUR"]}, "wallet-qr": {"currencies": ["EUR"]}}
    }


@pytest.mark.rule("CTL-03")
def test_a_method_that_is_switched_off_is_refused(project: Callable[..., Sandbox]) -> None:
    """On creation by its path, on the page by not being offered."""
    sandbox = project(payment_methods=["wallet-qr"])
    answer = sandbox.create(card())
    assert "not enabled" in violations(answer)["transactions[0].payment_method"]
    assert answer.json()["error"]["violations"][0]["allowed"] == ["wallet-qr"]
    order = sandbox.place()
    assert sandbox.act(order, "customer choose", payment_method="credit-card").status_code == 400


@pytest.mark.rule("CTL-02")
def test_aliases_are_accepted_and_echoed_as_sent(project: Callable[..., Sandbox]) -> None:
    """The merchant's own names work wherever a method is named."""
    sandbox = project(aliases={"my-bank-button": "bank-redirect-nl", "plastic": "credit-card"})
    order = sandbox.place(
        {"payment_method": "my-bank-button", "payment_method_details": {"issuer_id": "SBXANL2A"}}
    )
    assert order["transactions"][0]["payment_method"] == "my-bank-button"
    assert sandbox.pay(order)["status"] == "completed"
    assert (
        sandbox.get("/v1/my-bank-button/issuers/").json()
        == sandbox.get("/v1/bank-redirect-nl/issuers/").json()
    )
    hosted = sandbox.place(payment_methods=["plastic"])
    assert hosted["payment_methods"] == ["plastic"]
    chosen = sandbox.acted(hosted, "customer choose", payment_method="plastic")
    assert chosen["transactions"][0]["payment_method"] == "plastic"
    assert sandbox.get("/v1/plastic/issuers/").status_code == 404


@pytest.mark.rule("SET-51")
def test_an_order_can_be_updated(sandbox: Sandbox) -> None:
    """Texts, addresses, customer and extra change; the rest stays."""
    order = sandbox.place(card(), description="Socks", merchant_order_id="1")
    change = {
        "description": "Blue socks",
        "merchant_order_id": "2",
        "return_url": "https://shop.example/2",
        "webhook_url": "https://shop.example/3",
        "customer": {"country": "BE"},
        "extra": {"gift": True},
    }
    updated = sandbox.put(f"/v1/orders/{order['id']}/", change)
    assert updated.status_code == 200
    assert {key: updated.json()[key] for key in change} == change
    assert sandbox.read(order) == updated.json()


@pytest.mark.rule("SET-52")
def test_the_sum_can_change_until_a_customer_acts(sandbox: Sandbox) -> None:
    """A new amount reaches the open transaction; after a visit it is refused and nothing changes."""
    order = sandbox.place(card())
    changed = sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1500, "order_lines": [LINES[0]]}).json()
    assert (changed["amount"], changed["transactions"][0]["amount"]) == (1500, 1500)
    assert changed["order_lines"] == [LINES[0]]
    before = sandbox.acted(order, "customer visit")
    answer = sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1600, "description": "New"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "OrderNotUpdatable")
    assert sandbox.read(order) == before
    assert (
        sandbox.put(f"/v1/orders/{order['id']}/", {"amount": 1500, "description": "New"}).status_code == 200
    )


@pytest.mark.rule("SET-53")
def test_a_whole_order_can_be_written_back_as_read(project: Callable[..., Sandbox]) -> None:
    """Read-only keys are silent when they are the same, ignored and named when they differ."""
    sandbox = project(unknown_fields="reject")
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/"
    whole = sandbox.read(order, "amount_details", "order_line_details")
    del whole["amount_details"], whole["order_line_details"]
    same = sandbox.put(path, whole)
    assert (same.status_code, same.json()) == (200, whole)
    assert "Sandbox-Ignored-Fields" not in same.headers
    differing = sandbox.put(path, {**whole, "status": "new", "id": "x", "description": "Changed"})
    assert differing.status_code == 200
    assert differing.headers["Sandbox-Ignored-Fields"] == "id, status"
    assert (differing.json()["status"], differing.json()["description"]) == ("completed", "Changed")


def test_an_update_is_checked_like_a_creation(sandbox: Sandbox) -> None:
    """All violations at once, and lines that the method needs cannot be taken away."""
    order = sandbox.place_with_lines("pay-later-a")
    path = f"/v1/orders/{order['id']}/"
    answer = sandbox.put(path, {"amount": "5", "return_url": "x", "customer": []})
    assert set(violations(answer)) == {"amount", "return_url", "customer"}
    assert list(violations(sandbox.put(path, {"order_lines": []}))) == ["order_lines"]
    assert sandbox.read(order) == order


@pytest.mark.rule("END-07", "SET-50")
def test_an_order_can_be_cancelled_until_money_moved(sandbox: Sandbox) -> None:
    """New, hosted, processing and authorized orders are cancelled; paid ones are not."""
    hosted, new, visited = sandbox.place(), sandbox.place(card()), sandbox.place(card())
    sandbox.acted(visited, "customer visit")
    authorized = sandbox.authorized()
    for order in (hosted, new, visited, authorized):
        answer = sandbox.delete(f"/v1/orders/{order['id']}/")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert sandbox.read(authorized, "amount_details")["amount_details"]["voided"] == LINES_TOTAL
    paid = sandbox.pay(sandbox.place(card()))
    captured = sandbox.authorized()
    sandbox.take(captured, "captures/amount", {"amount": 1})
    for order in (paid, captured, hosted):
        answer = sandbox.delete(f"/v1/orders/{order['id']}/")
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "OrderNotCancellable")


@pytest.mark.rule("SET-32", "SET-34")
def test_every_version_has_a_strong_etag(sandbox: Sandbox) -> None:
    """Create, read, update and cancel carry one; a client that has this version gets 304."""
    answer = sandbox.create(card())
    path = f"/v1/orders/{answer.json()['id']}/"
    first = answer.headers["ETag"]
    assert re.fullmatch(r'"[^"]+"', first)
    assert sandbox.get(path).headers["ETag"] == first
    known = sandbox.get(path, headers={"If-None-Match": first})
    assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", first)
    second = sandbox.put(path, {"description": "x"}).headers["ETag"]
    third = sandbox.delete(path).headers["ETag"]
    assert len({first, second, third}) == 3
    assert sandbox.get(path, headers={"If-None-Match": first}).status_code == 200


@pytest.mark.rule("SET-33", "IFM-01", "IFM-02")
def test_if_match_guards_every_change(sandbox: Sandbox) -> None:
    """A stale tag is a 412 that changes nothing; the right one, or a star, lets it through."""
    order = sandbox.authorized()
    path = f"/v1/orders/{order['id']}/"
    stale = {"If-Match": '"stale"'}
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    before = sandbox.read(order, "amount_details")
    for answer in (
        sandbox.take(order, "captures", headers=stale),
        sandbox.take(order, "captures/amount", {"amount": 1}, headers=stale),
        sandbox.take(order, "captures/orderlines", lines, headers=stale),
        sandbox.take(order, "voids/amount", {"amount": 1}, headers=stale),
        sandbox.take(order, "voids/orderlines", lines, headers=stale),
        sandbox.post(f"{path}refunds/", {}, headers=stale),
        sandbox.put(path, {"description": "x"}, headers=stale),
        sandbox.delete(path, headers=stale),
    ):
        assert (answer.status_code, answer.json()["error"]["type"]) == (412, "PreconditionFailed")
    assert sandbox.read(order, "amount_details") == before
    etag = sandbox.get(f"{path}?fields[]=amount_details").headers["ETag"]
    taken = sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": f'"other", {etag}'})
    assert taken.status_code == 200
    again = sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": etag})
    assert again.status_code == 412
    assert sandbox.take(order, "captures/orderlines", lines, headers={"If-Match": "*"}).status_code == 200
