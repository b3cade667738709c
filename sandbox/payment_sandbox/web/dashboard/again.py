"""An order once more with one thing otherwise, and two orders beside each other."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.operations.by_hand import create_by_hand
from payment_sandbox.operations.find_orders import OrderFilter, find_orders
from payment_sandbox.operations.folding import folded
from payment_sandbox.operations.history import Happening
from payment_sandbox.operations.in_words import describe_history
from payment_sandbox.operations.what_if import replay_with, variations
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.journal import JournalEntry
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import OfferedIn, VariationOffer
from payment_sandbox.scenarios.variations import offered
from payment_sandbox.web.answers.order import OrderForm
from payment_sandbox.web.answers.overview import order_row
from payment_sandbox.web.answers.records import OrderRow
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.copies import created_with, creation_of
from payment_sandbox.web.dashboard.frame import ORDER, POSTED, VIEW, dashboard, enter, show, url
from payment_sandbox.web.dashboard.notices import Notice, with_notice
from payment_sandbox.web.dashboard.verdict import OrderVerdict, verdict
from payment_sandbox.web.routes import route

ORDER_FORM: Final = OrderForm()
STEPS_SHOWN: Final = 500
SHORT_ID: Final = Pattern("[0-9a-f]{8}…")  # two orders always differ in their ids
CREATIONS: Final = ("creates the order", "creates a test order")


class Side(NamedTuple):
    """A step of one of two orders, as words."""

    between: str
    label: str
    look: str


class ComparedRow(NamedTuple):
    """The same place in the history of two orders; None where one of them has nothing."""

    left: Side | None
    right: Side | None

    @property
    def is_apart(self) -> bool:
        """Whether the orders differ here."""
        return self.left != self.right


class Conclusion(NamedTuple):
    """What came of an order that was made again; ``look`` is ``ok``, ``failed`` or empty."""

    sentence: str
    look: str = ""


@route(dashboard, "POST", f"{ORDER}again/", **POSTED)
def post_again(call: Call, project_id: str, order_id: str) -> Response:
    """Make an order once more, otherwise, and show both beside each other."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    body = created_with(project, order, creation_of(project, order))
    if body is None:
        raise Unknown("nobody knows any more what this order was created with")
    name = call.request.form.get("again", "")
    made = replay_with(
        project, order, name, body, lambda changed: made_by_hand(project, changed, order.client)
    )
    offer = offered(OfferedIn.WHAT_IF)[name]
    notice = Notice(f"The same order again, {offer.label}. {offer.sentence}")
    return redirect(with_notice(project, url(project, f"orders/{order.id}/beside/{made.id}/"), notice))


@route(dashboard, "GET", f"{ORDER}beside/<other_id>/", **VIEW)
def get_orders_beside(call: Call, project_id: str, order_id: str, other_id: str) -> Response:
    """Show two orders, line by line."""
    project = enter(call, project_id)
    orders = [project.find_order(each) for each in (order_id, other_id)]
    sides = [(order_row(project, order), verdict(project, order)) for order in orders]
    left, right = (_steps(describe_history(project.epoch, row["id"], known.findings)) for row, known in sides)
    return show(
        call,
        "beside",
        project,
        "orders",
        sides=sides,
        looks=[_look(known) for _, known in sides],
        conclusion=_conclusion(*sides),
        compared=list(_compared(left, right)),
    )


JudgedOrder = tuple[OrderRow, OrderVerdict]


def _look(known: OrderVerdict) -> str:
    return "failed" if known.mistakes else "ok" if known.good else ""


def _conclusion(before: JudgedOrder, after: JudgedOrder) -> Conclusion:
    """What became of it the second time: the same mistake, another one, none, or nothing to judge yet."""
    (before_row, earlier), (after_row, later) = before, after
    if later.mistakes:
        rules = {kind.first.rule for kind in earlier.mistakes}
        newest = next((kind for kind in later.mistakes if kind.first.rule in rules), later.mistakes[0])
        again = "Failed again" if newest.first.rule in rules else "Failed this time"
        return Conclusion(f"{again}: {_inside(newest.first.problem)}.", "failed")
    if not later.good:
        return Conclusion(f"Undecided: {_undecided(after_row)}")
    if earlier.mistakes:
        return Conclusion("Fixed: your shop did the right thing this time.", "ok")
    praise = "made no mistake with either" if earlier.good else "did the right thing this time"
    return Conclusion(f"{_difference(before_row, after_row)}Your shop {praise}.", "ok")


def _inside(problem: str) -> str:
    """A problem as a part of a sentence; names in it stay as they are."""
    first, _, rest = problem.partition(" ")
    return f"{first.lower()} {rest}" if first in ("Your", "The", "There") else problem


def _undecided(row: OrderRow) -> str:
    """Why nobody can say yet whether the shop did right."""
    sent = row["webhooks"]
    if sent["lost"]:
        return "a fault lost the webhooks. Your shop has a day to read the order: move the clock to see."
    if sent["pending"] or sent["failed"]:
        return "not all webhooks have arrived."
    return "your shop has made no mistake so far, and does not know the status of the order."


def _difference(before: OrderRow, after: OrderRow) -> str:
    """In what the two orders ended differently; empty if they ended alike."""
    if before["status"] == after["status"]:
        return ""
    return f"The first order is {before['status']}, the second one {after['status']}. "


def made_by_hand(project: Project, body: Mapping[str, Any], client: Mapping[str, Any]) -> Order:
    """Create an order as a merchant does in the back office."""
    return create_by_hand(project, {**read(ORDER_FORM, body), "client": client}, body)


def ways_again(project: Project, order: Order, created: JournalEntry | None) -> dict[str, Any]:
    """What the page of an order offers: how it can be played again, and what it can be compared with."""
    offers: list[VariationOffer] = []
    if created_with(project, order, created) is not None:
        webhook_url = order.webhook_url or project.settings.webhook_url or project.settings.forward_to
        offers = variations(order, has_webhook_url=webhook_url is not None)
    older = next(find_orders(project.epoch, OrderFilter(before=order.id)), None)
    return {"variations": offers, "before_this": older.id if older is not None else None}


def _steps(happenings: Sequence[Happening]) -> list[Side]:
    shown = folded(happenings)
    begun = {happening.id for happening in shown if happening.label.partition(" · ")[0] in CREATIONS}
    steps = (step for step in shown if step.id not in begun and step.cause not in begun)
    return list(islice(map(_side, steps), STEPS_SHOWN))


def _side(happening: Happening) -> Side:
    between = f"{happening.sender} → {happening.receiver}" if happening.sender != happening.receiver else ""
    return Side(
        between,
        SHORT_ID.sub("…", happening.label),
        "lost" if happening.lost else "bad" if happening.failed else "",
    )


def _compared(left: list[Side], right: list[Side]) -> Iterator[ComparedRow]:
    """The steps of both, with equal ones beside each other."""
    for _, *ends in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        begin, end, other_begin, other_end = ends
        yield from (ComparedRow(*pair) for pair in zip_longest(left[begin:end], right[other_begin:other_end]))
