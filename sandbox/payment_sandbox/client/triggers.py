"""Orders in a state that a shop wants to see, made with the calls that lead there."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.web.answers.records import OrderOverview

LIVE: Final = "live"
WEBHOOKS_SECONDS: Final = 6.0
EXPIRIES: Final = ("expiry", "page-expiry")
CUSTOMER: Final = {
    "first_name": "Noor",
    "last_name": "Visser",
    "address": "Kade 1, 1011 AB Amsterdam",
    "country": "NL",
    "locale": "nl",
}
LINES: Final = (
    {
        "merchant_order_line_id": "line-1",
        "name": "Socks",
        "amount": 1000,
        "quantity": 1,
        "vat_percentage": 2100,
    },
    {
        "merchant_order_line_id": "line-2",
        "name": "Postage",
        "amount": 295,
        "quantity": 1,
        "vat_percentage": 2100,
    },
)

Json = dict[str, Any]
Step = Callable[[SandboxClient, str], object]
"""One call for an order."""


class TriggerImpossible(Exception):
    """The trigger cannot be played here; the message says why, and what to do."""


class TriggerRecipe(NamedTuple):
    """A state, the order to begin with, and the steps that lead there."""

    about: str
    order: Mapping[str, Any]
    steps: tuple[Step, ...] = ()
    mode: str | None = None


def _acting(actor: Actor, action: ActionName, **how: Any) -> Step:
    def step(sandbox: SandboxClient, order_id: str) -> None:
        sandbox.act(order_id, actor, action, **how)

    return step


def _part(order: Mapping[str, Any]) -> int:
    return max(1, int(order["amount"]) // 2)


def _partly_credited(sandbox: SandboxClient, order_id: str) -> None:
    sandbox.act(order_id, "bank", "credit", amount=_part(sandbox.overview(order_id)["order"]))


def _captured(sandbox: SandboxClient, order_id: str) -> None:
    attempt = sandbox.overview(order_id)["order"]["transactions"][-1]["id"]
    sandbox.call("POST", f"/v1/orders/{order_id}/transactions/{attempt}/captures/")


def _refunded(sandbox: SandboxClient, order_id: str) -> None:
    sandbox.call("POST", f"/v1/orders/{order_id}/refunds/", {})


def _partly_refunded(sandbox: SandboxClient, order_id: str) -> None:
    amount = _part(sandbox.overview(order_id)["order"])
    sandbox.call("POST", f"/v1/orders/{order_id}/refunds/", {"amount": amount})


def _deleted(sandbox: SandboxClient, order_id: str) -> None:
    sandbox.call("DELETE", f"/v1/orders/{order_id}/")


def _expired(sandbox: SandboxClient, order_id: str) -> None:
    """Move the clock to the time at which the order expires, and no further."""
    due = [item for item in sandbox.overview(order_id)["agenda"] if item["kind"] in EXPIRIES]
    if not due:
        raise TriggerImpossible(f"order {order_id} does not expire any more")
    sandbox.clock.advance(to=max(due, key=lambda item: str(item["at"]))["at"])


def _by(payment_method: str, **more: Any) -> Json:
    return {"transactions": [{"payment_method": payment_method, **more}]}


def _later(email: str) -> Json:
    customer = {**CUSTOMER, "email_address": f"{email}@shop.example"}
    return {**_by("pay-later-a"), "customer": customer, "order_lines": list(LINES)}


CARD: Final = _by("credit-card")
PAYS: Final = _acting("customer", "pay")
CREDITS: Final = _acting("bank", "credit")
TRIGGERS: Final[Mapping[str, TriggerRecipe]] = {
    "hosted": TriggerRecipe("an order whose customer chooses how to pay", {}),
    "new": TriggerRecipe("a card order that nobody has paid yet", CARD),
    "paid": TriggerRecipe("a paid order", CARD, (PAYS,)),
    "authorized": TriggerRecipe(
        "a card payment to be captured by hand within seven days",
        _by("credit-card", capture_mode="manual", expiration_period="P7D"),
        (PAYS,),
    ),
    "captured": TriggerRecipe(
        "an authorized card payment that was captured",
        _by("credit-card", capture_mode="manual", expiration_period="P7D"),
        (PAYS, _captured),
    ),
    "declined": TriggerRecipe(
        "a card that the bank declines", CARD, (_acting("customer", "fail", reason="Do not honour"),)
    ),
    "cancelled": TriggerRecipe("a customer who cancels", CARD, (_acting("customer", "cancel"),)),
    "withdrawn": TriggerRecipe("an order that the shop cancels", CARD, (_deleted,)),
    "expired": TriggerRecipe(
        "an order that nobody pays in time; moves the clock by a minute",
        _by("credit-card", expiration_period="PT1M"),
        (_expired,),
    ),
    "refund": TriggerRecipe("a paid order that is refunded", CARD, (PAYS, _refunded)),
    "refund-part": TriggerRecipe("a paid order of which half is refunded", CARD, (PAYS, _partly_refunded)),
    "transfer": TriggerRecipe("a bank transfer that arrives", _by("bank-transfer"), (CREDITS,), LIVE),
    "transfer-part": TriggerRecipe(
        "a bank transfer of half the amount", _by("bank-transfer"), (_partly_credited,), LIVE
    ),
    "transfer-late": TriggerRecipe(
        "a bank transfer that arrives after the order has expired; moves the clock by a minute",
        _by("bank-transfer", expiration_period="PT1M"),
        (_expired, CREDITS),
        LIVE,
    ),
    "screening-declined": TriggerRecipe("a customer whom the screening declines", _later("declined")),
    "screening-slow": TriggerRecipe("a customer whose screening takes time", _later("needs-time")),
}


def trigger(sandbox: SandboxClient, name: str, order_id: str | None = None, **order: Any) -> OrderOverview:
    """Make an order in this state, or bring one to it; return its overview.

    ``order`` are fields of the new order, such as ``amount``.

    Raises:
        TriggerImpossible: the project's mode or the order does not allow it.
        SandboxError: a call was refused.
        KeyError: there is no such trigger.
    """
    steps = TRIGGERS[name]
    settings = sandbox.project()["settings"]
    if steps.mode is not None and settings["mode"] != steps.mode:
        raise TriggerImpossible(
            f"{name} needs mode {steps.mode}, because in test mode no bank transfer arrives: "
            f"payment-sandbox settings mode={steps.mode}"
        )
    if order_id is None:
        body = {"currency": "EUR", "amount": 1295, "description": f"trigger {name}", **steps.order, **order}
        order_id = str(sandbox.call("POST", "/v1/orders/", body)["id"])
    elif not steps.steps:
        raise TriggerImpossible(f"{name} makes a new order; there is nothing to do with an existing one")
    for step in steps.steps:
        step(sandbox, order_id)
    with suppress(SandboxError):  # webhooks that take longer than that are shown as pending
        sandbox.wait(idle=True, timeout_seconds=WEBHOOKS_SECONDS)
    return sandbox.overview(order_id)
