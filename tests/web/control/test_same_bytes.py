"""The same seed and calls give the same bytes in every response, on any server."""

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import requests

from payment_sandbox.serving.listeners import LazyServer
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox.testing.clients.with_requests import create_session
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, START, by, card, details
from tests.support.servers import make_server
from tests.support.shop import Received, Shop

PUBLIC_URL: Final = "http://sandbox.example"
HOST: Final = {"Host": PUBLIC_URL.partition("//")[2]}
KEY: Final = "sandbox-key"
LAST_NAME: Final = "the last change"
REAL_TIME_FIELDS: Final = re.compile(r'"(real_at|duration_ms)": ?("[^"]*"|[\d.e-]+|null)')
"""The fields that hold real time and so differ; the documentation lists them."""
TOKEN: Final = re.compile('name="token" value="[^"]*"')
CONNECTION_HEADERS: Final = (
    "date",
    "server",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
)

RULES: Final = [
    {"when": {"amount": 777}, "then": {"customer": "pays", "after": "PT2M"}},
    {"when": {"amount": 778}, "then": {"customer": "fails", "after": "PT2M", "reason": "no money"}},
    {"when": {"refund": True, "amount": 111}, "then": {"processor": "fails", "after": "PT2M"}},
]
WEBHOOKS: Final = [
    {"when": {"status": "expired", "attempt": 1}, "then": {"answer": 503}},
    {"when": {"status": "cancelled"}, "then": {"delay": "PT2M"}},
    {"when": {"status": "error"}, "then": {"duplicate": 2}},
]
CONTROL_LISTS: Final = (
    *("actions", "agenda", "bankqr", "cards", "clock", "coverage", "faults", "fidelity", "journal", "orders"),
    *("project", "review", "scenario", "scenarios", "servers", "state", "timeline", "webhooks"),
)


class Recording:
    """A client that calls the merchant's and the control API and records every response."""

    def __init__(self, session: requests.Session, url: str, *, waits: bool) -> None:
        self.lines: list[tuple[str, str]] = []
        self._session = session
        self._url = url
        self._waits = waits

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Make a call, and wait for the responses to its webhooks, unless they precede the response."""
        answer = self.call_once(method, path, json, **options)
        if self._waits and method != "GET":
            self.call_once("GET", "/control/wait/?idle=1")
        return answer

    def call_once(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Make a call without waiting."""
        headers = {**HOST, **options.pop("headers", {})}
        answer = self._session.request(
            method,
            self._url + path,
            json=json,
            auth=(KEY, ""),
            headers=headers,
            allow_redirects=False,
            **options,
        )
        names = sorted(name for name in answer.headers if name.lower() not in CONNECTION_HEADERS)
        head = "\n".join(f"{name}: {answer.headers[name]}" for name in names)
        self.lines.append((f"{method} {path}", f"{answer.status_code}\n{head}\n\n{plain(answer.content)}"))
        return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.text

    def stream(self, url: str) -> None:
        """Record all events of the project, up to a last one."""
        self.call("PATCH", "/control/project/", {"name": LAST_NAME})
        options: Any = {"auth": (KEY, ""), "headers": HOST, "stream": True, "timeout": 30}
        with self._session.get(f"{url}/control/events/?after=0", **options) as answer:
            for line in answer.iter_lines():
                self.lines.append(("event", plain(line)))
                if LAST_NAME.encode() in line:
                    return


def plain(body: bytes) -> str:
    """Return a body without the fields that hold real time."""
    text = TOKEN.sub('name="token" value="…"', body.decode("utf-8", "backslashreplace"))
    return REAL_TIME_FIELDS.sub(r'"\1": …', text)


class PlayRecord(NamedTuple):
    """All responses, and all webhooks as the shop received them."""

    calls: list[tuple[str, str]]
    webhooks: list[tuple[list[tuple[str, str]], bytes]]


def record_play(
    shop: Shop, *, seed: int = 7, in_process: bool = False, waits: bool = True, **options: Any
) -> PlayRecord:
    """Play against a new server and a shop that reads each order and answers 503 to accepted orders."""
    if in_process:
        options["listener"] = LazyServer()
    options |= {"seed": seed, "clock": f"frozen@{START}", "public_url": PUBLIC_URL, "webhook_url": shop.url}
    with make_server(**options) as server:

        def read(received: Received) -> int:
            path = f"{server.local_url}/v1/orders/{received.body['order_id']}/"
            order = requests.get(path, auth=(KEY, ""), headers={**HOST, "User-Agent": "shop"})
            return 503 if order.json()["status"] == "accepted" else 204

        del shop.received[:]
        shop.answer = read
        http = create_session(server, KEY) if in_process else direct_session(KEY)
        with http:
            recording = Recording(http, server.url if in_process else server.local_url, waits=waits)
            if not waits:
                recording.call("PATCH", "/control/project/", {"webhook_timing": "before_response"})
            play_day(recording)
            recording.stream(server.local_url)
    return PlayRecord(
        recording.lines, [(sorted(webhook.headers.items()), webhook.raw) for webhook in shop.received]
    )


def play_day(recording: Recording) -> None:
    """Play a day of a shop: every method, captures, refunds, faults, refusals, expiries and a snapshot."""
    prepare(recording)
    authorizations(recording)
    stored_cards(recording)
    screenings_and_banks(recording)
    read_everything(recording)
    refusals(recording)
    coinciding_events(recording)
    recover(recording)
    read_everything(recording)


def prepare(recording: Recording) -> None:
    """Set the settings, and the rules for customers and webhooks."""
    recording.call("PATCH", "/control/project/", {"mode": "live", "aliases": {"my-bank": "bank-redirect-nl"}})
    recording.call("PUT", "/control/scenario/", {"name": "busy", "rules": RULES, "webhooks": WEBHOOKS})
    for path in ("/v1/my-bank/issuers/", "/v1/merchants/self/projects/self/currencies/", "/health/"):
        recording.call("GET", path)


def create(recording: Recording, *transactions: Any, **fields: Any) -> Any:
    """Create an order."""
    body = {"currency": "EUR", "amount": 1000, "transactions": list(transactions), **fields}
    return recording.call("POST", "/v1/orders/", body)


def act(recording: Recording, order: Any, action: str, **more: Any) -> Any:
    """Perform an action of a customer, a bank, a screening or a processor."""
    actor, _, name = action.partition(" ")
    return recording.call(
        "POST", f"/control/orders/{order['id']}/act/", {"actor": actor, "action": name, **more}
    )


def take(recording: Recording, order: Any, kind: str, json: Any = None, **options: Any) -> Any:
    """Capture or void an authorization."""
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][-1]['id']}/{kind}/"
    return recording.call("POST", path, json, **options)


def refund(recording: Recording, order: Any, json: Any = None) -> Any:
    """Refund an order."""
    return recording.call("POST", f"/v1/orders/{order['id']}/refunds/", json)


def advance(recording: Recording, **aim: Any) -> None:
    """Advance the clock."""
    recording.call("POST", "/control/clock/advance/", aim)


def authorizations(recording: Recording) -> None:
    """Create authorizations that are captured, delayed, expired or voided."""
    with_lines = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}], "description": "one"}
    for kind, body in (
        ("captures/orderlines", lines),
        ("captures/amount", {"amount": 300}),
        ("captures", None),
    ):
        order = act(recording, create(recording, by("pay-later-a"), **with_lines), "customer pay")
        take(recording, order, "voids/amount", {"amount": 100})
        take(recording, order, kind, body)
        take(recording, order, "captures/amount", {"amount": 50})
        refund(recording, order, {"amount": 50})
        recording.call(
            "GET", f"/v1/orders/{order['id']}/?fields[]=order_line_details&fields[]=amount_details"
        )
    delayed = create(recording, card(capture_mode="delayed", expiration_period="PT1H"))
    act(recording, delayed, "customer pay")
    invoice = create(recording, by("invoice-later-b"), **with_lines)
    take(recording, invoice, "captures/orderlines", lines)
    recording.call("DELETE", f"/v1/orders/{create(recording, by('invoice-later-b'), **with_lines)['id']}/")
    unused = create(recording, card(capture_mode="manual", expiration_period="PT1H"))
    act(recording, unused, "customer pay")
    advance(recording, by="PT3H")


def stored_cards(recording: Recording) -> None:
    """Make first and later payments with stored cards; the later ones fail."""
    for kind, value in (("one_click_type", "one-click"), ("recurring_type", "recurring")):
        first = create(recording, details(**{kind: "first"}))
        act(recording, first, "customer pay", card="challenge")
        read = recording.call("GET", f"/v1/orders/{first['id']}/")
        token = read["transactions"][0]["payment_method_details"]["vault_token"]
        code = {"cvc": "123"} if value == "one-click" else {}
        later = create(recording, details(**{kind: value, "vault_token": token}, **code))
        act(recording, later, "processor fail")
    advance(recording, until="idle", max_events=7)


def screenings_and_banks(recording: Recording) -> None:
    """Trigger screenings, credit transfers in parts and above the amount, and scan a QR code."""
    for email in ("declined@example.com", "needs-time@example.com", "error@example.com"):
        customer = {**CUSTOMER, "email_address": email}
        create(recording, by("pay-later-a"), amount=LINES_TOTAL, order_lines=LINES, customer=customer)
    transfer = create(recording, by("bank-transfer"), merchant_order_id="T-1")
    for cents in (400, 1_100):
        act(recording, transfer, "bank credit", amount=cents)
    refund(recording, transfer)
    code = recording.call("POST", "/v1/bankqr/", {"amount": 500, "description": "Lunch", "one_off": False})
    scanned = recording.call("POST", f"/control/bankqr/{code['id']}/scan/", {})
    recording.call("GET", f"/qr/{code['project_id']}/{code['id']}.png")
    act(recording, scanned, "customer pay")
    hosted = create(recording, expiration_period="PT2H", customer={"locale": "nl"})
    page = hosted["order_url"].removeprefix(PUBLIC_URL.removeprefix("http:").removeprefix("//"))
    recording.call("GET", page)
    act(recording, hosted, "customer choose", payment_method="bank-redirect-nl")
    act(recording, hosted, "customer fail", reason="no money")
    recording.call("GET", page)
    advance(recording, until="next")


def refusals(recording: Recording) -> None:
    """Make invalid, stale and repeated calls, and calls with a fault."""
    order = create(recording, card(), amuont=3, extra={"note": "1"})
    path = f"/v1/orders/{order['id']}/"
    recording.call("POST", "/v1/orders/", {"currency": "USD", "amount": "1", "transactions": [{}]})
    recording.call("GET", "/v1/orders/unknown/")
    recording.call("PATCH", "/v1/orders/")
    recording.call("DELETE", path, headers={"If-Match": '"stale"'})
    recording.call("PUT", path, {"description": "changed", "status": "completed"})
    for _ in range(2):
        recording.call(
            "POST", "/v1/orders/", {"currency": "EUR", "amount": 5}, headers={"Idempotency-Key": "one"}
        )
    act(recording, order, "bank credit")
    fault = {"when": {"method": "GET", "nth": 2}, "then": {"status": 503}}
    recording.call("PUT", "/control/faults/", {"faults": [fault]})
    for _ in range(3):
        recording.call("GET", path)
    recording.call("DELETE", "/control/faults/")


def coinciding_events(recording: Recording) -> None:
    """Let customers, retries, delayed webhooks and expiries coincide."""
    for amount in (777, 778, 777, 778):
        create(recording, card(), amount=amount)
        create(recording, card(expiration_period="PT2M"))
        recording.call("DELETE", f"/v1/orders/{create(recording, card())['id']}/")
    paid = create(recording, card())
    act(recording, paid, "customer pay")
    refund(recording, paid, {"amount": 111})
    recording.call("GET", "/control/agenda/")
    advance(recording, by="PT2M")
    advance(recording, by="PT2M")
    advance(recording, by="PT30M", max_events=5)
    advance(recording, until="idle")


def recover(recording: Recording) -> None:
    """Restore a snapshot, redeliver a webhook and reset the project."""
    state = recording.call("GET", "/control/state/")
    create(recording, card())
    recording.call("PUT", "/control/state/", state)
    newest = recording.call("GET", "/control/webhooks/")["items"][-1]
    recording.call("POST", f"/control/webhooks/{newest['id']}/redeliver/", {})
    recording.call("GET", f"/control/webhooks/{newest['id']}/")
    create(recording, by("bank-transfer"))
    read_everything(recording)
    recording.call("POST", "/control/reset/")
    act(recording, create(recording, card()), "customer pay")


def read_everything(recording: Recording) -> None:
    """Read every list, order, webhook and request of the control API."""
    for name in CONTROL_LISTS:
        recording.call("GET", f"/control/{name}/")
    orders = recording.call("GET", "/control/orders/?limit=1000")["items"]
    for order in orders:
        order_id = order["id"]
        for path in (
            f"/v1/orders/{order_id}/",
            f"/control/orders/{order_id}/",
            f"/control/timeline/?order_id={order_id}",
        ):
            recording.call("GET", path)
    for entry in recording.call("GET", "/control/journal/")["items"][-10:]:
        recording.call("GET", f"/control/journal/{entry['id']}/")


def differences(one: PlayRecord, other: PlayRecord) -> list[str]:
    """Return the calls whose responses differ."""
    return [f"{a[0]}: {b[0]}" for a, b in zip(one.calls, other.calls, strict=True) if a != b]


def test_same_bytes_over_http(shop: Shop, tmp_path: Path) -> None:
    """Two servers, one with a state file, give the same bytes; another seed gives other identifiers."""
    first, second, other = (
        record_play(shop),
        record_play(shop, state=tmp_path / "state.db"),
        record_play(shop, seed=8),
    )
    assert differences(first, second) == []
    assert first.webhooks == second.webhooks
    assert first.webhooks[0] != other.webhooks[0]
    assert (len(first.calls), len(first.webhooks)) > (400, 60)


@pytest.mark.parametrize(
    "options", [{"in_process": True}, {"waits": False}], ids=["in-process", "before-response"]
)
def test_same_bytes_in_process_and_before_responses(shop: Shop, options: dict[str, Any]) -> None:
    """Calls give the same bytes in process, and if webhooks precede responses."""
    first, second = record_play(shop, **options), record_play(shop, **options)
    assert differences(first, second) == []
    assert first.webhooks == second.webhooks
