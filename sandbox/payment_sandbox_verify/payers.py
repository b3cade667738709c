"""The payers of the probes' orders: a program that submits forms, or a person with a browser."""

from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from payment_sandbox_verify.checks import CannotTell
from payment_sandbox_verify.fetching import CallFailed, FetchedAnswer, fetch_answer
from payment_sandbox_verify.samples import CARD

if TYPE_CHECKING:
    import requests

HTML_HEADERS: Final = {"Accept": "text/html"}
REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
PAGES_MAX: Final = 8
PAY: Final = "pay"
CANCEL: Final = "cancel"


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
    """Presses the buttons ``pay`` and ``cancel`` on pages that work without scripts."""

    def __init__(self, session: "requests.Session", wait: Callable[[], None]) -> None:
        self._session = session
        self._wait = wait

    def visit(self, url: str) -> HtmlPage:
        """Open a page, following redirects on the same host.

        Raises:
            CannotTell: the page cannot be opened.
        """
        return self._request_page("GET", url)[0]

    def pay(self, url: str, payment: str) -> str | None:
        """Press ``pay`` on each page in turn, including a 3-D Secure page.

        On a hosted page that lists methods, choose the card first.

        Raises:
            CannotTell: the first page has no such button.
        """
        return self._press(url, PAY)

    def cancel(self, url: str, payment: str) -> str | None:
        """Press ``cancel``; return and raise the same as ``pay``."""
        return self._press(url, CANCEL)

    def pay_in_steps(self, url: str, name: str, value: str) -> Iterator[None]:
        """Choose a value on a page, press ``pay`` on that and each following page, and yield after each page.

        Raises:
            CannotTell: the page has no such choice, or too many pages follow.
        """
        page, return_url = self._request_page("GET", url)
        forms = [form for form in page.forms if PAY in form.buttons and (name, value) in form.choices]
        if not forms:
            raise CannotTell(f"the payment page has no choice {value!r} that a program can select")
        forms[0].fields[name] = value
        for _ in range(PAGES_MAX):
            if return_url is not None or PAY not in page.buttons:
                return
            page, return_url = self._submit(page, PAY)
            yield
        raise CannotTell(f"the payment is not over after {PAGES_MAX} pages with a 'pay' button")

    def choose(self, url: str, method: str) -> None:
        """Press a method's button on the hosted page.

        Raises:
            CannotTell: the page has no such button.
        """
        page = self.visit(url)
        if method not in page.buttons:
            raise CannotTell(f"the hosted page has no {method!r} button that a program can press")
        self._submit(page, method)

    def _press(self, url: str, value: str) -> str | None:
        page, return_url = self._request_page("GET", url)
        if value not in page.buttons and CARD in page.buttons:
            page, return_url = self._submit(page, CARD)
        if value not in page.buttons:
            raise CannotTell(
                f"the payment page has no {value!r} button that a program can press; try --by-hand"
            )
        for _ in range(PAGES_MAX):
            if return_url is not None or value not in page.buttons:
                break
            page, return_url = self._submit(page, value)
        return return_url

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
            answer, content = self._send(method, url, data, headers)
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

    def _send(self, method: str, url: str, data: Any, headers: dict[str, str]) -> FetchedAnswer:
        self._wait()
        try:
            return fetch_answer(self._session, method, url, data, headers)
        except CallFailed as failed:
            raise CannotTell(f"the payment page cannot be opened: {failed}") from None


class ManualPayer:
    """Asks a person to pay, and waits for their confirmation."""

    def __init__(self, pages: FormPayer, ask: Callable[[str], bool]) -> None:
        self._pages = pages
        self._ask = ask

    def visit(self, url: str) -> HtmlPage:
        """Open a page without asking the person."""
        return self._pages.visit(url)

    def choose(self, url: str, method: str) -> None:
        """Choose a method without asking the person."""
        self._pages.choose(url, method)

    def pay_in_steps(self, url: str, name: str, value: str) -> Iterator[None]:
        """Refuse: a person pays in one step.

        Raises:
            CannotTell: always.
        """
        raise CannotTell(f"only a program can watch a payment with {value!r} step by step")

    def pay(self, url: str, payment: str) -> str | None:
        """Ask for a payment.

        Raises:
            CannotTell: the person skips the payment.
        """
        return self._confirm(f"pay {payment} at {url}")

    def cancel(self, url: str, payment: str) -> str | None:
        """Ask for a cancellation."""
        return self._confirm(f"cancel {payment} at {url}")

    def _confirm(self, task: str) -> str | None:
        if not self._ask(task):
            raise CannotTell("the person skipped the payment")
        return None
