"""The commands for orders: list, show, act, pay and trigger."""

import webbrowser
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click

from payment_sandbox.cli.options import NumberOption, fail, say, short_time
from payment_sandbox.cli.remote.assignments import read_assignments
from payment_sandbox.cli.remote.command_run import (
    NEWEST,
    CommandRun,
    format_amount,
    format_table,
    remote,
)
from payment_sandbox.forms import base
from payment_sandbox.loading import lazy
from payment_sandbox.operations import recipes
from payment_sandbox.orders.actions import ACTIONS, ActionName, Actor

if TYPE_CHECKING:
    from payment_sandbox.client import triggers
    from payment_sandbox.web.answers import order_tables
    from payment_sandbox.web.answers.records import OrderOverview, OrderRow, Webhook
else:
    order_tables = lazy("payment_sandbox.web.answers.order_tables")
    triggers = lazy("payment_sandbox.client.triggers")

CARD: Final = "credit-card"

order_argument = click.argument("order", default=NEWEST)


@remote("orders", example="orders --status completed --limit 5")
@click.option("--status", help="Only orders with this status.")
@click.option("--method", help="Only orders with this payment method.")
@click.option("--text", help="Only orders with this text in an id, number, name or email address.")
@click.option("--limit", type=NumberOption(1, 99999), default=20, show_default=True, help="Maximum number.")
def orders(call: CommandRun, **filters: Any) -> None:
    """List orders, newest first."""

    def row(item: "OrderRow") -> tuple[object, ...]:
        counts = item["webhooks"]
        total = counts["pending"] + counts["delivered"] + counts["lost"] + counts["failed"]
        delivered = f"{counts['delivered']} of {total}"
        number = item["merchant_order_id"]
        created = short_time(item["created"])
        amount, method = format_amount(item), item["payment_method"]
        return item["id"], item["status"], amount, method, created, delivered, number

    heads = ("id", "status", "amount", "method", "created", "webhooks delivered", "number")
    call.table(call.sandbox.orders(**filters), lambda answer: map(row, answer), heads, "no orders")


@remote("order", example="order last")
@order_argument
def order(call: CommandRun, order: str) -> None:
    """Show an order: its state, possible actions, pending events and history."""
    order_id = call.order_id(order)
    overview = call.sandbox.overview(order_id)
    timeline = call.sandbox.timeline(order_id)

    def readable(shown: Any) -> str:
        rows = [
            (short_time(item["at"]), f"{item['from']} -> {item['to']}", item["label"], item["detail"])
            for item in shown["timeline"]
        ]
        history = format_table(rows, ("at", "who", "what", "detail"), "no history")
        return "\n".join([*_lines_with_webhooks(call, shown), "", history])

    call.show({**overview, "timeline": timeline}, readable)


def _lines_with_webhooks(call: CommandRun, overview: "OrderOverview") -> Iterator[str]:
    yield from overview_lines(overview, call.sandbox.base_url)
    yield from _webhook_lines(call, overview["webhooks"])


def overview_lines(overview: "OrderOverview", base_url: str) -> Iterator[str]:
    """Yield the state of an order, its pages, possible actions, pending events and refunds."""
    order = overview["order"]
    yield f"order {order['id']} is {order['status']}: {format_amount(order)}"
    for attempt in order["transactions"]:
        yield f"  {attempt['payment_method']} is {attempt['status']}"
    yield from (f"  page: {_page_url(page, base_url)}" for page in overview["pages"])
    for actor, actions in overview["actions"].items():
        names = [item["action"] if isinstance(item, dict) else item for item in cast("list[Any]", actions)]
        if names:
            yield f"  possible for the {actor}: {', '.join(names)}"
    yield from (f"  due {short_time(item['at'])}: {item['label']}" for item in overview["agenda"])
    for refund in overview["refunds"]:
        yield f"  refund {refund['id']} is {refund['status']}: {format_amount(refund)}"


def _webhook_lines(call: CommandRun, answer: "list[Webhook]") -> Iterator[str]:
    for webhook in answer:
        state = "lost (fault)" if webhook["lost"] else webhook["state"]
        line = f"{state}, attempts: {len(webhook['attempts'])}"
        yield f"  webhook {webhook['status']} to {webhook['url']} is {line}"
    if any(webhook["state"] == "pending" and not webhook["attempts"] for webhook in answer):
        yield from listen_hint(call)


@remote("act", example="act last customer pay --card challenge")
@click.argument("order_id")
@click.argument("actor", type=click.Choice(list(ACTIONS)))
@click.argument("action")
@click.option("--card", help="The test card to pay with.")
@click.option("--amount", type=int, help="Amount of a bank credit in cents.")
@click.option("--payment-method", help="The payment method to choose as the customer.")
@click.option("--issuer-id", help="The bank to choose as the customer.")
@click.option("--authorization", help="The authorization method of wallet-google.")
@click.option("--transaction-id", help="The transaction, if not the newest.")
@click.option("--reason", help="The reason for a failure.")
def act(call: CommandRun, order_id: str, actor: Actor, action: ActionName, **details: Any) -> None:
    """Act as customer, bank, screening or processor on an order, given as an id, a prefix or last."""
    arguments = {key: value for key, value in details.items() if value is not None}
    order = call.sandbox.act(call.order_id(order_id), actor, action, **arguments)
    call.show(order, lambda answer: f"order {answer['id']} is {answer['status']}")


@remote("pay", example="pay last --card frictionless")
@order_argument
@click.option("--payment-method", help="The payment method, for an order without a chosen method.")
@click.option("--card", help="The test card to pay with.")
@click.option("--issuer-id", help="The bank to pay with.")
@click.option("--open", "in_browser", is_flag=True, help="Open the payment page in a browser instead.")
def pay(
    call: CommandRun, order: str, payment_method: str | None, in_browser: bool, **details: str | None
) -> None:
    """Pay an order, by default the newest one, as its customer."""
    order_id = call.order_id(order)
    if in_browser:
        _open_page(call, call.sandbox.overview(order_id)["pages"])
        return
    possible = call.sandbox.overview(order_id)["actions"]["customer"]
    if payment_method is not None or ("pay" not in possible and "choose" in possible):
        call.sandbox.act(order_id, "customer", "choose", payment_method=payment_method or CARD)
    arguments: dict[str, Any] = {key: value for key, value in details.items() if value is not None}
    paid = call.sandbox.act(order_id, "customer", "pay", **arguments)
    call.show(paid, lambda answer: f"order {answer['id']} is {answer['status']}")


@remote("scan", example="scan QR_ID")
@click.argument("qr_id")
@click.option("--amount", type=int, help="The amount in cents, if the payer may change it.")
@click.option("--issuer-id", help="The bank to pay with.")
def scan(call: CommandRun, qr_id: str, **details: Any) -> None:
    """Scan a QR code as a payer, which creates an order."""
    call.show(
        call.sandbox.scan(qr_id, **details), lambda answer: f"order {answer['id']} is {answer['status']}"
    )


def _page_url(page: str, base_url: str) -> str:
    """Return the address of a page, with the scheme of the server."""
    return page if "://" in page else f"{base_url.partition(':')[0]}://{page}"


def _open_page(call: CommandRun, pages: list[str]) -> None:
    if not pages:
        fail("the order has no payment page, or the page has closed")
    address = _page_url(pages[-1], call.sandbox.base_url)
    say(address)
    webbrowser.open(address)


@remote("trigger", example="trigger paid amount=500")
@click.argument("name", required=False)
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--order", help="Act on this order instead of a new one.")
@click.option("--list", "is_list", is_flag=True, help="List the available triggers.")
def trigger(
    call: CommandRun, name: str | None, fields: tuple[str, ...], order: str | None, is_list: bool
) -> None:
    """Create an order in a state (see --list), with its webhooks.

    FIELD=VALUE sets fields of the order, and customer.locale=nl a part of one.
    """
    if is_list or name is None:
        about = {key: recipe.about for key, recipe in recipes.RECIPES.items()}
        call.table(about, dict.items, ("name", "makes"), "")
        return
    if name not in recipes.RECIPES:
        fail(_unknown_trigger(name, list(recipes.RECIPES)))
    body = read_assignments(fields, order_tables.OrderForm(), recipes.RECIPES[name].order)
    order_id = call.order_id(order) if order is not None else None
    if order_id is not None and body:
        fail("fields apply to a new order only; remove the fields or --order")
    try:
        overview = triggers.trigger(call.sandbox, name, order_id, **body)
    except triggers.TriggerImpossible as impossible:
        fail(str(impossible))
    _warn_about_ignored_fields(call, overview["order"]["id"], body)
    call.show(overview, lambda answer: "\n".join(_lines_with_webhooks(call, answer)))


def _warn_about_ignored_fields(call: CommandRun, order_id: str, fields: Mapping[str, Any]) -> None:
    """Warn of unknown order fields."""
    if not fields:
        return
    requests = call.sandbox.journal(method="POST", path="/v1/orders/", order_id=order_id)
    if requests and requests[0]["ignored"]:
        ignored = ", ".join(requests[0]["ignored"])
        say(f"payment-sandbox: ignored unknown order fields: {ignored}", to_stderr=True)


def listen_hint(call: CommandRun) -> Iterator[str]:
    """Yield a hint if webhooks are waiting for the command ``listen``."""
    forward_to = call.sandbox.project()["settings"].get("forward_to")  # a validated address, safe to print
    if forward_to is not None:
        yield (
            f"  webhooks wait for payment-sandbox listen --forward-to {forward_to}; "
            "payment-sandbox settings forward_to=null returns delivery to the sandbox"
        )


def _unknown_trigger(name: str, known: list[str]) -> str:
    advice = base.did_you_mean(base.nearest_word(name, known)) or "; see trigger --list"
    return f"there is no trigger {name!r}{advice}"
