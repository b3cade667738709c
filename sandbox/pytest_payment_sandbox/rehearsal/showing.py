"""The output of an idle shop to its customers: the return pages, and the mails.

It is the verdict on shops without books. Texts are compared without numbers, dates and tokens.
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
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import Trait
from payment_sandbox.testing.shops.browser import Browser, ErrorPage
from pytest_payment_sandbox.rehearsal.books import BookProblem, Truth, truths_of
from pytest_payment_sandbox.rehearsal.changes import ChangedStep

if TYPE_CHECKING:
    from blinker import Signal
    from flask import Flask

PAGES_MAX: Final = 6  # of a run
SHOWN_MAX: Final = 80  # characters of a text
ORDER_ID: Final = "{order_id}"
SAME_END: Final = Trait.AT_ONCE | Trait.AT_REST
FAILED: Final = HTTPStatus.INTERNAL_SERVER_ERROR
BUSY: Final = HTTPStatus.SERVICE_UNAVAILABLE
ONE: Final = "#"
DJANGO: Final = "django.core.mail"
FLASK: Final = "flask_mail"
_UNSEEN: Final = re.compile(r"(?is)<(head|script|style|template|svg)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>")
_NAMES: Final = re.compile(
    r"(?i)\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?=\W{0,3}\d)|(?<=\d)\s?[ap]m\b"
)
_TOKENS: Final = re.compile(r"[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*|[A-Za-z0-9+/=_-]{32,}")
_NUMBERS: Final = re.compile(rf"{ONE}(?:[\s.,:/+-]*{ONE})*")


def normalized(text: str) -> str:
    """Return the visible text of a page or mail, without numbers, dates and tokens."""
    seen = unescape(_UNSEEN.sub(" ", text))
    alike = _TOKENS.sub(_token, _NAMES.sub(ONE, seen))
    return " ".join(_NUMBERS.sub(ONE, alike).split())


def _token(match: re.Match[str]) -> str:
    """Replace the number in an identifier such as S-1001, and keep its prefix."""
    name = re.match(r"[A-Za-z]{1,6}-(?=\d)", match[0])
    return f"{name[0] if name else ''}{ONE}"


class PageFailed(Exception):
    """The shop answers with an error (status 5xx), or with an exception in this process."""


class ShownPage(NamedTuple):
    """A page about one order; ``text`` is None if it differs at each request, or if the page fails."""

    path: str
    is_paid: bool | None  # None: paid in part, or refunded
    text: str | None
    error: str = ""


class Mails(NamedTuple):
    """The mails of a run, and the number of those before the first action."""

    texts: Sequence[str]
    early: int

    @property
    def later(self) -> Counter[str]:
        """The mails after the first action, which can confirm a payment."""
        return Counter(self.texts[self.early :])


class SentMail(Protocol):
    """A mail of Django, whose receivers are a method, or of Flask-Mail."""

    subject: str
    body: str | None
    recipients: Callable[[], list[str]] | list[str]


class MailBox:
    """Collects the mails of one run: Django's outbox in tests, and the mails of Flask-Mail."""

    def __init__(self) -> None:
        self._dispatched: list[SentMail] = []
        self._signal: Signal | None = None
        self._early: int | None = None
        self._connect()

    def _connect(self) -> None:
        """Subscribe to Flask-Mail, if the shop has loaded it."""
        if self._signal is None:
            self._signal = getattr(sys.modules.get(FLASK), "email_dispatched", None)
            if self._signal is not None:
                self._signal.connect(self._note)

    def _note(self, app: "Flask", message: SentMail) -> None:
        self._dispatched.append(message)

    def mark(self) -> None:
        """Record the time of the first action."""
        self._connect()
        if self._early is None:
            self._early = len(self.texts())

    @property
    def early(self) -> int:
        """The number of mails before the first action."""
        return self._early or 0

    def texts(self) -> list[str]:
        """Return the mails so far: receivers, subject and text."""
        outbox: Iterable[SentMail] = getattr(sys.modules.get(DJANGO), "outbox", ())
        return [
            f"{', '.join(each.recipients() if callable(each.recipients) else each.recipients)}: "
            f"{each.subject}\n{each.body or getattr(each, 'html', '')}"
            for each in (*outbox, *self._dispatched)
        ]

    def sent(self) -> Mails:
        """Return the mails so far, to compare them."""
        return Mails(list(map(normalized, self.texts())), self.early)

    def close(self) -> None:
        """Stop collecting."""
        if self._signal is not None:
            self._signal.disconnect(self._note)


class Showing(NamedTuple):
    """The pages and mails of an idle shop."""

    pages: Sequence[ShownPage] = ()
    mails: Mails = Mails((), 0)


NOTHING_SHOWN: Final = Showing()

Get = Callable[[str], str | None]
"""Requests a page of the shop as a customer; returns None if the page does not exist.

Raises:
    PageFailed: the shop answers with an error.
"""


def pages_of(project: Project, get: Get, paths: Iterable[str], *, is_first: bool) -> list[ShownPage]:
    """Return the return pages and those at ``paths``; in the first run, each is requested twice."""
    orders = [each for each in project.epoch.store.orders_newest_first() if not each.is_refund][::-1]
    truths = truths_of(project)
    asked = [
        (order, url)
        for order in orders
        for url in (*_return_urls(project, order), *(path.replace(ORDER_ID, order.id) for path in paths))
    ]
    pages = []
    for order, url in asked[:PAGES_MAX]:
        empty = ShownPage(urlsplit(url).path.replace(order.id, "…"), _is_paid(truths, order), None)
        pages.append(_filled(empty, get, url, twice=is_first))
    return [page for page in pages if page is not None]


def _filled(page: ShownPage, get: Get, url: str, *, twice: bool) -> ShownPage | None:
    """Request a page once or twice; return None if it does not exist."""
    try:
        text = _requested(get, url)
        is_stable = not twice or _requested(get, url) == text
    except PageFailed as failed:
        return page._replace(error=str(failed))
    if text is None:
        return None
    return page._replace(text=text if is_stable else None)


def visited(project: Project, browser: Browser, order: Order, tabs: int) -> list[ShownPage]:
    """Let a customer return to the shop in some tabs; return the pages, unpaid if nobody has paid yet."""
    if not order.return_url:
        return []
    truths = truths_of(project).values()
    has_paid = any(truth.received or truth.authorized for truth in truths)
    path = (urlsplit(order.return_url).path or "/").replace(order.id, "…")
    page = ShownPage(path, None if has_paid else False, None)
    try:
        answers = browser.returns(order.id, tabs)
        return [_returned(page, answer.status_code, answer.text) for answer in answers]
    except Exception as error:  # in production, the customer would see an error page
        return [page._replace(error=_in_short(error))]


def _returned(page: ShownPage, status: int, text: str) -> ShownPage:
    """Fill a page with a response; a busy shop is no error."""
    if status >= FAILED and status != BUSY:
        return page._replace(error=f"status {status}")
    return page._replace(text=normalized(text) if status == HTTPStatus.OK else None)


def visited_wrong(pages: Sequence[ShownPage], before: Showing, *, may_fail: bool) -> Iterator[BookProblem]:
    """Find pages that fail when the customer returns, or that thank a customer who has not paid."""
    paid = _shown_to_payers(before)
    for page in pages:
        if page.error and not may_fail:
            yield BookProblem(
                "shown-error", f"the page {page.path} fails when the customer returns: {page.error}"
            )
        if page.is_paid is False and (page.path, page.text) in paid:
            yield BookProblem(
                "shown-paid",
                f"the page {page.path} says the same to a customer who returns without having paid: "
                f"{_cut(page.text)}",
            )


def page_in(browser: Browser, url: str) -> str | None:
    """Request a page of a shop in this process.

    Raises:
        PageFailed: the shop answers with an error, or its exception reaches the server.
    """
    try:
        return browser.look(url)
    except ErrorPage as page:
        raise PageFailed(str(page)) from page
    except Exception as error:
        raise PageFailed(_in_short(error)) from error


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _requested(get: Get, url: str) -> str | None:
    text = get(url)
    return None if text is None else normalized(text)


def _return_urls(project: Project, order: Order) -> Iterator[str]:
    if order.return_url:
        parts = urlsplit(order.return_url)
        query = {**dict(parse_qsl(parts.query)), "order_id": order.id, "project_id": project.project_id}
        yield urlunsplit(parts._replace(query=urlencode(query)))


def _is_paid(truths: Mapping[str, Truth], order: Order) -> bool | None:
    truth = truths[order.id]
    if truth.received == 0 and truth.authorized == 0:
        return False
    return True if truth.capturable or truth.received - truth.refunded >= order.amount_cents else None


def shown_wrong(
    now: Showing, before: Showing, changes: Sequence[ChangedStep], *, is_same_money: bool
) -> Iterator[BookProblem]:
    """Find pages and mails that must differ between payers and others, or must equal the unchanged test's.

    They must equal those if the changes are harmless, and the same was paid, captured and refunded.
    """
    yield from _same_to_all(now, before)
    yield from _failing(now, before)
    if is_same_money and changes and all(changed.change.traits & SAME_END for changed in changes):
        yield from _differing(now, before)


def _same_to_all(now: Showing, before: Showing) -> Iterator[BookProblem]:
    paid = _shown_to_payers(before) - _shown_to_payers(now)  # less an earlier order
    for page in now.pages:
        if page.is_paid is False and (page.path, page.text) in paid:
            yield BookProblem(
                "shown-paid",
                f"the page {page.path} says the same to a customer who has not paid: {_cut(page.text)}",
            )
    if _nobody_paid(now, before) and before.mails.later and not before.mails.later - now.mails.later:
        mail = _cut(next(iter(before.mails.later)))
        yield BookProblem(
            "shown-paid", f"a customer who has not paid gets the same emails as one who has: {mail}"
        )


def _failing(now: Showing, before: Showing) -> Iterator[BookProblem]:
    """Find pages that fail, and did not fail in the unchanged test."""
    known = {page.path for page in before.pages if not page.error}
    for page in now.pages:
        if page.error and page.path in known:
            yield BookProblem("shown-error", f"the page {page.path} fails: {page.error}")


def _shown_to_payers(showing: Showing) -> set[tuple[str, str]]:
    return {(page.path, page.text) for page in showing.pages if page.is_paid and page.text}


def _nobody_paid(now: Showing, before: Showing) -> bool:
    """Whether no customer paid in this run, although one paid in the unchanged test."""
    return {page.is_paid for page in now.pages} == {False} and any(page.is_paid for page in before.pages)


def _differing(now: Showing, before: Showing) -> Iterator[BookProblem]:
    if [page.path for page in now.pages] == [page.path for page in before.pages]:
        for page, known in zip(now.pages, before.pages, strict=True):
            if known.text is not None and not page.error and page.text != known.text:
                yield BookProblem(
                    "shown-differently",
                    f"the page {page.path} then says {_cut(page.text)} instead of {_cut(known.text)}",
                )
    mails, known_mails = Counter(now.mails.texts), Counter(before.mails.texts)
    for mail, count in (mails - known_mails).items():
        yield BookProblem(
            "mailed-differently", f"the customer gets {count} mails more than without that: {_cut(mail)}"
        )
    for mail in known_mails - mails:
        yield BookProblem("mailed-differently", f"the customer does not get the mail {_cut(mail)}")


def _cut(text: str | None) -> str:
    shown = text or "nothing"
    return repr(shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…")
