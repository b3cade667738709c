"""What an order shows, held against what the model lets it show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, ServiceAnswer, plain
from payment_sandbox_verify.checks import shown
from payment_sandbox_verify.model import read_order
from payment_sandbox_verify.model.records import Shop
from payment_sandbox_verify.walking.driver import Json

PRESENT: Final = ("completed", "reason", "order_url", "payment_url")
IN_DETAILS: Final = ("vault_token", "first_authorised_transaction_id")
Seen = Mapping[int, ServiceAnswer]
"""What was read of some orders, by their numbers."""


class Misread(NamedTuple):
    """A place of an order, and what is wrong there."""

    place: str
    text: str


def views_differ(expected: Json, seen: ServiceAnswer) -> Iterator[Misread]:
    """List what an order should show and does not."""
    for name in ("status", "amount", "currency", "description"):
        if name in expected and (value := plain(seen.at(name))) != expected[name]:
            yield Misread(name, f"{name} is {shown(value)}, not {shown(expected[name])}")
    yield from _presence_differs(expected, seen)
    yield from _attempts_differ(expected["transactions"], seen)
    yield from _details_differ(expected, seen)


def _presence_differs(expected: Json, seen: ServiceAnswer) -> Iterator[Misread]:
    for name in PRESENT:
        if name in expected and (plain(seen.at(name)) is not None) != expected[name]:
            yield Misread(name, f"{name} is {'missing' if expected[name] else 'there'}")
    flags = seen.at("flags")
    for name, is_there in expected["flags"].items() if isinstance(flags, list) else ():
        if (name in flags) != is_there:
            yield Misread("flags", f"the flag {name} is {'missing' if is_there else 'there'}")


def _attempts_differ(expected: Sequence[Json], seen: ServiceAnswer) -> Iterator[Misread]:
    attempts = seen.at("transactions")
    if not isinstance(attempts, list) or len(attempts) != len(expected):
        yield Misread("transactions", f"transactions is {shown(attempts)}, not {len(expected)} of them")
        return
    for index, wanted in enumerate(expected):
        for name, value in wanted.items():
            place = f"transactions[{index}].{name}"
            there: Any = plain(seen.at(place))
            if name in IN_DETAILS:
                there = plain(seen.at(f"transactions[{index}].payment_method_details.{name}"))
            if name in (*IN_DETAILS, *PRESENT):
                there = there is not None
            if there != value:
                yield Misread(place, f"{place} is {shown(there)}, not {shown(value)}")


def _details_differ(expected: Json, seen: ServiceAnswer) -> Iterator[Misread]:
    for name, value in expected.get("amount_details", {}).items():
        there = seen.at(f"amount_details.{name}")
        if there != value and there is not MISSING:
            yield Misread(f"amount_details.{name}", f"amount_details.{name} is {shown(there)}, not {value}")
    if "order_line_details" in expected and isinstance(seen.at("order_line_details"), list):
        mine, theirs = (
            _entries(each) for each in (expected["order_line_details"], seen.at("order_line_details"))
        )
        for entry in sorted(mine ^ theirs):
            words = "is missing" if entry in mine else "is there"
            yield Misread(f"order_line_details.{entry[2]}", f"{entry[3]} {entry[0]} {entry[2]} {words}")


def _entries(listed: Iterable[Json]) -> set[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return {tuple(str(entry.get(name)) for name in names) for entry in listed}


def misreadings(shop: Shop, seen: Seen) -> int:
    """How much is read otherwise than in a state of the model."""
    return sum(1 for number in seen for _ in views_differ(read_order(shop, number), seen[number]))


def name_of(place: str) -> str:
    """A place without the numbers of its items."""
    return "".join(part.partition("]")[2] if "]" in part else part for part in place.split("["))
