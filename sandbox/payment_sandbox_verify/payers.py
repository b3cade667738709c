"""The payers of the conversations' orders: a program that submits forms, or a person with a browser."""

from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from payment_sandbox_verify.answer import CannotTell
from payment_sandbox_verify.samples import CARD

if TYPE_CHECKING:
    import requests

FetchedAnswer: TypeAlias = "tuple[requests.Response, bytes]"
"""An answer and its body."""

FetchPage: TypeAlias = Callable[[str, str, Any, Mapping[str, str]], FetchedAnswer]
"""Requests a page with a method, a URL, the fields of a form, and headers."""

HTML_HEADERS: Final = {"Accept": "text/html"}
REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
PAGES_MAX: Final = 8
CHOOSE: Final = "choose"


class HtmlForm:
    """A form: its URL, fields and buttons."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: dict[str, str] = {}
        self.choices: set[tuple[str, str]] = set()  # (name, value) of radio buttons
        self.buttons: dict[str, str] = {}  # value -> name

    def add_input(self, attributes: dict[str, str]) -> None:
        """Add an input by its attributes; an unchecked input has no value."""
        name, value, kind = (attributes.get(key, "") for key in ("name", "value", "type"))
        if kind == "radio":
            self.choices.add((name, value))
        if kind not in ("radio", "checkbox") or "checked" in attributes:
            self.fields[name] = value


class HtmlPage(HTMLParser):
    """A page of the service: its language and its forms."""

    def __init__(self, url: str, status: int, text: str) -> None:
        super().__init__()
        self.url = url
        self.status = status
        self.language = ""
        self.forms: list[HtmlForm] = []
        self._select = ""
        self.feed(text)

    @property
    def buttons(self) -> set[str]:
        """The values of all buttons."""
        return {value for form in self.forms for value in form.buttons}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the language, forms, fields and buttons."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = attributes.get("lang", "")
        elif tag == "form":
            self.forms.append(HtmlForm(urljoin(self.url, attributes.get("action", self.url))))
        elif self.forms:
            self._add_control(self.forms[-1], tag, attributes)

    def _add_control(self, form: HtmlForm, tag: str, attributes: dict[str, str]) -> None:
        name, value = attributes.get("name", ""), attributes.get("value", "")
        if tag == "input":
            form.add_input(attributes)
        elif tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in attributes or self._select not in form.fields):
            form.fields[self._select] = value
        elif tag == "button" and value:
            form.buttons[value] = name


class FormPayer:
    """Presses the buttons ``pay``, ``cancel`` and ``fail`` on pages that work without scripts."""

    def __init__(self, fetch: FetchPage) -> None:
        self._fetch = fetch

    def visit(self, url: str) -> HtmlPage:
        """Open a payment page, following redirects on the same host.

        Raises:
            CannotTell: the page cannot be opened.
        """
        return self._request_page("GET", url)[0]

    def act(self, url: str, action: str, choice: str, amount: str) -> str | None:
        """Pay, cancel, fail or only choose a method; return the URL to which the customer returned.

        Press a button on each page in turn, including a 3-D Secure page. ``choice`` is a card, or a method of
        a hosted page, by default the card. The result is None if the customer stayed, or if it is unknown.

        Raises:
            CannotTell: the page does not allow it.
        """
        page, return_url = self._request_page("GET", url)
        chosen = choice if choice in page.buttons else CARD
        if action == CHOOSE and choice not in page.buttons:
            raise CannotTell(f"the hosted page has no {choice!r} button that a program can press")
        if action not in page.buttons and chosen in page.buttons:
            page, return_url = self._submit(page, chosen)
        if action == CHOOSE:
            return return_url
        if choice not in ("", chosen):
            _select(page, choice)
        if _button(page, action) is None:
            raise CannotTell(
                f"the payment page has no {action!r} button that a program can press; try --by-hand"
            )
        return self._press_through(page, action)

    def _press_through(self, page: HtmlPage, action: str) -> str | None:
        for _ in range(PAGES_MAX):
            page, return_url = self._submit(page, _button(page, action) or action)
            if return_url is not None or _button(page, action) is None:
                return return_url
        raise CannotTell(f"the payment is not over after {PAGES_MAX} pages with a button")

    def _submit(self, page: HtmlPage, value: str) -> tuple[HtmlPage, str | None]:
        form = next(form for form in page.forms if value in form.buttons)
        name = form.buttons[value]
        return self._request_page("POST", form.action, {**form.fields, **({name: value} if name else {})})

    def _request_page(self, method: str, url: str, data: Any = None) -> tuple[HtmlPage, str | None]:
        """Request a page; return the page, and the URL of any redirect to another host."""
        host = urlsplit(url).netloc
        headers = (
            {**HTML_HEADERS, "Origin": f"{urlsplit(url).scheme}://{host}"}
            if data is not None
            else HTML_HEADERS
        )
        for _ in range(PAGES_MAX):
            answer, content = self._fetch(method, url, data, headers)
            if answer.status_code not in REDIRECT_STATUSES:
                break
            url, method, data, headers = (
                urljoin(url, answer.headers.get("Location", "")),
                "GET",
                None,
                HTML_HEADERS,
            )
            if urlsplit(url).netloc != host:
                return HtmlPage(url, answer.status_code, ""), url
        return HtmlPage(url, answer.status_code, content.decode(errors="replace")), None


def _button(page: HtmlPage, action: str) -> str | None:
    """Return the button to press on a page: that of the action, or ``pay`` on the way to a failure."""
    candidates = (action, "pay") if action == "fail" else (action,)
    return next((each for each in candidates if each in page.buttons), None)


def _select(page: HtmlPage, choice: str) -> None:
    """Select a radio button by its value.

    Raises:
        CannotTell: the page has no such button.
    """
    for form in page.forms:
        for name, value in form.choices:
            if value == choice:
                form.fields[name] = value
                return
    raise CannotTell(f"the payment page has no choice {choice!r} that a program can select")


class ManualPayer(FormPayer):
    """Asks a person to pay, and waits for their confirmation."""

    def __init__(self, fetch: FetchPage, ask: Callable[[str], bool]) -> None:
        super().__init__(fetch)
        self._ask = ask

    def act(self, url: str, action: str, choice: str, amount: str) -> str | None:
        """Ask for an action; raise the same as ``FormPayer``, or if the person skips it."""
        if action == CHOOSE:
            return super().act(url, action, choice, amount)
        choose = f"choose {choice} and " if choice else ""
        if not self._ask(f"{choose}{action} {amount} at {url}"):
            raise CannotTell("the person skipped the payment")
        return None
