"""What a run is judged by: the shop's books, the money, and the verdict."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.judge.books import BookEntry, BookProblem, compare
from payment_sandbox.projects.project import Project
from pytest_payment_sandbox.rehearsal.pages import ShownPage
from pytest_payment_sandbox.rehearsal.scenes import orders_of

Books = Callable[[], Iterable[Any]]
"""The value of the fixture ``payment_books``: a function that returns the entries."""
BOOKS_FIXTURE: Final = "payment_books"
TRACES_FIXTURE: Final = "payment_traces"


class Money(NamedTuple):
    """What the orders received and returned, and what the books say, in cents."""

    received: int = 0
    refunded: int = 0
    paid: int = 0  # in the books
    shipped: int = 0
    authorized: bool = False  # whether any of it was authorized first
    ordered: int = 0  # the sum of the amounts of paid orders
    orders: int = 0  # their number


class Verdict(NamedTuple):
    """The verdict on a run, and what the verdicts on the others compare."""

    problems: list[BookProblem]
    money: Money = Money()
    pages: Sequence[ShownPage] = ()
    efforts: tuple[int, ...] = ()
    creations: int = 0  # the shop's calls that created orders
    most_calls: int = 0
    end: datetime | None = None
    timeline: str = ""
    answers_no_webhook: bool = False


def read_books(books: Books | None) -> tuple[list[BookEntry], list[BookProblem]]:
    """Read the entries of the shop's books; a failed assertion in the fixture is a problem.

    Raises:
        TypeError: the fixture does not return entries.
        ValueError: an item is not a valid entry.
    """
    if books is None:
        return [], []
    try:
        entries = books()
        if not isinstance(entries, Iterable):
            raise TypeError(f"payment_books must return a list of entries, not {entries!r}")
        return [BookEntry.read(entry) for entry in entries], []
    except AssertionError as wrong:
        return [], [BookProblem("invariant", str(wrong).partition("\n")[0] or "an invariant is violated")]


def find_unpaid(project: Project, books: Books) -> list[BookProblem]:
    """Find purchases that are marked as paid without any payment, which is wrong at any time."""
    entries = read_books(books)[0]
    if not any(entry.paid for entry in entries):
        return []
    problems = compare(entries, orders_of(project))
    return [each for each in problems if each.kind == "paid-for-nothing"]
