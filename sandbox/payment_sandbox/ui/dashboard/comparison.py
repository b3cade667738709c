"""Variations of an order ("What if …"), and their comparison with the original."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from werkzeug.wrappers import Response

from payment_sandbox.forms import read
from payment_sandbox.judge import FindingGroup
from payment_sandbox.judge.history import TimelineEntry, fold
from payment_sandbox.judge.in_words import describe_history
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.operations.by_hand import create_by_hand
from payment_sandbox.operations.what_if import playable_variations, replay_with
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation import OfferedIn, VariationOffer
from payment_sandbox.scenarios.variation_catalogue import offers_in
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    ORDER_PATH,
    VIEW_FACTS,
    dashboard,
    enter,
    show,
    url,
)
from payment_sandbox.ui.dashboard.notices import Notice, with_notice
from payment_sandbox.web.answers.order_tables import OrderForm
from payment_sandbox.web.answers.overview import order_row
from payment_sandbox.web.answers.records import OrderRow
from payment_sandbox.web.answers.reproductions import creation_body, creation_of
from payment_sandbox.web.answers.verdict import OrderVerdict, verdict
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import route

ORDER_FORM: Final = OrderForm()
STEPS_SHOWN: Final = 500
SHORT_ID: Final = Pattern("[0-9a-f]{8}…")  # two orders always differ in their ids
CREATION_LABELS: Final = ("creates the order", "creates a test order")


class ComparedStep(NamedTuple):
    """A step of one of two orders, in words."""

    between: str
    label: str
    look: str


class ComparedRow(NamedTuple):
    """Corresponding steps of two orders; None for an order that lacks the step."""

    first: ComparedStep | None
    second: ComparedStep | None

    @property
    def differs(self) -> bool:
        """Whether the orders differ in this step."""
        return self.first != self.second


class Conclusion(NamedTuple):
    """The result of a repeated order; ``look`` is ``ok``, ``failed`` or empty."""

    sentence: str
    look: str = ""


@route(dashboard, "POST", f"{ORDER_PATH}again/", **FORM_FACTS)
def post_variation(call: Call, project_id: str, order_id: str) -> Response:
    """Repeat an order with a variation, and compare both."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    body = creation_body(project, order, creation_of(project, order))
    if body is None:
        raise Unknown(
            "the journal no longer contains the creation of this order, or the request contains secrets"
        )
    name = call.request.form.get("again", "")
    repeated = replay_with(
        project, order, name, body, lambda changed: create_manual_order(project, changed, order.client)
    )
    offer = offers_in(OfferedIn.WHAT_IF)[name]
    page = url(project, f"orders/{order.id}/beside/{repeated.id}/", again=name)
    return redirect(with_notice(project, page, Notice(offer.sentence)))


@route(dashboard, "GET", f"{ORDER_PATH}beside/<other_id>/", **VIEW_FACTS)
def get_comparison(call: Call, project_id: str, order_id: str, other_id: str) -> Response:
    """Compare two orders, step by step."""
    project = enter(call, project_id)
    orders = [project.find_order(each) for each in (order_id, other_id)]
    sides = [(order_row(project, order), verdict(project, order)) for order in orders]
    histories = (describe_history(project.epoch, row["id"], known.findings) for row, known in sides)
    first, second = map(_compared_steps, histories)
    return show(
        call,
        "comparison",
        project,
        "orders",
        sides=sides,
        offer=offers_in(OfferedIn.WHAT_IF).get(call.request.args.get("again", "")),
        test_code_url=url(project, f"orders/{other_id}/#test-code"),
        looks=[_look(known) for _, known in sides],
        conclusion=_conclusion(*sides),
        compared=list(_align_steps(first, second)),
    )


JudgedOrder = tuple[OrderRow, OrderVerdict]


def _look(order_verdict: OrderVerdict) -> str:
    return "failed" if order_verdict.mistakes else "ok" if order_verdict.praise else ""


def _conclusion(before: JudgedOrder, after: JudgedOrder) -> Conclusion:
    """Compare the second order with the first: the same mistake, a different one, none, or undecided."""
    (before_row, earlier), (after_row, later) = before, after
    if later.mistakes:
        rules = {group.first.rule for group in earlier.mistakes}
        newest = next((group for group in later.mistakes if group.first.rule in rules), later.mistakes[0])
        result = "Failed again" if newest.first.rule in rules else "Failed this time"
        return Conclusion(f"{result}: {_embed(newest.first.problem)}.", "failed")
    if not later.praise:
        return Conclusion(f"Undecided: {_undecided_reason(after_row)}")
    if earlier.mistakes:
        return Conclusion("Fixed: your shop made no mistake this time.", "ok")
    praise = "made no mistake with either" if earlier.praise else "made no mistake this time"
    return Conclusion(f"{_difference(before_row, after_row)}Your shop {praise}.", "ok")


def _embed(problem: str) -> str:
    """Format a problem as part of a sentence, in lower case unless it begins with a name."""
    first, _, rest = problem.partition(" ")
    return f"{first.lower()} {rest}" if first in ("Your", "The", "There") else problem


def _undecided_reason(row: OrderRow) -> str:
    sent = row["webhooks"]
    if sent["lost"]:
        return "a fault lost the webhooks. Your shop has a day to read the order: move the clock to see."
    if sent["pending"] or sent["failed"]:
        return "not all webhooks have arrived."
    return "your shop has made no mistake so far, and does not know the status of the order."


def _difference(before: OrderRow, after: OrderRow) -> str:
    if before["status"] == after["status"]:
        return ""
    return f"The first order is {before['status']}, the second one {after['status']}. "


def create_manual_order(project: Project, body: Mapping[str, Any], client: Mapping[str, Any]) -> Order:
    """Create an order as a merchant would in the back office."""
    return create_by_hand(project, {**read(ORDER_FORM, body), "client": client}, body)


def what_if_options(project: Project, order: Order, created: LoggedRequest | None) -> list[VariationOffer]:
    """Return the possible variations of an order."""
    if creation_body(project, order, created) is None:
        return []
    webhook_url = project.settings.webhook_url_of(order.webhook_url)
    return playable_variations(order, has_webhook_url=webhook_url is not None)


def failing_variation(
    mistakes: Iterable[FindingGroup], variations: Iterable[VariationOffer]
) -> VariationOffer | None:
    """Return the first variation that shows one of the mistakes again; none shows a mistake about refunds."""
    rules = {group.first.rule for group in mistakes if not group.first.is_about_refund}
    return next((variation for variation in variations if rules.intersection(variation.findings)), None)


def _compared_steps(timeline_entries: Sequence[TimelineEntry]) -> list[ComparedStep]:
    shown = list(fold(timeline_entries))
    begun = {
        timeline_entry.id
        for timeline_entry in shown
        if timeline_entry.label.partition(" · ")[0] in CREATION_LABELS
    }
    steps = (step for step in shown if step.id not in begun and step.cause not in begun)
    return list(islice(map(_compared_step, steps), STEPS_SHOWN))


def _compared_step(timeline_entry: TimelineEntry) -> ComparedStep:
    between = (
        f"{timeline_entry.sender} → {timeline_entry.receiver}"
        if timeline_entry.sender != timeline_entry.receiver
        else ""
    )
    return ComparedStep(
        between,
        SHORT_ID.sub("…", timeline_entry.label),
        "lost" if timeline_entry.lost else "bad" if timeline_entry.failed else "",
    )


def _align_steps(first: list[ComparedStep], second: list[ComparedStep]) -> Iterator[ComparedRow]:
    """Align the steps of two orders, with equal steps in the same row."""
    for _, *ends in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        begin, end, other_begin, other_end = ends
        pairs = zip_longest(first[begin:end], second[other_begin:other_end])
        yield from (ComparedRow(*pair) for pair in pairs)
