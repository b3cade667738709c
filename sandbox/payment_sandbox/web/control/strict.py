"""Refuses what a control call would not look at: a query it does not know, a body it does not take."""

from typing import Final

from flask import request

from payment_sandbox.forms import Choice, Form, Text, read
from payment_sandbox.orders.deliveries import DeliveryState
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.web.bodies import json_body


class NothingForm(Form):
    """No keys at all."""


class WebhooksForm(Form):
    """Which webhooks to list."""

    order_id = Text()
    state = Choice([state.value for state in DeliveryState])


class JournalForm(Form):
    """Which requests to list, or to count."""

    method = Text()
    path = Text()
    status = Text(pattern="[0-9]{1,9}", expected="a number such as 201")
    order_id = Text()
    count = Choice(("1",))


class WaitForm(Form):
    """What to wait for, and how long."""

    order_id = Text()
    status = Choice([status.value for status in OrderStatus])
    webhook = Text()
    idle = Choice(("1",))
    timeout = Text(pattern=r"[0-9]{1,3}(\.[0-9]+)?", expected="a number of seconds, at most 60")


NOTHING: Final = NothingForm()
QUERIES: Final[dict[str, Form]] = {
    "control.get_webhooks": WebhooksForm(),
    "control.get_journal": JournalForm(),
    "watching.get_wait": WaitForm(),
}
BODILESS: Final = frozenset(
    {
        "control.post_reset",
        "control.post_redelivery",
        "control.delete_project",
        "control.delete_scenario",
        "control.delete_faults",
    }
)


def refuse_unknown() -> None:
    """Refuse unknown query keys, and bodies where none is taken.

    Raises:
        Invalid: lists all of them, with the nearest known words.
    """
    read(QUERIES.get(request.endpoint or "", NOTHING), request.args.to_dict())
    twice = [key for key, values in request.args.lists() if len(values) > 1]
    if twice:
        raise Invalid([Violation(key, "is given more than once") for key in twice])
    if request.endpoint in BODILESS:
        read(NOTHING, json_body(empty_is={}))
