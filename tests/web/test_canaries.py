"""No secret sent in a field, form, header, path or file appears in any output (CTL-29).

The fields come from the facts of the routes and from the pages, so new fields are included automatically.
``REPEATED`` lists the fields whose values may be repeated, with the reason.
"""

import logging
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest
import requests
from marshmallow import Schema, fields

from payment_sandbox.cli.serve import MaskedFormatter
from payment_sandbox.web.routes import DescribedRoute, described_routes
from tests.attack import FULL
from tests.documentation.examples import record_examples
from tests.support.canaries import CODE, GROUPS, canaries, shown
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, card
from tests.support.payer import HTML, Form, Page
from tests.support.servers import make_server
from tests.support.shop import Shop

REPEATED: Final = {
    r"api\.(post|put)_order/(description|merchant_order_id|customer|extra|client|order_lines|locale"
    r"|verified_terms_of_service)\b": ("the merchant's own texts are returned as they were sent (A42)"),
    r"api\.post_order/.*\.dynamic_descriptor": "the merchant's own text for the statement of the card (A42)",
    r"api\.post_(capture|void)_\w+/description": "the merchant's own text (A42)",
    r"api\.post_refund/description": "the merchant's own text (A42)",
    r"api\.post_qr/(description|merchant_order_id)": "the merchant's own texts (A42)",
    r".*\b(webhook_url|return_url|failure_url)": "the sandbox calls the address unmasked; records of calls mask it",
}
"""The fields of bodies that an order, a QR request or the settings repeat, and why."""

REPEATING_ROUTES: Final = re.compile(
    r"api\.|pages\.|control\.(orders|overview|qr_requests|snapshot|project)$"
    r"|projects\.projects"
    r"|dashboard\.(get_orders_view|get_order_view|get_snapshot|get_simulate_view"
    r"|get_settings_view)"
)
"""The routes that show orders, QR requests and settings, and so repeat what ``REPEATED`` allows."""

NOT_CALLED: Final = {
    "watching.wait": "it only waits",
    "watching.next_offers": "it waits for webhooks to forward",
    "watching.events": "it never ends; the events are read from the project",
    "dashboard.get_dashboard_events": "the same",
    "control.delete_project": "it has no fields, and would end the test",
    "control.reset": "the same",
    "control.restore": "every text of a snapshot has a test of its own",
    "control.change_clock": "a running clock would advance during the test",
    "dashboard.post_project_reset": "it has no fields, and would end the test",
}
"""The routes that are not called, and why."""

HEADERS: Final = (
    *("User-Agent", "Referer", "Cookie", "X-Debug", "Idempotency-Key", "If-Match", "If-None-Match"),
    *("Accept-Language", "Last-Event-ID", "X-Request-Id"),
)
PARAMETER: Final = re.compile(r"<([a-z_]+)>")
HIDDEN_FIELDS: Final = ("token", "form", "back", "next")  # hidden fields without which a form is refused
DESTRUCTIVE_FORMS: Final = re.compile(r"/(reset|sign-in|sign-out|state|back|stop)/$")


class Leak(NamedTuple):
    """A place where a secret appeared."""

    where: str
    status: int
    secrets: list[str]


class CanaryClient:
    """A client that sends canaries to a server and searches all its outputs for them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.app = sandbox, sandbox.server.app
        self.values = canaries(sandbox.key)
        self.http = requests.Session()
        self.http.trust_env = False
        self.bodies: dict[str, Any] = {}
        self.leaks: list[Leak] = []
        self.sent = 0
        self.filled: set[tuple[str, ...]] = set()
        self.ids: dict[str, str] = {}

    def prepare(self, shop: Shop) -> None:
        """Create an instance of everything that a path can name; the shop repeats secrets."""
        self.bodies = {endpoint: example.body for endpoint, example in record_examples().answers.items()}
        sandbox = self.sandbox
        shop.says = f"no such card: {' '.join(GROUPS)}, cvc={CODE}, key {sandbox.key}".encode()
        details = {"one_click_type": "first"}
        transaction = card(capture_mode="manual", payment_method_details=details)
        urls = {"webhook_url": shop.url, "return_url": "http://shop.example/"}
        order = sandbox.place(transaction, amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, **urls)
        sandbox.pay(order)
        hosted = sandbox.place(customer=CUSTOMER)
        code = sandbox.post("/v1/bankqr/", {"amount": 100, "description": "Coffee"}).json()
        sandbox.settle()
        self.ids = {
            "order_id": order["id"],
            "transaction_id": order["transactions"][0]["id"],
            "qr_id": code["id"],
            "delivery_id": sandbox.get("/control/webhooks/").json()["items"][0]["id"],
            "entry_id": sandbox.get("/control/journal/?summary=1").json()["items"][0]["id"],
            "project_id": sandbox.project["project_id"],
            "name": "second-try-works",
            "method_name": "bank-redirect-nl",
            "other_id": hosted["id"],
        }

    def routes(self) -> Iterator[DescribedRoute]:
        """The routes to call."""
        described = list(described_routes(self.app))
        assert NOT_CALLED.keys() <= {each.name for each in described}, "a route has another name"
        yield from (each for each in described if each.name not in NOT_CALLED)

    def path(self, rule: DescribedRoute, **other: str) -> str:
        """Return the path of a route with the IDs of existing records."""
        return PARAMETER.sub(lambda match: {**self.ids, **other}[match[1]], rule.path)

    def send(self, where: str, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request and search its response."""
        address = path if path.startswith("http") else f"{self.sandbox.url}{path}"
        options.setdefault("auth", (self.sandbox.key, ""))
        answer = self.http.request(method, address, allow_redirects=False, **options)
        self.sent += 1
        if method != "GET" or "everything" in where:
            self.search_text(where, f"{answer.headers}\n{answer.text}", answer.status_code)
        return answer

    def search_text(self, where: str, text: str, status: int = 0) -> None:
        """Record the secrets that a text contains."""
        secrets = shown(text, self.sandbox.key)
        if secrets:
            self.leaks.append(Leak(where, status, secrets))

    def next_values(self) -> Iterator[tuple[str, str]]:
        """Return all secrets together, and one alone: another one in the next field, or all at full size."""
        together, *alone = self.values.items()
        yield together
        yield from alone if FULL else alone[self.sent % len(alone) :][:1]

    def fill_fields(self, rule: DescribedRoute, *, repeated: bool) -> None:
        """Put canaries into each field of a body, if any."""
        base = rule.facts.example or self.bodies.get(rule.name) or {}
        for field in fields_of(rule.facts.reads()) if rule.facts.reads is not None else ():
            where = f"{rule.name}/{field}"
            if is_repeated(where) == repeated:
                for name, value in self.next_values():
                    body = with_field(base, field, value)
                    self.send(f"{where}: {name}", rule.method, self.path(rule), json=body)
        if rule.name in ("control.put_faults", "control.put_scenario"):
            self.http.delete(f"{self.sandbox.url}{self.path(rule)}", auth=(self.sandbox.key, ""))

    def fill_other_parts(self, rule: DescribedRoute) -> None:
        """Put canaries into field names, malformed bodies, queries, paths and headers."""
        method, facts = rule.method, rule.facts
        everything, path = self.values["everything"], self.path(rule)
        if facts.reads is not None:
            self.send(f"{rule.name}: everything as a name", method, path, json={everything: 1})
            for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
                headers = {"Content-Type": kind}
                where = f"{rule.name}: everything as {kind}"
                self.send(where, method, path, data=everything.encode(), headers=headers)
        names = fields_of(facts.query()) if facts.query is not None else ()
        for name in [*names, "unknown", everything]:
            self.send(f"{rule.name}?{name[:20]}: everything", method, path, params={name: everything})
        for name in PARAMETER.findall(rule.path):
            for _, value in self.next_values():
                other = self.path(rule, **{name: quote(value, safe="")})
                self.send(f"{rule.name}<{name}>: everything", method, other)
        one_line = "".join(letter if " " <= letter <= "~" else " " for letter in everything)
        basic = b64encode(f"{self.sandbox.key}:".encode()).decode()
        headers = {"X-CVC": CODE, "X-Original-Authorization": f"Basic {basic}"}
        headers |= dict.fromkeys(HEADERS, one_line)
        body = self.bodies.get(rule.name) if facts.reads is not None else None
        self.send(f"{rule.name}: everything in headers", method, path, json=body, headers=headers)

    def fill_forms(self, **ids: str) -> None:
        """Put canaries into each field of each form of the pages."""
        for rule in self.routes():
            is_page = rule.method == "GET" and rule.facts.media_type == "text/html"
            if not is_page or rule.name.startswith("docs."):
                continue
            answer = self.send(rule.name, "GET", self.path(rule, **ids), headers=HTML)
            for form in Page(answer).forms if answer.status_code == 200 else ():
                buttons = map("=".join, form.buttons[:1])
                same = (form.action, *sorted(form.fields), *buttons)  # all views have the forms of the frame
                if same not in self.filled and not DESTRUCTIVE_FORMS.search(form.action):
                    self.filled.add(same)
                    self.fill_form(f"the form {rule.name}", form)

    def fill_form(self, where: str, form: Form) -> None:
        """Put canaries into each field of a form."""
        headers = {**HTML, "Origin": self.sandbox.url}
        button = dict(form.buttons[:1])
        for field in form.fields.keys() - set(HIDDEN_FIELDS):
            for name, value in self.next_values():
                data = {**form.fields, **button, field: value}
                place = f"{where} {form.action.rpartition('/')[0][-20:]} {field}: {name}, everything"
                sent = {"params": data} if form.method == "GET" else {"data": data}
                answer = self.send(place, form.method, form.action, headers=headers, **sent)
                onward = answer.headers.get("Location", "").removeprefix(self.sandbox.url)
                if onward.startswith("/"):
                    self.send(place, "GET", onward, headers=HTML)

    def search_everywhere(self, *, repeated: bool) -> None:
        """Search everything that the server shows.

        With ``repeated``, skip the outputs that may repeat the merchant's own texts.
        """
        for rule in self.routes():
            if rule.method == "GET" and not (repeated and REPEATING_ROUTES.match(rule.name)):
                for path in self.paths(rule):
                    headers = HTML if rule.facts.media_type == "text/html" else {}
                    answer = self.send("", "GET", path, headers=headers)
                    self.search_text(f"GET {path}", answer.text, answer.status_code)
        self.search_text("events", repr(self.sandbox.project_in_process.events.events_after(0)))

    def paths(self, rule: DescribedRoute) -> Iterator[str]:
        """Return the paths of a route with the IDs of existing records, but only a sample of the requests."""
        if "<entry_id>" in rule.path:
            entries = self.sandbox.get("/control/journal/?summary=1").json()["items"]
            yield from (self.path(rule, entry_id=entry["id"]) for entry in entries[::40])
        else:
            yield self.path(rule)
            yield self.path(rule, order_id=self.ids["other_id"])


def is_repeated(where: str) -> bool:
    """Whether outputs may repeat the secrets of a field."""
    return any(re.match(pattern, where) for pattern in REPEATED)


def fields_of(form: Schema, path: str = "") -> Iterator[str]:
    """Yield the paths of all fields of a form, at any level, such as ``customer.phone_numbers[]``."""
    for name, each in form.load_fields.items():
        yield from _below(f"{path}{'.' if path else ''}{each.data_key or name}", each)


def _below(path: str, each: Any) -> Iterator[str]:
    yield path
    if isinstance(each, fields.List):
        yield from _below(f"{path}[]", each.inner)
    elif isinstance(each, fields.Nested):
        yield from fields_of(each.schema, path)
    elif isinstance(each, fields.Dict):
        yield f"{path}.any"


def with_field(body: Any, path: str, value: Any) -> Any:
    """Return a copy of a body with this value; missing objects on the path are created."""
    name, _, rest = path.partition(".")
    if not path:
        return value
    if name.endswith("[]"):
        items = body.get(name[:-2]) if isinstance(body, Mapping) else None
        first = items[0] if isinstance(items, list) and items else {}
        return {**_object(body), name[:-2]: [with_field(first, rest, value) if rest else value]}
    inner = _object(body).get(name, {})
    return {**_object(body), name: with_field(inner, rest, value) if rest else value}


def _object(body: Any) -> dict[str, Any]:
    return dict(body) if isinstance(body, Mapping) else {}


def leaves(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all texts in a document."""
    if isinstance(document, Mapping):
        for name, inner in document.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(document, list):
        for index, inner in enumerate(document):
            yield from leaves(inner, (*path, index))
    elif isinstance(document, str):
        yield path


def replaced(document: Any, path: tuple[str | int, ...], value: str) -> Any:
    """Return a copy of a document with another text at the path."""
    if not path:
        return value
    if isinstance(document, list):
        return [
            replaced(inner, path[1:], value) if index == path[0] else inner
            for index, inner in enumerate(document)
        ]
    return {
        name: replaced(inner, path[1:], value) if name == path[0] else inner
        for name, inner in document.items()
    }


@pytest.mark.rule("CTL-29", "A42")
def test_no_secret_leaks(tmp_path: Path, shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """A secret in any part of a call, in any field of a form or in a shop's answer appears in no output.

    Afterwards, orders, QR requests and settings repeat the merchant's texts; other records mask them.
    """
    with caplog.at_level(logging.INFO), make_server(state=tmp_path / "state.db") as server:
        client = CanaryClient(Sandbox(server, webhook_url=shop.url))
        routes = list(client.routes())
        with client.sandbox.project_in_process.events.watching():
            client.prepare(shop)
            for rule in routes:
                client.fill_fields(rule, repeated=False)
                client.fill_other_parts(rule)
            client.fill_forms()
            client.fill_forms(order_id=client.ids["other_id"])
            client.sandbox.settle()
            client.search_everywhere(repeated=False)
            stored = b"\n".join(path.read_bytes() for path in tmp_path.glob("state.db*"))
            client.search_text("state file", stored.decode(errors="replace"))
            assert client.leaks == []
            assert client.sent > 1200, "too few requests"
            for rule in routes:
                client.fill_fields(rule, repeated=True)
            client.sandbox.settle()
            client.leaks.clear()
            client.search_everywhere(repeated=True)
            client.search_text("log", "\n".join(map(MaskedFormatter().format, caplog.records)))
            assert client.leaks == []
        client.http.close()
        client.sandbox.http.close()


@pytest.mark.rule("CTL-29", "CTL-10")
def test_no_secret_of_a_snapshot_leaks(watched: Sandbox) -> None:
    """A restored snapshot leaks no secret from any text but the merchant's own texts and addresses."""
    client = CanaryClient(watched)
    order = watched.place(card(), customer=CUSTOMER, amount=LINES_TOTAL, order_lines=LINES)
    watched.pay(order)
    watched.pay(
        watched.place(card(capture_mode="manual", payment_method_details={"one_click_type": "first"}))
    )
    watched.post("/v1/bankqr/", {"amount": 100, "description": "Coffee"})
    watched.settle()
    watched.post(f"/control/webhooks/{watched.webhooks()[0]['id']}/redeliver/")
    own = re.compile(
        r"\.(sent|client|order_lines|lines|description|merchant_order_id|dynamic_descriptor|url|return_url"
        r"|webhook_url)\b(?!.*request)"
    )
    document = watched.get("/control/state/").json()
    patterns: Mapping[str, tuple[str | int, ...]] = {
        re.sub(r"\.\d+", "[]", "".join(f".{step}" for step in path)): path for path in leaves(document)
    }
    restored = 0
    for pattern, path in patterns.items():
        for name, value in client.next_values() if not own.search(pattern) else ():
            where = f"{pattern}: {name}"
            restored += client.send(where, "PUT", "/control/state/", json=replaced(document, path, value)).ok
            client.search_text(f"{where}, then the state", watched.get("/control/state/").text)
    assert client.leaks == []
    assert restored > 10, "some snapshots were accepted"
