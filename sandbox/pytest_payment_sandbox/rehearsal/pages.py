"""The pages on which customers end, for shops without books: numbers, dates and tokens do not count."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import unescape
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from payment_sandbox.judge.books import BookProblem
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.projects.project import Project
from payment_sandbox.testing.shops.browser import Browser
from pytest_payment_sandbox.rehearsal.scenes import orders_of

PAGES_MAX: Final = 6  # pages read per run
TEXT_SHOWN_MAX: Final = 80  # characters of text quoted in a problem
_INVISIBLE: Final = re.compile(r"(?is)<(head|script|style|template|svg)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>")
_DATES: Final = re.compile(
    r"(?i)\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b(?=\W{0,3}\d)|(?<=\d)\s?[ap]m\b"
)
_TOKENS: Final = re.compile(r"[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*|[A-Za-z0-9+/=_-]{32,}")
_NUMBERS: Final = re.compile(r"#(?:[\s.,:/+-]*#)*")
EVENT_WORDS: Final = re.compile(
    rf"(?i)\b(?:callbacks?|events?|log|notifications?|webhooks?|{'|'.join(TransactionStatus)})\b"
)
"""The words of a page that lists what the service reported, rather than what became of a purchase."""


class ShownPage(NamedTuple):
    """A page of the shop; ``is_paid`` says whether its order is paid, or None if it shows no order."""

    path: str
    is_paid: bool | None
    text: str


def normalize(text: str) -> str:
    """Return the visible text of a page without numbers, dates and tokens."""
    visible = _DATES.sub("#", unescape(_INVISIBLE.sub(" ", text)))
    return " ".join(_NUMBERS.sub("#", _TOKENS.sub("#", visible)).split())


def _has_paid(order: Order) -> bool | None:
    """Whether an order is paid; None if it was authorized, or paid in part."""
    held = [each.authorization for each in order.transactions if each.authorization is not None]
    if order.received_cents >= order.amount_cents or any(each.is_used for each in held):
        return True
    return None if held or order.received_cents else False


def _return_url(project: Project, order: Order) -> str:
    parts = urlsplit(order.return_url or "")
    query = {**dict(parse_qsl(parts.query)), "order_id": order.id, "project_id": project.project_id}
    return urlunsplit(parts._replace(query=urlencode(query)))


def read_pages(browser: Browser | None, project: Project, opened_urls: Mapping[str, str]) -> list[ShownPage]:
    """Return the page to which the customer of each order returns, and the pages that the test has opened.

    ``opened_urls`` are those pages, each with the cookies of the test.
    """
    if browser is None:
        return []
    orders = [each for each in orders_of(project) if each.return_url]
    known = [_path(order) for order in orders]
    asked = [
        (_return_url(project, order), _path(order), _has_paid(order), None) for order in orders[:PAGES_MAX]
    ]
    opened = [each for each in opened_urls.items() if urlsplit(each[0]).path not in known][:PAGES_MAX]
    pages = [*asked, *((url, _TOKENS.sub("…", urlsplit(url).path), None, cookies) for url, cookies in opened)]
    shown = []
    for url, path, is_paid, cookies in pages:
        with suppress(Exception):  # in production, the customer gets an error page
            text = browser.peek(url, cookies)
            if text is not None:
                shown.append(ShownPage(path, is_paid, normalize(text)))
    return shown


def _path(order: Order) -> str:
    return urlsplit(order.return_url or "").path


def find_page_problems(
    pages: Sequence[ShownPage], before: Sequence[ShownPage], *, is_same: bool
) -> Iterator[BookProblem]:
    """Find pages that thank customers who have not paid, or that differ although the money ended the same."""
    thanks = _texts_for_payers(before) - _texts_for_payers(pages)  # without the page of another order
    for page in pages:
        if page.is_paid is False and (page.path, page.text) in thanks:
            shown = f"the page {page.path} shows the same text to a customer who has not paid"
            yield BookProblem("shown-paid", f"{shown}: {_shorten(page.text)}")
            return
    for page, usual in _pairs(pages, before) if is_same else ():
        if page.text != usual.text and not (_lists_events(page.text) or _lists_events(usual.text)):
            shown = f"the page {page.path} shows {_shorten(page.text)} instead of {_shorten(usual.text)}"
            yield BookProblem("shown-differently", shown)
            return


def _texts_for_payers(pages: Iterable[ShownPage]) -> set[tuple[str, str]]:
    return {(page.path, page.text) for page in pages if page.is_paid and page.text}


def _lists_events(text: str) -> bool:
    return len(EVENT_WORDS.findall(text)) > 1


def _pairs(pages: Iterable[ShownPage], before: Iterable[ShownPage]) -> Iterator[tuple[ShownPage, ShownPage]]:
    """Pair the pages of two runs by their path and whether they are paid, if each is the only one."""
    ones, others = ([page for page in each if page.is_paid is not False] for each in (pages, before))
    for page in ones:
        usual = [other for other in others if other.path == page.path]
        if len(usual) == 1 == sum(each.path == page.path for each in ones):
            yield page, usual[0]


def _shorten(text: str) -> str:
    visible = text or "nothing"
    return repr(visible if len(visible) <= TEXT_SHOWN_MAX else f"{visible[:TEXT_SHOWN_MAX]}…")
