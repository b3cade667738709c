"""The same seed and the same calls give the same bytes, of every call, on any server."""

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

PUBLIC: Final = "http://sandbox.example"
HOST: Final = {"Host": PUBLIC.partition("//")[2]}
KEY: Final = "sandbox-key"
LAST: Final = "the last change"
REAL: Final = re.compile(r'"(real_at|duration_ms)": ?("[^"]*"|[\d.e-]+|null)')
"""The fields that hold real time, and so differ; the documentation names them."""
TOKEN: Final = re.compile('name="token" value="[^"]*"')
OF_A_CONNECTION: Final = (
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
READ: Final = (
    *("actions", "agenda", "bankqr", "cards", "clock", "coverage", "faults", "fidelity", "journal", "orders"),
    *("project", "review", "scenario", "scenarios", "servers", "state", "timeline", "webhooks"),
)


class Recording:
    """Makes calls of the merchant's project, and records every response."""

    def __init__(self, session: requests.Session, url: str, *, waits: bool) -> None:
        self.lines: list[tuple[str, str]] = []
        self._session = session
        self._url = url
        self._waits = waits

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Make a call, and wait until its webhooks are answered unless they come before the response."""
        answer = self.once(method, path, json, **options)
        if self._waits and method != "GET":
            self.once("GET", "/control/wait/?idle=1")
        return answer

    def once(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Make a call."""
        headers = {**HOST, **options.pop("headers", {})}
        answer = self._session.request(
            method,
            self._url + path,
            json=json,
            auth=(KEY, ""),
            headers=headers,
            allow_redirects=False,
            timeout=30,
            **options,
        )
        names = sorted(name for name in answer.headers if name.lower() not in OF_A_CONNECTION)
        head = "\n".join(f"{name}: {answer.headers[name]}" for name in names)
        self.lines.append((f"{method} {path}", f"{answer.status_code}\n{head}\n\n{plain(answer.content)}"))
        return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.text

    def stream(self, url: str) -> None:
        """Read all events of the project, up to a last one, over a socket."""
        self.call("PATCH", "/control/project/", {"name": LAST})
        options: Any = {"auth": (KEY, ""), "headers": HOST, "stream": True, "timeout": 30}
        with self._session.get(f"{url}/control/events/?after=0", **options) as answer:
            for line in answer.iter_lines():
                self.lines.append(("event", plain(line)))
                if LAST.encode() in line:
                    return


def plain(body: bytes) -> str:
    """A body without the fields that hold real time."""
    text = TOKEN.sub('name="token" value="…"', body.decode("utf-8", "backslashreplace"))
    return REAL.sub(r'"\1": …', text)


class Played(NamedTuple):
    """All responses, and all webhooks as the shop got them."""

    calls: list[tuple[str, str]]
    webhooks: list[tuple[list[tuple[str, str]], bytes]]


def played(
    shop: Shop, *, seed: int = 7, in_process: bool = False, waits: bool = True, **options: Any
) -> Played:
    """What a new server answers, and sends to a shop that reads each order, and answers some with 503."""
    if in_process:
        options["listener"] = LazyServer()
    options |= {"seed": seed, "clock": f"frozen@{START}", "public_url": PUBLIC, "webhook_url": shop.url}
    with make_server(**options) as server:

        def read(received: Received) -> int:
            place = f"{server.local_url}/v1/orders/{received.body['order_id']}/"
            order = requests.get(place, auth=(KEY, ""), headers={**HOST, "User-Agent": "shop"}, timeout=10)
            return 503 if order.json()["status"] == "accepted" else 204

        del shop.received[:]
        shop.answer = read
        http = create_session(server, KEY) if in_process else direct_session(KEY)
        with http:
            recording = Recording(http, server.url if in_process else server.local_url, waits=waits)
            if not waits:
                recording.call("PATCH", "/control/project/", {"webhook_timing": "before_response"})
            play(recording)
            recording.stream(server.local_url)
    return Played(recording.lines, [(sorted(each.headers.items()), each.raw) for each in shop.received])


def play(recording: Recording) -> None:
    """A day of a shop: every method, captures, refunds, faults, refusals, expiries, scenarios, a snapshot."""
    prepare(recording)
    authorizations(recording)
    stored_cards(recording)
    screenings_and_banks(recording)
    read_everything(recording)
    refusals(recording)
    timed_together(recording)
    recover(recording)
    read_everything(recording)


def prepare(play: Recording) -> None:
    """Settings, and the rules of customers and webhooks."""
    play.call("PATCH", "/control/project/", {"mode": "live", "aliases": {"my-bank": "bank-redirect-nl"}})
    play.call("PUT", "/control/scenario/", {"name": "busy", "rules": RULES, "webhooks": WEBHOOKS})
    for path in ("/v1/my-bank/issuers/", "/v1/merchants/self/projects/self/currencies/", "/health/"):
        play.call("GET", path)


def create(play: Recording, *transactions: Any, **fields: Any) -> Any:
    """Create an order."""
    body = {"currency": "EUR", "amount": 1000, "transactions": list(transactions), **fields}
    return play.call("POST", "/v1/orders/", body)


def act(play: Recording, order: Any, action: str, **more: Any) -> Any:
    """Let somebody act."""
    actor, _, name = action.partition(" ")
    return play.call("POST", f"/control/orders/{order['id']}/act/", {"actor": actor, "action": name, **more})


def take(play: Recording, order: Any, kind: str, json: Any = None, **options: Any) -> Any:
    """Capture or void."""
    place = f"/v1/orders/{order['id']}/transactions/{order['transactions'][-1]['id']}/{kind}/"
    return play.call("POST", place, json, **options)


def refund(play: Recording, order: Any, json: Any = None) -> Any:
    """Refund."""
    return play.call("POST", f"/v1/orders/{order['id']}/refunds/", json)


def advance(play: Recording, **aim: Any) -> None:
    """Advance the clock."""
    play.call("POST", "/control/clock/advance/", aim)


def authorizations(play: Recording) -> None:
    """By amount, by lines, in full, delayed, expired, voided."""
    with_lines = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}], "description": "one"}
    for kind, body in (
        ("captures/orderlines", lines),
        ("captures/amount", {"amount": 300}),
        ("captures", None),
    ):
        order = act(play, create(play, by("pay-later-a"), **with_lines), "customer pay")
        take(play, order, "voids/amount", {"amount": 100})
        take(play, order, kind, body)
        take(play, order, "captures/amount", {"amount": 50})
        refund(play, order, {"amount": 50})
        play.call("GET", f"/v1/orders/{order['id']}/?fields[]=order_line_details&fields[]=amount_details")
    delayed = create(play, card(capture_mode="delayed", expiration_period="PT1H"))
    act(play, delayed, "customer pay")
    invoice = create(play, by("invoice-later-b"), **with_lines)
    take(play, invoice, "captures/orderlines", lines)
    play.call("DELETE", f"/v1/orders/{create(play, by('invoice-later-b'), **with_lines)['id']}/")
    unused = create(play, card(capture_mode="manual", expiration_period="PT1H"))
    act(play, unused, "customer pay")
    advance(play, by="PT3H")


def stored_cards(play: Recording) -> None:
    """First and further payments, one of which fails."""
    for kind, value in (("one_click_type", "one-click"), ("recurring_type", "recurring")):
        first = create(play, details(**{kind: "first"}))
        act(play, first, "customer pay", card="challenge")
        read = play.call("GET", f"/v1/orders/{first['id']}/")
        token = read["transactions"][0]["payment_method_details"]["vault_token"]
        code = {"cvc": "123"} if value == "one-click" else {}
        again = create(play, details(**{kind: value, "vault_token": token}, **code))
        act(play, again, "processor fail")
    advance(play, until="idle", max_events=7)


def screenings_and_banks(play: Recording) -> None:
    """Screenings by trigger, transfers in parts and beyond the amount, and QR codes."""
    for email in ("declined@example.com", "needs-time@example.com", "error@example.com"):
        customer = {**CUSTOMER, "email_address": email}
        create(play, by("pay-later-a"), amount=LINES_TOTAL, order_lines=LINES, customer=customer)
    transfer = create(play, by("bank-transfer"), merchant_order_id="T-1")
    for cents in (400, 1_100):
        act(play, transfer, "bank credit", amount=cents)
    refund(play, transfer)
    code = play.call("POST", "/v1/bankqr/", {"amount": 500, "description": "Lunch", "one_off": False})
    scanned = play.call("POST", f"/control/bankqr/{code['id']}/scan/", {})
    play.call("GET", f"/qr/{code['project_id']}/{code['id']}.png")
    act(play, scanned, "customer pay")
    hosted = create(play, expiration_period="PT2H", customer={"locale": "nl"})
    page = hosted["order_url"].removeprefix(PUBLIC.removeprefix("http:").removeprefix("//"))
    play.call("GET", page)
    act(play, hosted, "customer choose", payment_method="bank-redirect-nl")
    act(play, hosted, "customer fail", reason="no money")
    play.call("GET", page)
    advance(play, until="next")


def refusals(play: Recording) -> None:
    """What is wrong, stale, repeated or a fault."""
    order = create(play, card(), amuont=3, extra={"note": "1"})
    place = f"/v1/orders/{order['id']}/"
    play.call("POST", "/v1/orders/", {"currency": "USD", "amount": "1", "transactions": [{}]})
    play.call("GET", "/v1/orders/unknown/")
    play.call("PATCH", "/v1/orders/")
    play.call("DELETE", place, headers={"If-Match": '"stale"'})
    play.call("PUT", place, {"description": "changed", "status": "completed"})
    for _ in range(2):
        play.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 5}, headers={"Idempotency-Key": "one"})
    act(play, order, "bank credit")
    fault = {"when": {"method": "GET", "nth": 2}, "then": {"status": 503}}
    play.call("PUT", "/control/faults/", {"faults": [fault]})
    for _ in range(3):
        play.call("GET", place)
    play.call("DELETE", "/control/faults/")


def timed_together(play: Recording) -> None:
    """Customers, retries, delayed webhooks and expiries at the same moments."""
    for amount in (777, 778, 777, 778):
        create(play, card(), amount=amount)
        create(play, card(expiration_period="PT2M"))
        play.call("DELETE", f"/v1/orders/{create(play, card())['id']}/")
    paid = create(play, card())
    act(play, paid, "customer pay")
    refund(play, paid, {"amount": 111})
    play.call("GET", "/control/agenda/")
    advance(play, by="PT2M")
    advance(play, by="PT2M")
    advance(play, by="PT30M", max_events=5)
    advance(play, until="idle")


def recover(play: Recording) -> None:
    """A snapshot put back, a webhook by hand, a reset."""
    state = play.call("GET", "/control/state/")
    create(play, card())
    play.call("PUT", "/control/state/", state)
    newest = play.call("GET", "/control/webhooks/")["items"][-1]
    play.call("POST", f"/control/webhooks/{newest['id']}/redeliver/", {})
    play.call("GET", f"/control/webhooks/{newest['id']}/")
    create(play, by("bank-transfer"))
    read_everything(play)
    play.call("POST", "/control/reset/")
    act(play, create(play, card()), "customer pay")


def read_everything(play: Recording) -> None:
    """Every list, order, webhook and request that the control API shows."""
    for name in READ:
        play.call("GET", f"/control/{name}/")
    orders = play.call("GET", "/control/orders/?limit=1000")["items"]
    for order in orders:
        order_id = order["id"]
        for path in (
            f"/v1/orders/{order_id}/",
            f"/control/orders/{order_id}/",
            f"/control/timeline/?order_id={order_id}",
        ):
            play.call("GET", path)
    for entry in play.call("GET", "/control/journal/")["items"][-10:]:
        play.call("GET", f"/control/journal/{entry['id']}/")


def differences(one: Played, other: Played) -> list[str]:
    """The calls that were answered differently."""
    return [f"{a[0]}: {b[0]}" for a, b in zip(one.calls, other.calls, strict=True) if a != b]


def test_over_http(shop: Shop, tmp_path: Path) -> None:
    """On two servers, one of them with a state file; another seed gives other identifiers."""
    first, second, other = played(shop), played(shop, state=tmp_path / "state.db"), played(shop, seed=8)
    assert differences(first, second) == []
    assert first.webhooks == second.webhooks
    assert first.webhooks[0] != other.webhooks[0]
    assert (len(first.calls), len(first.webhooks)) > (400, 60)


@pytest.mark.parametrize(
    "how", [{"in_process": True}, {"waits": False}], ids=["in-process", "before-response"]
)
def test_without_sockets_and_without_waiting(shop: Shop, how: dict[str, Any]) -> None:
    """In process, and where webhooks come before the response, so that nobody need wait for them."""
    first, second = played(shop, **how), played(shop, **how)
    assert differences(first, second) == []
    assert first.webhooks == second.webhooks
