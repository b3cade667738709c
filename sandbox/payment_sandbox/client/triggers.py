"""Orders in a state that a shop wants to see, made with the calls that lead there."""

from contextlib import suppress
from typing import Any, Final, cast

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.operations.recipes import CLOCK, RECIPES, RecipeStep, part_of
from payment_sandbox.operations.what_if import UNPAID
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.projects.journal import MERCHANT
from payment_sandbox.web.answers.records import OrderOverview

WEBHOOKS_SECONDS: Final = 6.0


class TriggerImpossible(Exception):
    """The trigger cannot be played here; the message says why, and what to do."""


def _play(sandbox: SandboxClient, order_id: str, step: RecipeStep) -> None:
    """Take a step with the call that leads there; the merchant's are those of the merchant API."""
    known = sandbox.overview(order_id)
    order = known["order"]
    how: dict[str, Any] = {"amount": part_of(order["amount"])} if step.is_part else {}
    if step.actor == CLOCK:
        due = [item["at"] for item in known["agenda"] if item["kind"] in UNPAID]
        if not due:
            raise TriggerImpossible(f"order {order_id} does not expire any more")
        sandbox.clock.advance(to=max(due))
    elif step.actor != MERCHANT:
        how |= {"reason": step.reason} if step.reason is not None else {}
        sandbox.act(order_id, cast(Actor, step.actor), cast(ActionName, step.action), **how)
    elif step.action == "capture":
        sandbox.call(
            "POST", f"/v1/orders/{order_id}/transactions/{order['transactions'][-1]['id']}/captures/"
        )
    elif step.action == "refund":
        sandbox.call("POST", f"/v1/orders/{order_id}/refunds/", how)
    else:
        sandbox.call("DELETE", f"/v1/orders/{order_id}/")


def trigger(sandbox: SandboxClient, name: str, order_id: str | None = None, **order: Any) -> OrderOverview:
    """Make an order in this state, or bring one to it; return its overview.

    ``order`` are fields of the new order, such as ``amount``.

    Raises:
        TriggerImpossible: the project's mode or the order does not allow it.
        SandboxError: a call was refused.
        KeyError: there is no such trigger.
    """
    recipe = RECIPES[name]
    settings = sandbox.project()["settings"]
    if recipe.mode is not None and settings["mode"] != recipe.mode:
        raise TriggerImpossible(
            f"{name} needs mode {recipe.mode}, because in test mode no bank transfer arrives: "
            f"payment-sandbox settings mode={recipe.mode}"
        )
    if order_id is None:
        order_id = str(sandbox.call("POST", "/v1/orders/", recipe.creation(name, **order))["id"])
    elif not recipe.steps:
        raise TriggerImpossible(f"{name} makes a new order; there is nothing to do with an existing one")
    for step in recipe.steps:
        _play(sandbox, order_id, step)
    with suppress(SandboxError):  # webhooks that take longer than that are shown as pending
        sandbox.wait(idle=True, timeout_seconds=WEBHOOKS_SECONDS)
    return sandbox.overview(order_id)
