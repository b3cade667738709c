"""The commands for orders: list, show, act, pay and trigger."""

import webbrowser
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from payment_sandbox.cli.options import NumberOption, fail, say, short_time
from payment_sandbox.cli.remote.assignments import read_assignments
from payment_sandbox.cli.remote.command_run import (
    NEWEST,
    CommandRun,
    Row,
    format_amount,
    format_table,
    remote,
)
from payment_sandbox.client import triggers
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.forms import base
from payment_sandbox.loading import lazy
from payment_sandbox.operations import recipes
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.web.answers.records import OrderOverview, OrderRow, Webhook

if TYPE_CHECKING:
    from payment_sandbox.web.answers import order_tables
else:
    order_tables = lazy("payment_sandbox.web.answers.order_tables")

CARD: Final = "credit-card"
ORDER_STATUS: Final = "order {id} is {status}"

NewestOrder = Annotated[str, "[ORDER]"]


@remote("orders --status completed --limit 5", call=SandboxClient.orders)
def orders(
    call: CommandRun, *, limit: Annotated[int, NumberOption(1, 99999), "Maximum number."] = 20, **filters: Any
) -> None:
    """List orders, newest first."""
    heads = ("id", "status", "amount", "method", "created", "webhooks delivered", "number")
    call.show(
        call.sandbox.orders(limit=limit, **filters),
        lambda shown: format_table([_order_row(item) for item in shown], heads, "no orders"),
    )


def _order_row(item: OrderRow) -> Row:
    counts, amount, created = item["webhooks"], format_amount(item), short_time(item["created"])
    total = counts["pending"] + counts["delivered"] + counts["lost"] + counts["failed"]
    delivered, number = f"{counts['delivered']} of {total}", item["merchant_order_id"]
    return item["id"], item["status"], amount, item["payment_method"], created, delivered, number


@remote("order last")
def order(call: CommandRun, order_id: NewestOrder = NEWEST) -> None:
    """Show an order: its state, possible actions, pending events and history."""
    overview, timeline = call.sandbox.overview(order_id), call.sandbox.timeline(order_id)

    def readable(shown: Any) -> str:
        rows = [
            (short_time(item["at"]), f"{item['from']} -> {item['to']}", item["label"], item["detail"])
            for item in shown["timeline"]
        ]
        history = format_table(rows, ("at", "who", "what", "detail"), "no history")
        return "\n".join([*_overview_lines(call, shown), "", history])

    call.show({**overview, "timeline": timeline}, readable)


def _overview_lines(call: CommandRun, overview: OrderOverview) -> Iterator[str]:
    """Yield the state of an order, its pages, possible actions, pending events, refunds and webhooks."""
    order = overview["order"]
    yield f"order {order['id']} is {order['status']}: {format_amount(order)}"
    for attempt in order["transactions"]:
        yield f"  {attempt['payment_method']} is {attempt['status']}"
    yield from (f"  page: {_page_url(page, call)}" for page in overview["pages"])
    for actor, actions in overview["actions"].items():
        names = [item["action"] if isinstance(item, dict) else item for item in cast("list[Any]", actions)]
        if names:
            yield f"  possible for the {actor}: {', '.join(names)}"
    yield from (f"  due {short_time(item['at'])}: {item['label']}" for item in overview["agenda"])
    for refund in overview["refunds"]:
        yield f"  refund {refund['id']} is {refund['status']}: {format_amount(refund)}"
    yield from _webhook_lines(call, overview["webhooks"])


def _webhook_lines(call: CommandRun, webhooks: list[Webhook]) -> Iterator[str]:
    for webhook in webhooks:
        state = "lost (fault)" if webhook["lost"] else webhook["state"]
        line = f"{state}, attempts: {len(webhook['attempts'])}"
        yield f"  webhook {webhook['status']} to {webhook['url']} is {line}"
    is_waiting = any(each["state"] == "pending" and not each["attempts"] for each in webhooks)
    forward_to = call.sandbox.project()["settings"].get("forward_to") if is_waiting else None
    if forward_to is not None:  # a validated address, safe to print
        yield (
            f"  webhooks wait for payment-sandbox listen --forward-to {forward_to}; "
            "payment-sandbox settings forward_to=null returns delivery to the sandbox"
        )


def _page_url(page: str, call: CommandRun) -> str:
    """Return the address of a page, with the scheme of the server."""
    return page if "://" in page else f"{call.sandbox.base_url.partition(':')[0]}://{page}"


@remote("act last customer pay --card challenge", call=SandboxClient.act)
def act(call: CommandRun, order_id: str, actor: Actor, action: str, **details: Any) -> None:
    """Act as customer, bank, screening or processor on an order, given as an id, a prefix or last."""
    call.show(call.sandbox.act(order_id, actor, cast(ActionName, action), **details), ORDER_STATUS)


@remote("pay last --card frictionless")
def pay(
    call: CommandRun,
    order_id: NewestOrder = NEWEST,
    *,
    payment_method: Annotated[str | None, "The payment method, for an order without a chosen method."] = None,
    card: Annotated[str | None, "The test card to pay with."] = None,
    issuer_id: Annotated[str | None, "The bank to pay with."] = None,
    open_: Annotated[bool, "Open the payment page in a browser instead."] = False,
) -> None:
    """Pay an order, by default the newest one, as its customer."""
    overview = call.sandbox.overview(order_id)
    possible, pages = overview["actions"]["customer"], overview["pages"]
    if open_ and not pages:
        fail("the order has no payment page, or the page has closed")
    if open_:
        address = _page_url(pages[-1], call)
        say(address)
        webbrowser.open(address)
        return
    if payment_method is not None or ("pay" not in possible and "choose" in possible):
        call.sandbox.act(order_id, "customer", "choose", payment_method=payment_method or CARD)
    call.show(call.sandbox.act(order_id, "customer", "pay", card=card, issuer_id=issuer_id), ORDER_STATUS)


@remote("scan QR_ID", call=SandboxClient.scan)
def scan(call: CommandRun, qr_id: str, **details: Any) -> None:
    """Scan a QR code as a payer, which creates an order."""
    call.show(call.sandbox.scan(qr_id, **details), ORDER_STATUS)


@remote("trigger paid amount=500")
def trigger(
    call: CommandRun,
    name: str | None = None,
    fields: Annotated[tuple[str, ...], "[FIELD=VALUE]..."] = (),
    *,
    order_id: Annotated[str | None, "Act on this order instead of a new one."] = None,
    list_: Annotated[bool, "List the available triggers."] = False,
) -> None:
    """Create an order in a state (see --list), with its webhooks.

    FIELD=VALUE sets fields of the order, and customer.locale=nl a part of one.
    """
    if list_ or name is None:
        about = {key: recipe.about for key, recipe in recipes.RECIPES.items()}
        call.show(about, lambda shown: format_table([*shown.items()], ("name", "makes"), ""))
        return
    if name not in recipes.RECIPES:
        advice = base.did_you_mean(base.nearest_word(name, list(recipes.RECIPES)))
        fail(f"there is no trigger {name!r}{advice or '; see trigger --list'}")
    body = read_assignments(fields, order_tables.OrderForm(), recipes.RECIPES[name].order)
    if order_id is not None and body:
        fail("fields apply to a new order only; remove the fields or --order")
    try:
        overview = triggers.trigger(call.sandbox, name, order_id, **body)
    except triggers.TriggerImpossible as impossible:
        fail(str(impossible))
    new_id = overview["order"]["id"]
    requests = call.sandbox.journal(method="POST", path="/v1/orders/", order_id=new_id) if body else []
    if requests and requests[0]["ignored"]:
        ignored = ", ".join(requests[0]["ignored"])
        say(f"payment-sandbox: ignored unknown order fields: {ignored}", to_stderr=True)
    call.show(overview, lambda answer: "\n".join(_overview_lines(call, answer)))
