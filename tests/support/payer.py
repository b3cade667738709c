"""A payer with a simple browser: without scripts, with plain forms."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import requests

from payment_sandbox.methods import ALL_METHODS
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
RETURN = "http://shop.example:8443/thanks?basket=7&x=%20y#top"
WITH_PAGE = [
    method.name
    for method in ALL_METHODS
    if method.capabilities.page in ("card", "login", "sheet", "scan", "terms")
]


class Form:
    """A form: its address, its fields and its buttons."""

    def __init__(self, action: str, method: str = "get") -> None:
        self.action = action
        self.method = method.upper()
        self.fields: dict[str, Any] = {}
        self.buttons: list[tuple[str, str]] = []


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, answer: requests.Response) -> None:
        super().__init__()
        self.answer = answer
        self.url = answer.url
        self.status = answer.status_code
        self.language = ""
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.ids: dict[str, str] = {}  # test id -> text
        self.text = ""
        self._open: list[tuple[str, str | None]] = []
        self._select = ""
        self.feed(answer.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        name = attributes.get("name", "")
        if "data-testid" in attributes:
            self.ids[attributes["data-testid"]] = ""
        if tag not in ("input", "img", "meta", "link"):
            self._open.append((tag, attributes.get("data-testid")))
        if tag == "html":
            self.language = attributes["lang"]
        elif tag == "a":
            self.links.append(attributes["href"])
        elif tag == "form":
            action = urljoin(self.url, attributes.get("action", self.url))
            self.forms.append(Form(action, attributes.get("method", "get")))
        else:
            self._control(tag, name, attributes)

    def _control(self, tag: str, name: str, attributes: dict[str, str]) -> None:
        if tag == "input" and (
            attributes.get("type") not in ("radio", "checkbox") or "checked" in attributes
        ):
            self._add(name, attributes)
        elif tag == "select":
            self._select = name
        elif tag == "option":
            if "selected" in attributes:
                self.forms[-1].fields[self._select] = attributes["value"]
            self.forms[-1].fields.setdefault(self._select, attributes["value"])
        elif tag == "button" and attributes.get("type") != "button":
            self.forms[-1].buttons.append((name, attributes.get("value", "")))

    def _add(self, name: str, attributes: dict[str, str]) -> None:
        fields, value = self.forms[-1].fields, attributes.get("value", "")
        if attributes.get("type") == "checkbox" and name in fields:
            fields[name] = [*([fields[name]] if isinstance(fields[name], str) else fields[name]), value]
        else:
            fields[name] = value

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        for _, test_id in self._open:
            if test_id is not None:
                self.ids[test_id] = (self.ids[test_id] + data).strip()

    def form_with(self, value: str) -> Form:
        """Return the first form with a button of this value."""
        return next(form for form in self.forms if any(button[1] == value for button in form.buttons))

    def form_to(self, path: str) -> Form:
        """Return the first form that is sent to an address with this end."""
        return next(form for form in self.forms if form.action.endswith(path))

    def form_of(self, field: str) -> Form:
        """Return the first form with this field."""
        return next(form for form in self.forms if field in form.fields)

    @property
    def buttons(self) -> set[str]:
        """The values of all buttons."""
        return {value for form in self.forms for _, value in form.buttons}


class Payer:
    """A browser that follows redirects; ``arrived`` is the shop's address in the last redirect."""

    def __init__(self, sandbox: Sandbox, language: str | None = None) -> None:
        self.sandbox = sandbox
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.headers.update(HTML)
        if language is not None:
            self.http.headers["Accept-Language"] = language
        self.arrived: str | None = None

    def open(self, address: str) -> Page:
        """Open an address, with or without a scheme."""
        url = address if address.startswith("http") else f"http://{address}"
        return self._follow(self.http.get(url, allow_redirects=False))

    def press(self, page: Page, value: str, **fields: str) -> Page:
        """Press a button, after changing some fields."""
        form = page.form_with(value)
        name = next(name for name, known in form.buttons if known == value)
        data = {**form.fields, **fields, **({name: value} if name else {})}
        headers = {"Origin": "/".join(page.url.split("/")[:3])}
        return self._follow(self.http.post(form.action, data=data, headers=headers, allow_redirects=False))

    def _follow(self, answer: requests.Response) -> Page:
        while answer.status_code == 303:
            location = urljoin(answer.url, answer.headers["Location"])
            if not location.startswith(self.sandbox.url):
                self.arrived = location
                break
            answer = self.http.get(location, allow_redirects=False)
        return Page(answer)


def order_page(order: dict[str, Any]) -> str:
    """Return the address of an order's page."""
    return str(order["order_url"])


def payment_page(order: dict[str, Any]) -> str:
    """Return the address of the payment page of the newest attempt."""
    return str(order["transactions"][-1]["payment_url"])


def placed(sandbox: Sandbox, method: str, **more: Any) -> dict[str, Any]:
    """Create an order with lines and a customer, so that every method can pay it."""
    fields = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER, "return_url": RETURN}
    return sandbox.place(by(method), **{**fields, **more})


def entered(payer: Payer, order: dict[str, Any]) -> Page:
    """Open the page where the customer confirms the order; for a scanned code, the app's page."""
    page = payer.open(payment_page(order))
    return payer.open(f"{payment_page(order)}scan/") if "code" in page.ids else page
