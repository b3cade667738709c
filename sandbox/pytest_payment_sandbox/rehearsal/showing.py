"""Compares the return pages and the emails of an idle shop, as customers see them.

For shops without books, this comparison is the verdict. The comparison ignores numbers, dates and tokens.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import CREATE, Trait
from payment_sandbox.testing.shops.browser import Browser, ErrorPage
from pytest_payment_sandbox.rehearsal.changes import ChangedStep
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem, OrderRecord, order_records
from pytest_payment_sandbox.rehearsal.run import RehearsedRun

if TYPE_CHECKING:
    from blinker import Signal
    from flask import Flask

PAGES_MAX: Final = 6  # pages read per run
TEXT_SHOWN_MAX: Final = 80  # characters of text quoted in a problem
ORDER_ID_PLACEHOLDER: Final = "{order_id}"
HARMLESS_TRAITS: Final = Trait.AT_ONCE | Trait.AT_REST
FAILED_STATUS_MIN: Final = HTTPStatus.INTERNAL_SERVER_ERROR
BUSY_STATUS: Final = HTTPStatus.SERVICE_UNAVAILABLE
PLACEHOLDER: Final = "#"
DJANGO_MAIL_MODULE: Final = "django.core.mail"
FLASK_MAIL_MODULE: Final = "flask_mail"
_INVISIBLE_PATTERN: Final = re.compile(
    r"(?is)<(head|script|style|template|svg)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>"
)
_DATE_WORDS_PATTERN: Final = re.compile(
    r"(?i)\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?=\W{0,3}\d)|(?<=\d)\s?[ap]m\b"
)
_TOKEN_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*|[A-Za-z0-9+/=_-]{32,}")
_WORD_PATTERN: Final = re.compile(r"[a-z_]+")
EVENT_WORDS: Final = frozenset(
    {
        "callback",
        "callbacks",
        "event",
        "events",
        "log",
        "notification",
        "notifications",
        "webhook",
        "webhooks",
    }
    | {"status_changed", *map(str, TransactionStatus)}
)
"""The words of a page that lists what the service reported, rather than what became of a purchase."""
_NUMBERS_PATTERN: Final = re.compile(rf"{PLACEHOLDER}(?:[\s.,:/+-]*{PLACEHOLDER})*")


def normalize(text: str) -> str:
    """Return the visible text of a page or email without numbers, dates and tokens."""
    visible_text = unescape(_INVISIBLE_PATTERN.sub(" ", text))
    without_tokens = _TOKEN_PATTERN.sub(_replace_token, _DATE_WORDS_PATTERN.sub(PLACEHOLDER, visible_text))
    return " ".join(_NUMBERS_PATTERN.sub(PLACEHOLDER, without_tokens).split())


def _replace_token(match: re.Match[str]) -> str:
    """Replace the number in an identifier such as S-1001, but keep the prefix."""
    name = re.match(r"[A-Za-z]{1,6}-(?=\d)", match[0])
    return f"{name[0] if name else ''}{PLACEHOLDER}"


class PageFailed(Exception):
    """A page failed with a 5xx status, or raised an exception in this process."""


class ShownPage(NamedTuple):
    """A page about one order; ``text`` is None if the text differs on each request, or if the page fails."""

    path: str
    is_paid: bool | None  # None means partially paid, or refunded
    text: str | None
    error: str = ""


class Emails(NamedTuple):
    """The emails from a run, and the number of emails sent before the first action."""

    texts: Sequence[str]
    early_count: int

    @property
    def later_emails(self) -> Counter[str]:
        """The emails after the first action, which may confirm a payment."""
        return Counter(self.texts[self.early_count :])


class SentEmail(Protocol):
    """An email from Django, where ``recipients`` is a method, or from Flask-Mail."""

    subject: str
    body: str | None
    recipients: Callable[[], list[str]] | list[str]


class Mailbox:
    """Collects the emails sent in one run, from Django's test outbox and from Flask-Mail."""

    def __init__(self) -> None:
        self._dispatched: list[SentEmail] = []
        self._signal: Signal | None = None
        self._early: int | None = None
        self._connect()

    def _connect(self) -> None:
        """Subscribe to Flask-Mail if the shop has imported it."""
        if self._signal is None:
            self._signal = getattr(sys.modules.get(FLASK_MAIL_MODULE), "email_dispatched", None)
            if self._signal is not None:
                self._signal.connect(self._record)

    def _record(self, app: "Flask", message: SentEmail) -> None:
        self._dispatched.append(message)

    def mark_first_action(self) -> None:
        """Record the time of the first action."""
        self._connect()
        if self._early is None:
            self._early = len(self.texts())

    @property
    def early_count(self) -> int:
        """The number of emails sent before the first action."""
        return self._early or 0

    def texts(self) -> list[str]:
        """Return the emails so far: recipients, subject and text."""
        outbox: Iterable[SentEmail] = getattr(sys.modules.get(DJANGO_MAIL_MODULE), "outbox", ())
        return [
            f"{', '.join(each.recipients() if callable(each.recipients) else each.recipients)}: "
            f"{each.subject}\n{each.body or getattr(each, 'html', '')}"
            for each in (*outbox, *self._dispatched)
        ]

    def comparable_emails(self) -> Emails:
        """Return the emails so far, in the form used for comparisons."""
        return Emails(list(map(normalize, self.texts())), self.early_count)

    def close(self) -> None:
        """Stop collecting emails."""
        if self._signal is not None:
            self._signal.disconnect(self._record)


class CustomerView(NamedTuple):
    """The pages and emails of an idle shop."""

    pages: Sequence[ShownPage] = ()
    emails: Emails = Emails((), 0)


EMPTY_VIEW: Final = CustomerView()

GetPage = Callable[[str], str | None]
"""Requests a page of the shop as a customer; returns None if the page does not exist.

Raises:
    PageFailed: the shop responds with an error.
"""


def read_pages(
    run: RehearsedRun, get: GetPage, paths: Iterable[str], opened: Iterable[str], *, twice: bool
) -> list[ShownPage]:
    """Return the return pages, the pages at ``paths`` and the pages that the test itself has opened.

    With ``twice``, a page whose text differs between two requests has no text. Nobody returns to the page of
    an order whose address was lost.
    """
    project = run.project
    known = [each for each in project.epoch.store.orders_newest_first() if not each.is_refund]
    orders = [each for each in known[::-1] if not run.is_address_lost(each.id, (CREATE,))]
    records = order_records(project)
    order_urls = [
        (order, url)
        for order in orders
        for url in (
            *_return_urls(project, order),
            *(path.replace(ORDER_ID_PLACEHOLDER, order.id) for path in paths),
        )
    ]
    empty = [
        (ShownPage(urlsplit(url).path.replace(order.id, "…"), _is_paid(records, order), None), url)
        for order, url in order_urls[:PAGES_MAX]
    ]
    pages = [_request_page(*each, get, twice=twice) for each in [*empty, *_find_opened(opened, order_urls)]]
    return [page for page in pages if page is not None]


def _find_opened(
    opened: Iterable[str], order_urls: Sequence[tuple[Order, str]]
) -> list[tuple[ShownPage, str]]:
    """Return the other pages that a test has opened; their paths have no ids, which differ between runs."""
    known = {urlsplit(url).path for _, url in order_urls}
    others = [url for url in opened if urlsplit(url).path not in known]
    return [
        (ShownPage(_TOKEN_PATTERN.sub("…", urlsplit(url).path), None, None), url)
        for url in others[:PAGES_MAX]
    ]


def _request_page(page: ShownPage, url: str, get: GetPage, *, twice: bool) -> ShownPage | None:
    """Request a page once or twice; return None if the page does not exist."""
    try:
        text = _request_text(get, url)
        is_stable = not twice or _request_text(get, url) == text
    except PageFailed as failed:
        return page._replace(error=str(failed))
    if text is None:
        return None
    return page._replace(text=text if is_stable else None)


def visit_shop(project: Project, browser: Browser, order: Order, tabs: int) -> list[ShownPage]:
    """Let a customer return in this many tabs; return the pages, marked unpaid before any payment."""
    if not order.return_url:
        return []
    records = order_records(project).values()
    has_paid = any(record.received or record.authorized for record in records)
    path = (urlsplit(order.return_url).path or "/").replace(order.id, "…")
    page = ShownPage(path, None if has_paid else False, None)
    try:
        answers = browser.returns(order.id, tabs)
        return [_fill_page(page, answer.status_code, answer.text) for answer in answers]
    except Exception as error:  # in production, the customer gets an error page
        return [page._replace(error=_first_line(error))]


def _fill_page(page: ShownPage, status: int, text: str) -> ShownPage:
    """Fill a page with a response; 503 from a busy shop is not an error."""
    if status >= FAILED_STATUS_MIN and status != BUSY_STATUS:
        return page._replace(error=f"status {status}")
    return page._replace(text=normalize(text) if status == HTTPStatus.OK else None)


def find_visit_problems(
    pages: Sequence[ShownPage], baseline: CustomerView, *, may_fail: bool
) -> Iterator[BookProblem]:
    """Find pages that fail when the customer returns, or that thank customers who have not paid."""
    paid = _pages_of_payers(baseline)
    for page in pages:
        if page.error and not may_fail:
            yield BookProblem(
                "shown-error", f"the page {page.path} fails when the customer returns: {page.error}"
            )
        if page.is_paid is False and (page.path, page.text) in paid:
            yield BookProblem(
                "shown-paid",
                f"the page {page.path} shows the same text to a customer who returns without having paid: "
                f"{_shorten(page.text)}",
            )


def open_page(browser: Browser, cookies: Mapping[str, str], url: str) -> str | None:
    """Request a page of a shop in this process; ``cookies`` has those of the pages that the test has opened.

    Raises:
        PageFailed: the shop responds with an error, or raises an exception.
    """
    try:
        return browser.peek(url, cookies.get(url))
    except ErrorPage as page:
        raise PageFailed(str(page)) from page
    except Exception as error:
        raise PageFailed(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _request_text(get: GetPage, url: str) -> str | None:
    text = get(url)
    return None if text is None else normalize(text)


def _return_urls(project: Project, order: Order) -> Iterator[str]:
    if order.return_url:
        parts = urlsplit(order.return_url)
        query = {**dict(parse_qsl(parts.query)), "order_id": order.id, "project_id": project.project_id}
        yield urlunsplit(parts._replace(query=urlencode(query)))


def _is_paid(records: Mapping[str, OrderRecord], order: Order) -> bool | None:
    record = records[order.id]
    if record.received == 0 and record.authorized == 0:
        return False
    return True if record.reserved or record.received - record.refunded >= order.amount_cents else None


def find_view_problems(
    current: CustomerView, baseline: CustomerView, changes: Sequence[ChangedStep], *, is_same_money: bool
) -> Iterator[BookProblem]:
    """Find pages and emails that treat non-payers like payers, or that differ from the unchanged test.

    A difference is a problem only if the changes are harmless and the paid, captured and refunded amounts are
    the same.
    """
    yield from _find_same_for_non_payers(current, baseline)
    yield from _find_failed_pages(current, baseline)
    if is_same_money and changes and all(changed.change.traits & HARMLESS_TRAITS for changed in changes):
        yield from _find_differences(current, baseline)


def _find_same_for_non_payers(current: CustomerView, baseline: CustomerView) -> Iterator[BookProblem]:
    paid = _pages_of_payers(baseline) - _pages_of_payers(current)  # omits the pages of earlier orders
    for page in current.pages:
        if page.is_paid is False and (page.path, page.text) in paid:
            yield BookProblem(
                "shown-paid",
                f"the page {page.path} shows the same text to a customer who has not paid: "
                f"{_shorten(page.text)}",
            )
    if (
        _is_unpaid_run(current, baseline)
        and baseline.emails.later_emails
        and not baseline.emails.later_emails - current.emails.later_emails
    ):
        email = _shorten(next(iter(baseline.emails.later_emails)))
        yield BookProblem(
            "shown-paid", f"a customer who has not paid gets the same emails as one who has: {email}"
        )


def _find_failed_pages(current: CustomerView, baseline: CustomerView) -> Iterator[BookProblem]:
    """Find pages that fail in this run, but not in the unchanged test."""
    expected = {page.path for page in baseline.pages if not page.error}
    for page in current.pages:
        if page.error and page.path in expected:
            yield BookProblem("shown-error", f"the page {page.path} fails: {page.error}")


def _pages_of_payers(view: CustomerView) -> set[tuple[str, str]]:
    return {(page.path, page.text) for page in view.pages if page.is_paid and page.text}


def _is_unpaid_run(current: CustomerView, baseline: CustomerView) -> bool:
    """Whether no customer paid in this run, although a customer paid in the unchanged test."""
    return {page.is_paid for page in current.pages} == {False} and any(
        page.is_paid for page in baseline.pages
    )


def _find_differences(current: CustomerView, baseline: CustomerView) -> Iterator[BookProblem]:
    for page, expected in _pair_pages(current.pages, baseline.pages):
        if expected.text is None or page.error or page.text == expected.text:
            continue
        if not _lists_events(page.text or "", expected.text):
            yield BookProblem(
                "shown-differently",
                f"the page {page.path} shows {_shorten(page.text)} instead of {_shorten(expected.text)}",
            )
    emails, known_emails = Counter(current.emails.texts), Counter(baseline.emails.texts)
    for email, count in (emails - known_emails).items():
        copies = "an extra copy" if count == 1 else f"{count} extra copies"
        yield BookProblem("mailed-differently", f"the customer gets {copies} of an email: {_shorten(email)}")
    for email in known_emails - emails:
        yield BookProblem("mailed-differently", f"the customer does not get the email {_shorten(email)}")


def _lists_events(text: str, expected: str) -> bool:
    """Whether two texts differ only in the number and order of events, as in a shop's list of webhooks."""
    one, other = (Counter(_WORD_PATTERN.findall(each.lower())) for each in (text, expected))
    is_nested = one.keys() <= other.keys() or other.keys() <= one.keys()
    has_events = max(sum(each[word] for word in EVENT_WORDS) for each in (one, other)) > 1
    changed = (one - other) + (other - one)
    return is_nested and has_events and (not changed or not EVENT_WORDS.isdisjoint(changed))


def _pair_pages(
    pages: Sequence[ShownPage], baseline: Sequence[ShownPage]
) -> list[tuple[ShownPage, ShownPage]]:
    """Pair the pages of two runs; a test that ends early has opened fewer pages."""
    if [page.path for page in pages] == [page.path for page in baseline]:
        return list(zip(pages, baseline, strict=True))
    counts = [Counter(page.path for page in each) for each in (pages, baseline)]
    single = {page.path: page for page in baseline if page.is_paid is None and counts[1][page.path] == 1}
    return [(page, single[page.path]) for page in pages if page.path in single and counts[0][page.path] == 1]


def _shorten(text: str | None) -> str:
    visible = text or "nothing"
    return repr(visible if len(visible) <= TEXT_SHOWN_MAX else f"{visible[:TEXT_SHOWN_MAX]}…")
