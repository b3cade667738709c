"""Creates orders in a given state, through the usual API calls."""

from contextlib import suppress
from typing import Any, Final, cast

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.plain import path_of
from payment_sandbox.operations.recipes import CLOCK_ACTOR, EXPIRIES, RECIPES, RecipeStep, half_of
from payment_sandbox.orders.actions import CUSTOMER, ActionName, Actor
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.web.answers.records import OrderOverview

WEBHOOKS_SECONDS: Final = 6.0
PAID_STATUSES: Final = ("completed", "accepted")


class TriggerImpossible(Exception):
    """The trigger cannot run; the message states the reason and the remedy."""


def _run_step(sandbox: SandboxClient, order_id: str, step: RecipeStep) -> None:
    """Run one step of a recipe; the merchant's steps go through the merchant API."""
    known = sandbox.overview(order_id)
    order = known["order"]
    details: dict[str, Any] = {"amount": half_of(order["amount"])} if step.is_part else {}
    if step.actor == CLOCK_ACTOR:
        due = [item["at"] for item in known["agenda"] if item["kind"] in EXPIRIES]
        if not due:
            raise TriggerImpossible(f"order {order_id} can no longer expire")
        sandbox.clock.advance(to=max(due))
    elif step.actor != MERCHANT_ACTOR:
        details |= {"reason": step.reason} if step.reason is not None else {}
        sandbox.act(order_id, cast(Actor, step.actor), cast(ActionName, step.action), **details)
    elif step.action == "capture":
        sandbox.call(
            "POST",
            path_of("/v1/orders/{}/transactions/{}/captures/", order_id, order["transactions"][-1]["id"]),
        )
    elif step.action == "refund":
        sandbox.call("POST", path_of("/v1/orders/{}/refunds/", order_id), details)
    else:
        sandbox.call("DELETE", path_of("/v1/orders/{}/", order_id))


def _remaining_steps(known: OrderOverview, steps: tuple[RecipeStep, ...]) -> tuple[RecipeStep, ...]:
    """Return the steps, minus the first payment if the order is already paid and other steps follow."""
    is_paid = known["order"]["status"] in PAID_STATUSES and "pay" not in known["actions"][CUSTOMER]
    return steps[1:] if is_paid and len(steps) > 1 and steps[0].action == "pay" else steps


def trigger(sandbox: SandboxClient, name: str, order_id: str | None = None, /, **order: Any) -> OrderOverview:
    """Create an order in a state, or bring an existing order to the state; return its overview.

    ``order`` sets fields of the new order, such as ``amount``.

    Raises:
        TriggerImpossible: the project's mode or the order does not allow the state.
        SandboxError: a call was refused.
        KeyError: the trigger is unknown.
    """
    recipe = RECIPES[name]
    settings = sandbox.project()["settings"]
    if recipe.mode is not None and settings["mode"] != recipe.mode:
        raise TriggerImpossible(
            f"{name} needs mode {recipe.mode}, because in test mode no bank transfer arrives: "
            f"payment-sandbox settings mode={recipe.mode}"
        )
    if order_id is None:
        body = recipe.creation(name, **order)
        order_id = str(sandbox.call("POST", "/v1/orders/", body)["id"])
        steps = recipe.steps
    elif not recipe.steps:
        raise TriggerImpossible(f"{name} creates a new order; it has no steps for an existing one")
    else:
        steps = _remaining_steps(sandbox.overview(order_id), recipe.steps)
    for step in steps:
        _run_step(sandbox, order_id, step)
    with suppress(SandboxError):  # slower webhooks are shown as pending
        sandbox.wait(idle=True, timeout_seconds=WEBHOOKS_SECONDS)
    return sandbox.overview(order_id)
