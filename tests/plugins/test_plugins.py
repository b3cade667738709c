"""Public plugins work with the documented settings, and read what they expect."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.scenarios.documents import parse_yaml
from tests.plugins.bodies import ORDERS, PluginOrder
from tests.support.documentation import read_page
from tests.support.driver import CUSTOMER, LINES, Sandbox, by, card, violations
from tests.support.payer import Payer, payment_page


def read_path(record: Any, path: str) -> Any:
    """Return the value at a path such as ``order_lines[0].url``; None if there is none."""
    for key in re.findall(r"\w+", path):
        record = record[int(key)] if key.isdigit() else record.get(key)
    return record


@pytest.mark.rule("A78")
@pytest.mark.parametrize("plugin", ORDERS)
def test_orders_of_plugins_are_accepted_in_mode_live(
    project: Callable[..., Sandbox], plugin: PluginOrder
) -> None:
    """The documented settings accept all orders; each plugin reads what it expects, with absolute addresses."""
    section = read_page("operation").partition("## Shop systems")[2]
    settings = parse_yaml(section.partition("```yaml\n")[2].partition("```")[0]).data
    del settings["api_key"]
    live = project(mode="live", **settings)
    order = live.post("/v1/orders/", plugin.body)
    assert order.status_code == 201, order.text
    assert {path: read_path(order.json(), path) for path in plugin.reads} == plugin.reads
    assert payment_page(order.json()).startswith("http://")


@pytest.mark.rule("A70")
@pytest.mark.parametrize("mode", ["manual", "delayed"])
def test_an_authorization_has_a_type_for_its_whole_life(sandbox: Sandbox, mode: str) -> None:
    """Before and after the capture; an invoice, a sale and a refund have none."""
    order = sandbox.place_with_lines("credit-card", capture_mode=mode)
    for change in (None, "customer pay"):
        shown = sandbox.acted(order, change) if change is not None else order
        assert shown["transactions"][0]["transaction_type"] == "authorization"
    if mode == "manual":
        assert sandbox.take(order, "captures").json()["transaction_type"] == "authorization"
        refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5}).json()
        assert "transaction_type" not in refund["transactions"][0]
    assert "transaction_type" not in sandbox.place(card())["transactions"][0]
    assert "transaction_type" not in sandbox.place_with_lines("invoice-later-b")["transactions"][0]
    assert sandbox.place_with_lines("pay-later-a")["transactions"][0]["transaction_type"] == "authorization"


@pytest.mark.rule("A71")
@pytest.mark.parametrize(
    ("action", "reason", "message"),
    [
        ("customer cancel", None, "De betaling is geannuleerd."),
        ("customer fail", "Do not honour", "De betaling is mislukt."),
        ("customer fail", "Own text", "De betaling is mislukt."),
        ("expire", None, "De betaling is niet op tijd afgerond."),
        ("delete", None, "De betaling is geannuleerd."),
    ],
)
def test_a_payment_that_ends_unpaid_has_reason_and_message(
    sandbox: Sandbox, action: str, reason: str | None, message: str
) -> None:
    """The message is in the language of the page; a scenario's reason is returned as it is, and shown translated."""
    order = sandbox.place(by("wallet-web"), locale="nl-NL")
    assert not {"reason", "customer_message"} & order["transactions"][0].keys()
    if action == "expire":
        sandbox.advance("P1D")
    elif action == "delete":
        sandbox.delete(f"/v1/orders/{order['id']}/")
    else:
        sandbox.acted(order, action, **({"reason": reason} if reason else {}))
    transaction = sandbox.read(order)["transactions"][0]
    assert transaction["customer_message"].startswith(message)
    assert transaction["reason"] == (reason or transaction["reason"])
    page = Payer(sandbox).open(payment_page(order))
    assert {"Do not honour": "Geweigerd door je bank"}.get(reason or "", reason or "") in page.text


@pytest.mark.rule("A71")
def test_a_screening_explains_itself_in_the_language_of_the_customer(sandbox: Sandbox) -> None:
    """A declined customer and a failed check have messages of their own; a scenario's text stays."""
    fields = {"amount": 2000, "order_lines": LINES}

    def ended(email: str) -> dict[str, Any]:
        customer = {**CUSTOMER, "email_address": f"{email}@example.com", "locale": "de"}
        return sandbox.place(by("pay-later-a"), customer=customer, **fields)

    assert "nicht verfügbar" in ended("declined")["transactions"][0]["customer_message"]
    failed = ended("error")
    assert failed["reason"] == failed["transactions"][0]["customer_message"]
    assert failed["reason"].startswith("Wir konnten Ihre Angaben nicht prüfen")
    sandbox.scenario({"then": {"screening": "error", "reason": "Call us"}})
    own = sandbox.place(by("pay-later-a"), **fields)
    assert (own["reason"], own["transactions"][0]["customer_message"]) == ("Call us", "Call us")


@pytest.mark.rule("A72")
@pytest.mark.parametrize(("mode", "status"), [("test", "active-testing"), ("live", "active")])
def test_plugins_read_their_own_project(project: Callable[..., Sandbox], mode: str, status: str) -> None:
    """The permissions name the enabled methods."""
    sandbox = project(mode=mode, name="Shop", payment_methods=["credit-card", "wallet-web"])
    assert sandbox.get("/v1/merchants/self/projects/self/").json() == {
        "id": sandbox.project["project_id"],
        "name": "Shop",
        "status": status,
        "permissions": {
            f"/payment-methods/{name}/": {"POST": True} for name in ("credit-card", "wallet-web")
        },
    }


@pytest.mark.rule("A73")
def test_numbers_as_ids_are_converted_if_the_settings_say_so(project: Callable[..., Sandbox]) -> None:
    """In orders, updates, captures and refunds; other types are refused in any case."""
    lines = [{**LINES[0], "merchant_order_line_id": 7}]
    body = {"merchant_order_id": 1001, "amount": 1500, "order_lines": lines}
    paths = {"merchant_order_id", "order_lines[0].merchant_order_line_id"}
    assert violations(project().create(**body)).keys() == paths
    sandbox = project(numeric_ids="text")
    order = sandbox.pay(sandbox.place(card(capture_mode="manual"), **body))
    assert [order["merchant_order_id"], order["order_lines"][0]["merchant_order_line_id"]] == ["1001", "7"]
    part = {"order_lines": [{"merchant_order_line_id": 7, "quantity": 1}]}
    assert sandbox.take(order, "captures/orderlines", part).status_code == 200
    assert sandbox.post(f"/v1/orders/{order['id']}/refunds/", part).status_code == 201
    changed = sandbox.put(f"/v1/orders/{order['id']}/", {"merchant_order_id": 5})
    assert changed.json()["merchant_order_id"] == "5"
    for wrong in (True, 1.5, [1]):
        assert violations(sandbox.create(merchant_order_id=wrong)).keys() == {"merchant_order_id"}


@pytest.mark.rule("A74")
def test_the_page_asks_for_the_bank_if_the_order_need_not_name_it(project: Callable[..., Sandbox]) -> None:
    """The customer chooses one of the project's banks, which may replace the invented ones."""
    sandbox = project(issuer_required=False, issuers=["INGBNL2A", {"id": "RABONL2U", "name": "Rabo"}])
    listed = sandbox.get("/v1/bank-redirect-nl/issuers/").json()
    assert [(bank["id"], bank["name"]) for bank in listed] == [("INGBNL2A", "INGBNL2A"), ("RABONL2U", "Rabo")]
    order = sandbox.place({"payment_method": "bank-redirect-nl"})
    assert "issuer_id" not in order["transactions"][0]["payment_method_details"]
    payer = Payer(sandbox)
    page = payer.open(payment_page(order))
    assert page.form_of("issuer_id").fields["issuer_id"] == "INGBNL2A"
    payer.press(page, "pay", issuer_id="RABONL2U")
    details = sandbox.read(order)["transactions"][0]["payment_method_details"]
    assert (details["issuer_id"], details["consumer_bic"]) == ("RABONL2U", "RABONL2U")
    wrong = sandbox.create(by("bank-redirect-nl"))  # SBXANL2A
    assert "transactions[0].payment_method_details.issuer_id" in violations(wrong)
    known = sandbox.place(by("bank-redirect-nl", payment_method_details={"issuer_id": "INGBNL2A"}))
    assert sandbox.pay(known)["status"] == "completed"
    hosted = sandbox.acted(sandbox.place(), "customer choose", payment_method="bank-redirect-nl")
    assert hosted["transactions"][0]["payment_method_details"]["issuer_id"] == "INGBNL2A"


@pytest.mark.rule("A75", "CUS-14")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_a_screening_needs_personal_data(project: Callable[..., Sandbox], method: str) -> None:
    """Without them there is a warning, or a refusal if the settings say so."""
    address = {"address": "Street 1", "country": "NL"}
    whole = {**CUSTOMER, "birthdate": "1980-01-31", "gender": "male", "additional_addresses": [address]}
    fields: dict[str, Any] = {"amount": 2000, "order_lines": LINES}
    sandbox, strict = project(), project(personal_data="required")
    for missing in ({"birthdate"}, {"gender"}, {"additional_addresses"}, {"gender", "birthdate"}):
        customer = {key: value for key, value in whole.items() if key not in missing}
        paths = {f"customer.{'address' if name.endswith('addresses') else name}" for name in missing}
        answer = sandbox.create(by(method), customer=customer, **fields)
        assert answer.status_code == 201
        assert all(path in answer.headers["Sandbox-Warnings"] for path in paths)
        refusal = strict.create(by(method), customer=customer, **fields)
        assert violations(refusal).keys() == paths
        assert "payment_methods" in violations(
            strict.create(payment_methods=[method], customer=customer, **fields)
        )
    for known in (sandbox, strict):
        answer = known.create(by(method), customer=whole, **fields)
        assert (answer.status_code, "Sandbox-Warnings" in answer.headers) == (201, False)
    assert strict.create(by("wallet-web"), customer=CUSTOMER).status_code == 201


@pytest.mark.rule("A76")
def test_a_refund_without_amount_gets_a_warning(sandbox: Sandbox) -> None:
    """With lines or without; a method that refunds by lines needs none."""
    order = sandbox.pay(sandbox.place(by("wallet-web"), amount=2000, order_lines=LINES))
    path = f"/v1/orders/{order['id']}/refunds/"
    lines = [{"merchant_order_line_id": "socks", "quantity": 1}]
    answers = [
        sandbox.post(path, {"amount": 5}),
        sandbox.post(path, {"order_lines": lines}),
        sandbox.post(path),
    ]
    warned = ["without amount" in answer.headers.get("Sandbox-Warnings", "") for answer in answers]
    assert ([answer.status_code for answer in answers], warned) == ([201] * 3, [False, True, True])
    invoice = sandbox.place_with_lines("invoice-later-b")
    sandbox.take(invoice, "captures")
    answer = sandbox.post(f"/v1/orders/{invoice['id']}/refunds/", {"order_lines": lines})
    assert (answer.status_code, "Sandbox-Warnings" in answer.headers) == (201, False)


@pytest.mark.rule("A51")
@pytest.mark.parametrize(
    ("field", "value", "warning"),
    [
        ("country", "UK", "send GB"),
        ("country", "el", "send GR"),
        ("country", "XX", "'XX' is not a country code"),
        ("country", "nl", None),
        ("phone_numbers", ["+31 20 0000000", "abc"], "phone_numbers[1] 'abc'"),
        ("phone_numbers", ["0201234567", "(020) 123-4567", "020.123.45.67 ext. 8"], None),
        ("email_address", "a@example..com", "cannot be an email address"),
        ("email_address", "first.last+tag@münchen.example", None),
        ("additional_addresses", [{}, {"country": "UK"}], "additional_addresses[1].country 'UK'"),
    ],
)
def test_values_that_cannot_be_are_accepted_with_a_warning(
    sandbox: Sandbox, field: str, value: Any, warning: str | None
) -> None:
    """The warning names the path and, for a country, the code that was meant."""
    created = sandbox.create(customer={field: value})
    changed = sandbox.put(f"/v1/orders/{created.json()['id']}/", {"customer": {field: value}})
    for answer in (created, changed):
        assert (warning is None) == ("Sandbox-Warnings" not in answer.headers)
        assert (warning or "") in answer.headers.get("Sandbox-Warnings", "")
