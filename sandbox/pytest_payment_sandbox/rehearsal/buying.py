"""Buys in any shop: a browser follows the steps in a file, pays on the sandbox's pages, and returns."""

import os
import shutil
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

import requests
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Request, Route, sync_playwright

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.scenarios.variation import SubmittedForm
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.shops.filling import Choices, FormBody, read_choices
from payment_sandbox.testing.shops.submitting import POST_METHOD, Submission

BROWSER_COMMANDS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_FLAGS: Final = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
TIMEOUT_MS: Final = 8_000
PAYMENT_PAGES_MAX: Final = 8
REQUEST_SECONDS_MAX: Final = 15.0
PAGE_TEXT_MAX: Final = 200  # characters of page text quoted in an error
SCRIPT_KEYS: Final = ("open", "steps", "returned")
STEP_ACTIONS: Final = ("click", "fill", "select", "check")
ACTIONS_WITH_VALUE: Final = ("fill", "select")
ACTIONS_TEXT: Final = ", ".join(
    f"{name} (requires with)" if name in ACTIONS_WITH_VALUE else name for name in STEP_ACTIONS
)
CHOICE_SELECTORS: Final = (
    '[data-testid="method-credit-card"]',
    '[data-testid^="method-"]',
    '[data-testid^="issuer-"]',
    '[data-testid="scan-open"]',
)
"""Elements of the payment pages that a customer clicks before the payment."""
PAY_SELECTOR: Final = '[data-testid="pay"], [data-testid="sandbox-credit"]'
BANK_PATH: Final = "/secure"
BACK_SELECTOR: Final = '[data-testid="back-to-shop"]'


class PurchaseFailed(Exception):
    """The purchase failed; the message contains the step, the expectation, and the text of the page."""


class PurchaseStep(NamedTuple):
    """One step of a purchase in the shop."""

    name: str  # such as "step 2"
    action: str
    selector: str
    value: str = ""

    @property
    def label(self) -> str:
        """The step as shown in errors."""
        return f'{self.name} ({self.action} "{self.selector}")'


class BuyScript(NamedTuple):
    """A purchase: the first page, the customer's steps, and the address or element expected on return."""

    file: str
    first_page: str
    steps: Sequence[PurchaseStep]
    expected_return: str


def read_buy_script(file: Path) -> BuyScript:
    """Read a file with the steps of a purchase.

    Raises:
        ValueError: the file is invalid; the message states the line and what was expected.
    """
    document = _parse_script(file)
    data = document.data
    if not isinstance(data, dict) or set(data) - set(SCRIPT_KEYS) or "open" not in data:
        raise _script_error(document, file, "", "expected open, steps and, optionally, returned")
    steps = data.get("steps")
    if not isinstance(steps, list) or not steps:
        raise _script_error(document, file, "steps", "expected a list of steps")
    read = []
    for number, step in enumerate(steps, 1):
        if (action := _action_of(step)) is None:
            path = f"steps[{number - 1}]"
            raise _script_error(
                document, file, path, f"step {number}: expected one of {ACTIONS_TEXT}, not {step!r}"
            )
        read.append(PurchaseStep(f"step {number}", action, str(step[action]), str(step.get("with", ""))))
    return BuyScript(str(file), str(data["open"]), read, str(data.get("returned", "")))


def _parse_script(file: Path) -> Document:
    try:
        return parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise ValueError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except Invalid as invalid:
        raise ValueError("; ".join(violation.as_line() for violation in invalid.violations)) from invalid


def _script_error(document: Document, file: Path, path: str, expected: str) -> ValueError:
    return ValueError(f"{file}:{document.position_of(path).line}: {expected}")


def _action_of(step: object) -> str | None:
    """Return the action of a step; None if the step is invalid."""
    if not isinstance(step, dict):
        return None
    action = next((name for name in STEP_ACTIONS if name in step), None)
    if action is None or set(step) - {action, "with"}:
        return None
    return action if (action in ACTIONS_WITH_VALUE) == ("with" in step) else None


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    """Start a headless browser: the system's Chromium, or Playwright's own.

    Raises:
        PurchaseFailed: no browser can be started.
    """
    path = next(filter(None, map(shutil.which, BROWSER_COMMANDS)), None)
    flags = [*BROWSER_FLAGS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=flags)
        except Error as error:
            reason = error.message.partition("\n")[0]
            raise PurchaseFailed(
                f"cannot start Chromium: install the package chromium, or run playwright install ({reason})"
            ) from error
        try:
            yield browser
        finally:
            with suppress(Error):  # Ctrl-C has stopped the browser
                browser.close()


class RecordSubmission(Protocol):
    """Records the submission of a form; returns the variation of the submission, if any."""

    def __call__(self, path: str, form: SubmittedForm) -> Submission | None:
        """Record the submission."""
        ...


Forms = dict[int, SubmittedForm]
"""The submitted forms, by the number of the step that submits the form."""


class Customer:
    """A customer with a separate set of cookies."""

    def __init__(self, context: BrowserContext, buy: BuyScript, shop: str, sandbox: str) -> None:
        self._context = context
        self._script = buy
        self._shop = shop
        self._sandbox = sandbox
        context.set_default_timeout(TIMEOUT_MS)
        self._page = context.new_page()
        self._cookies: dict[str, str] = {}
        self.screenshots: dict[str, bytes] = {}  # screenshots by address

    def buy(self, record_submission: RecordSubmission, forms: Forms) -> None:
        """Buy, pay, and return to the shop; ``forms`` has the steps known to submit a form.

        Raises:
            PurchaseFailed: a step fails, or the customer does not get back to the shop.
        """
        self._open(urljoin(f"{self._shop}/", self._script.first_page), "open")
        for number, step in enumerate(self._script.steps):
            self._perform(step, number, record_submission, forms)
        self._pay()
        self._expect_return()

    def read_page(self, url: str) -> str | None:
        """Take a screenshot of a shop page; return its text, or None if the page does not exist."""
        if urlsplit(url).netloc == "":
            url = urljoin(f"{self._shop}/", url)
        tab = self._context.new_page()
        try:
            answer = tab.goto(url, wait_until="load")
            if answer is None or answer.status == HTTPStatus.NOT_FOUND:
                return None
            self.screenshots[url] = tab.screenshot(type="jpeg", quality=60)
            return tab.inner_text("body")
        except Error as error:
            return f"{type(error).__name__}: {error.message.partition(chr(10))[0]}"
        finally:
            tab.close()

    def take_screenshot(self) -> None:
        """Take a screenshot of the customer's current page."""
        with suppress(Exception):
            self.screenshots[self._page.url] = self._page.screenshot(type="jpeg", quality=60)

    def return_to_shop(self, url: str, tabs: int) -> None:
        """Request the return page with the customer's cookies, on one thread per tab."""

        def request_page() -> None:
            with suppress(requests.RequestException):  # the verdict shows the effect of the request
                requests.get(url, cookies=self._cookies, timeout=REQUEST_SECONDS_MAX)

        threads = [Thread(target=request_page, daemon=True) for _ in range(tabs)]
        for thread in threads:
            start(thread)
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Delete the cookies, and close all tabs."""
        self._context.close()

    # Steps

    def _open(self, url: str, step_name: str) -> None:
        try:
            self._page.goto(url, wait_until="load")
        except Error as error:
            reason = error.message.partition("\n")[0]
            raise PurchaseFailed(
                f"{self._script.file}, {step_name}: {url} does not open: {reason}"
            ) from error

    def _perform(
        self, step: PurchaseStep, number: int, record_submission: RecordSubmission, forms: Forms
    ) -> None:
        element = self._page.locator(step.selector).first
        posts: list[bytes] = []

        def record_post(request: Request) -> None:
            if request.method == POST_METHOD and request.url.startswith(self._shop):
                posts.append(request.post_data_buffer or b"")

        is_known = number in forms
        choices = read_choices(self._page.content())
        submission = record_submission(step.selector, forms[number]) if is_known else None
        self._page.on("request", record_post)
        try:
            if submission is not None:
                self._page.route(f"{self._shop}/**", _SubmissionRoute(submission, choices).route)
            self._interact(step, element)
            self._page.wait_for_load_state("load")
        except Error as error:
            raise self._step_failure(step, error) from error
        finally:
            self._page.remove_listener("request", record_post)
            if submission is not None:
                self._page.unroute(f"{self._shop}/**")
        if posts and not is_known:
            forms[number] = FormBody(posts[0], choices).details
            record_submission(step.selector, forms[number])

    def _interact(self, step: PurchaseStep, element: Locator) -> None:
        if step.action == "fill":
            element.fill(step.value)
        elif step.action == "select":
            element.select_option(step.value)
        elif step.action == "check":
            element.check()
        else:
            element.click()

    def _step_failure(self, step: PurchaseStep, error: Exception) -> PurchaseFailed:
        reason = str(error).partition("\n")[0]
        with suppress(Exception):  # a selector can be invalid
            if not self._page.locator(step.selector).count():
                reason = f"no element matched within {TIMEOUT_MS // 1000} s"
        return PurchaseFailed(
            f"{self._script.file}, {step.label}: {reason} on {self._page.url}, "
            f"which shows {self._page_text()!r}"
        )

    def _page_text(self) -> str:
        text = ""
        with suppress(Exception):
            text = " ".join(self._page.inner_text("body").split())
        return text if len(text) <= PAGE_TEXT_MAX else f"{text[:PAGE_TEXT_MAX]}…"

    # The payment

    def _pay(self) -> None:
        """Make all choices, pay once, and return to the shop, whatever the outcome."""
        has_paid = False
        try:
            for _ in range(PAYMENT_PAGES_MAX):
                self._page.wait_for_load_state("load")
                if not self._page.url.startswith(self._sandbox):
                    return
                self._cookies = {each["name"]: each["value"] for each in self._context.cookies(self._shop)}
                button = self._next_button(has_paid=has_paid)
                if button is None:
                    return
                has_paid = has_paid or button == PAY_SELECTOR
                with self._page.expect_navigation(wait_until="load"):
                    self._page.locator(button).locator("visible=true").first.click()
        except Error as error:
            reason = str(error).partition("\n")[0]
            raise PurchaseFailed(
                f"{self._script.file}: the customer is stuck on the page {self._page.url} ({reason}), "
                f"which shows {self._page_text()!r}"
            ) from error

    def _next_button(self, *, has_paid: bool) -> str | None:
        """Return the selector of the next button; after the payment, the bank may ask for a confirmation."""
        may_pay = not has_paid or BANK_PATH in self._page.url
        selectors = [
            *((PAY_SELECTOR,) if may_pay else ()),
            *(() if has_paid else CHOICE_SELECTORS),
            BACK_SELECTOR,
        ]
        return next(
            (each for each in selectors if self._page.locator(each).locator("visible=true").count()), None
        )

    def _expect_return(self) -> None:
        if self._page.url.startswith(self._sandbox):
            raise PurchaseFailed(
                f"{self._script.file}: the customer does not get back to the shop: the payment page "
                f"{self._page.url} shows {self._page_text()!r}; set a return_url in the order"
            )
        expected = self._script.expected_return
        if not expected:
            return
        if expected.startswith(("/", "http")):
            is_right = self._page.url.startswith(urljoin(f"{self._shop}/", expected))
        else:
            is_right = self._page.locator(expected).count() > 0
        if not is_right:
            raise PurchaseFailed(
                f'{self._script.file}, returned: expected "{expected}" on {self._page.url}, '
                f"which shows {self._page_text()!r}"
            )


class _SubmissionRoute:
    """Varies a form submission: sends it twice, in sequence or concurrently, or changes a value."""

    def __init__(self, submission: Submission, choices: Choices) -> None:
        self._submission = submission
        self._choices = choices
        self._is_done = False

    def route(self, route: Route, request: Request) -> None:
        """Handle a request from the page; only the first form is varied."""
        body = request.post_data_buffer or b""
        if request.method != POST_METHOD or self._is_done:
            route.continue_()
            return
        self._is_done = True
        if self._submission.fill is not None:
            route.continue_(post_data=self._submission.fill(FormBody(body, self._choices)))
            return
        headers = {name: value for name, value in request.all_headers().items() if not name.startswith(":")}
        headers.pop("content-length", None)
        repeat = Thread(target=_send_copy, args=(request.url, headers, body), daemon=True)
        start(repeat)
        if not self._submission.at_once:
            repeat.join(REQUEST_SECONDS_MAX)
        route.continue_()


def _send_copy(url: str, headers: Mapping[str, str], body: bytes) -> None:
    with suppress(requests.RequestException):
        requests.post(
            url, data=body, headers=dict(headers), allow_redirects=False, timeout=REQUEST_SECONDS_MAX
        )


def images_html(screenshots: Mapping[str, bytes]) -> str:
    """Return pictures as HTML with embedded data, for a single-file report."""
    return "".join(
        f'<figure><img alt="the page {escape(url)}" src="data:image/jpeg;base64,{b64encode(data).decode()}">'
        f"<figcaption>{escape(url)}</figcaption></figure>"
        for url, data in screenshots.items()
    )
