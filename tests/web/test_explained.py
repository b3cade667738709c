"""A header of a refused merchant call names the rule that refused it and the calls that are possible now."""

import re
from typing import Any

import requests

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.forms.order_fields import SENT_FIELDS
from payment_sandbox.web.merchant import explanation as explained
from tests.support.driver import LINES_TOTAL, NOBODY, Sandbox, by, card, details


def read_explanation(answer: requests.Response) -> tuple[str, str]:
    """Return the rules and the possible calls."""
    rules, _, possible = answer.headers["Sandbox-Explain"].partition("; possible now: ")
    return rules, possible


WRONG_ORDERS: list[tuple[dict[str, Any], str, str]] = [
    ({"amount": 12.95}, "SET-11", "fix amount"),
    ({"currency": "USD"}, "ORD-03", "currency: one of EUR"),
    ({"expiration_period": "P0D"}, "SET-21", "expiration_period"),
    ({"order_lines": [{"amount": 1, "quantity": 0}]}, "LINE-06", "order_lines[0].quantity"),
    ({"customer": {"locale": "xx"}}, "CUS-11", "customer.locale: one of"),
    ({"transactions": [by("carrier-pigeon")]}, "TRQ-02", "payment_method: one of credit-card"),
    ({"transactions": [by("wallet-apple")]}, "SET-61", "payment_method: one of credit-card"),
    ({"transactions": [by("pay-later-a")]}, "PLA-01", "order_lines"),
    ({"transactions": [by("wallet-qr", capture_mode="manual")]}, "CAP-01", "capture_mode"),
    ({"transactions": [{"payment_method": "bank-redirect-nl"}]}, "IDR-01", "issuer_id: one of"),
    ({"transactions": [details(one_click_type="one-click")]}, "CARD-14", "cvc"),
    ({"payment_methods": ["pay-later-a"]}, "PLA-01", "payment_methods: one of"),
]


def test_a_wrong_order_names_rule_and_choice(sandbox: Sandbox) -> None:
    """The header names each rule once and the allowed values, and the journal has the same rule."""
    for fields, rule, possible in WRONG_ORDERS:
        answer = sandbox.create(**fields)
        assert answer.status_code == 400
        rules, choice = read_explanation(answer)
        assert rules.startswith(f"{rule} {rule_texts()[rule]}")
        assert possible in choice
    journal = sandbox.get("/control/journal/").json()["items"]
    assert [entry["rule"] for entry in journal] == [rule for _, rule, _ in WRONG_ORDERS]
    rules, _ = read_explanation(sandbox.create(amount=0, currency="USD", return_url="x", webhook_url="y"))
    assert re.findall(r"[A-Z]{3}-\d\d", rules) == ["ORD-03", "SET-11", "ORD-08", "ORD-10"]


def check_conflict(answer: requests.Response, rule: str, possible: str) -> None:
    """Assert that a call conflicts with the order's state, and the beginning of what is possible."""
    assert answer.status_code == 409, answer.text
    rules, choice = read_explanation(answer)
    assert rules == f"{rule} {rule_texts()[rule]}"
    assert choice.startswith(possible), choice


def test_a_refusal_names_rule_and_possible_calls(sandbox: Sandbox) -> None:
    """The header names the calls that the order's state allows, with their limits."""
    update = "update " + ", ".join(field.name for field in SENT_FIELDS if field.changes)
    total = f"capture in full ({LINES_TOTAL}), capture by amount up to {LINES_TOTAL}, capture by order"
    order = sandbox.place_with_lines("credit-card", capture_mode="manual", expiration_period="P7D")
    check_conflict(sandbox.take(order, "captures"), "CAP-02", f"cancel, {update}, amount, order_lines;")
    sandbox.pay(order)
    check_conflict(sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}), "SET-49", total)
    sandbox.take(order, "captures/amount", {"amount": 1500})
    rest = "capture in full (500), capture by amount up to 500, void by amount up to 500, "
    check_conflict(sandbox.take(order, "captures/amount", {"amount": 501}), "SET-47", rest)
    socks = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    check_conflict(sandbox.take(order, "captures/orderlines", socks), "CAP-09", rest)
    expiring = sandbox.authorized(expiration_period="P7D")
    sandbox.advance("P7D")
    check_conflict(sandbox.take(expiring, "captures"), "CAP-04", f"{update};")
    delayed = sandbox.authorized(capture_mode="delayed")
    voids = f"void by amount up to {LINES_TOTAL}, void by order lines, cancel, {update};"
    check_conflict(sandbox.take(delayed, "captures"), "CAP-06", voids)
    paid = sandbox.pay(sandbox.place(by("wallet-web"), amount=LINES_TOTAL))
    too_much = sandbox.post(f"/v1/orders/{paid['id']}/refunds/", {"amount": LINES_TOTAL + 1})
    check_conflict(too_much, "SET-49", f"refund up to {LINES_TOTAL}, update")
    cancelled = sandbox.delete(f"/v1/orders/{paid['id']}/")
    check_conflict(cancelled, "SET-50", f"refund up to {LINES_TOTAL}, update")


def test_wrong_keys_paths_and_etags_are_explained(sandbox: Sandbox) -> None:
    """A stale ETag gets the current one; unknown versions are not explained."""
    unknown = f"/v1/orders/{NOBODY}/"
    assert read_explanation(requests.get(f"{sandbox.url}{unknown}"))[0].startswith("AUTH-01 ")
    other = requests.get(f"{sandbox.url}{unknown}", auth=("nobody", ""))
    assert read_explanation(other)[0].startswith("AUTH-02 ")
    assert read_explanation(sandbox.get(unknown))[1] == "create an order"
    order = sandbox.place()
    assert read_explanation(sandbox.get(unknown))[1] == f"read {order['id']}, the newest order"
    rule, possible = read_explanation(
        sandbox.delete(f"/v1/orders/{order['id']}/", headers={"If-Match": '"x"'})
    )
    etag = sandbox.get(f"/v1/orders/{order['id']}/").headers["ETag"].strip('"')
    assert rule.startswith("SET-33 ")
    assert possible.endswith(f"its ETag is {etag}")
    assert read_explanation(sandbox.get("/v1/nothing/"))[0].startswith("SET-08 ")
    assert read_explanation(sandbox.patch("/v1/orders/"))[1] == "POST"
    old = requests.get(f"{sandbox.url}/v2/orders/", auth=(sandbox.key, ""))
    assert "Sandbox-Explain" not in old.headers


def test_a_fault_is_explained_as_a_fault(sandbox: Sandbox) -> None:
    """A fault is named as such, and a late refusal by the service names its own rule."""
    faults = [
        {"when": {"nth": 1}, "then": {"status": 503}},
        {"when": {"nth": 2}, "then": {"latency": 0.001}},
        {"when": {"nth": 3}, "then": {"rate_limit": "1/PT1S"}},
    ]
    sandbox.put("/control/faults/", {"faults": faults})
    assert read_explanation(sandbox.create())[0].startswith("CTL-23 ")
    assert read_explanation(sandbox.create(amount=0))[0].startswith("SET-11 ")


def test_a_header_is_one_line_of_plain_letters(sandbox: Sandbox) -> None:
    """The header is one line of printable ASCII, whatever the merchant sent."""
    answer = sandbox.create(payment_methods=["é\r\nX-Evil: 1"] * 100)
    explained_line = answer.headers["Sandbox-Explain"]
    assert re.fullmatch(r"[ -~]+", explained_line)
    assert len(explained_line) <= explained.LENGTH_MAX + 3
    assert "X-Evil" not in answer.headers


def test_only_what_can_succeed_is_called_possible(sandbox: Sandbox) -> None:
    """If less than each line remains, only a capture in full is possible; without lines, no method that needs them."""
    line = {"amount": 500, "quantity": 1, "merchant_order_line_id": "one"}
    lines = [line, {**line, "amount": 600, "merchant_order_line_id": "two"}]
    order = sandbox.place(card(capture_mode="manual"), amount=1000, order_lines=lines)
    wrong = sandbox.take(order, "captures/amount", {"amount": 0})
    assert read_explanation(wrong)[1].startswith("fix amount; cancel, update"), "its state refuses it, too"
    sandbox.acted(order, "customer pay")
    one = {"order_lines": [{"merchant_order_line_id": "one", "quantity": 1}]}
    sandbox.take(order, "captures/orderlines", one)
    _, possible = read_explanation(sandbox.take(order, "captures/amount", {"amount": 1}))
    assert possible.startswith("capture in full (500), void by amount up to 500, refund up to 500")
    assert sandbox.take(order, "captures").status_code == 200
    (violation,) = sandbox.create(payment_methods=["pay-later-a"]).json()["error"]["violations"]
    assert "credit-card" in violation["allowed"]
    assert not {"pay-later-a", "invoice-later-b"} & set(violation["allowed"])
