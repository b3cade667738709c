"""The forms of the control API."""

from payment_sandbox.forms import Cents, Choice, Form, PeriodText, Text
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import LOST, DeliveryState


class ScanForm(Form):
    """The input of a payer after a scan."""

    amount = Cents(about="The amount that the payer enters, in cents, if they may change it.")
    issuer_id = Text(about="The payer's bank.")


class PruneForm(Form):
    """The projects to delete."""

    unused_for = PeriodText(required=True, about="Projects idle for this long in real time, such as P7D.")


def _limit() -> Text:
    return Text(
        pattern="[1-9][0-9]{0,4}",
        expected="a number from 1 to 99999",
        about="Return at most this many of the newest items.",
    )


def _summary_choice() -> Choice:
    return Choice(("1",), about="Omit headers and bodies.")


class PageQuery(Form):
    """A page of a long list."""

    limit = _limit()
    before = Text(about="Only items before this id; for the next page.")


class OrdersQuery(PageQuery):
    """Filters for the list of orders."""

    status = Choice([status.value for status in OrderStatus], about="Only orders with this status.")
    method = Text(about="Only orders with an attempt by this payment method.")
    text = Text(
        about="Only orders with this text in an id, number, description, method, name or email address."
    )


class TimelineQuery(Form):
    """Filters for the timeline."""

    order_id = Text(about="Only entries about this order and its refunds.")
    limit = _limit()


class ReportQuery(Form):
    """Filters for a report."""

    order_id = Text(about="Only this order and its refunds; all orders by default.")


class ActionsQuery(PageQuery):
    """Filters for the list of actions."""

    order_id = Text(about="Only actions on this order.")


class WebhooksQuery(PageQuery):
    """Filters for the list of webhooks."""

    order_id = Text(about="Only webhooks of this order.")
    state = Choice(
        [*(state.value for state in DeliveryState), LOST],
        about="Only webhooks in this state; lost ones also count as delivered; only this lists unsent ones.",
    )
    summary = _summary_choice()


class JournalQuery(PageQuery):
    """Filters for the list or count of requests."""

    method = Text(about="Only requests with this HTTP method.")
    path = Text(about="Only requests to this path; a trailing slash makes no difference.")
    status = Text(
        pattern="[0-9]{1,9}",
        expected="a number such as 201",
        about="Only requests answered with this status.",
    )
    order_id = Text(about="Only requests about this order.")
    count = Choice(("1",), about="Return only the number of requests.")
    summary = _summary_choice()


class EventsQuery(Form):
    """The start of an event stream."""

    after = Text(
        pattern="[0-9]{1,18}",
        expected="the number of an event",
        about="Also stream the events after this number, as with the header Last-Event-ID.",
    )


class WaitQuery(Form):
    """The conditions to wait for, and the timeout."""

    order_id = Text(about="The id of the order to wait for; requires status.")
    status = Choice([status.value for status in OrderStatus], about="The status to wait for.")
    webhook = Text(about="The id of an order; wait for an answer to one of its webhooks.")
    idle = Choice(("1",), about="Wait until nothing is due and no webhook is in flight.")
    timeout = Text(
        pattern=r"[0-9]{1,3}(\.[0-9]+)?",
        expected="a number of seconds, at most 60",
        about="The timeout, in real seconds; 10 by default, 60 at most.",
    )


class StateForm(Form):
    """A snapshot, as returned by ``GET /control/state/``."""
