"""Kinds of deviations: where a server deviates, and in what."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.verification.exchanges import Alteration, Exchange

Record = dict[str, Any]
Change = Callable[[Record], object]
"""A change of an order, a transaction or a body in place."""


def in_orders(change: Change) -> Alteration:
    """Change each order that is returned."""
    return lambda x: x.is_order and change(x.data)


def in_reads(change: Change) -> Alteration:
    """Change an order when it is read, but not when it is created."""
    return lambda x: x.is_order and x.method == "GET" and change(x.data)


def in_attempts(change: Change) -> Alteration:
    """Change each transaction of an order."""
    return in_orders(lambda order: [change(attempt) for attempt in order["transactions"]])


def in_refunds(change: Change) -> Alteration:
    """Change each refund, also those without transactions."""
    return lambda x: isinstance(x.data, dict) and "refund_of_order_id" in x.data and change(x.data)


def in_updates(change: Change) -> Alteration:
    """Change the body of an update before it is handled."""
    return lambda x: x.method == "PUT" and change(x.body)


def in_attempts_sent(change: Change) -> Alteration:
    """Change each transaction in a body before it is read."""

    def alter(x: Exchange) -> None:
        attempts = x.body.get("transactions")
        for attempt in attempts if isinstance(attempts, list) else ():
            if isinstance(attempt, dict):
                change(attempt)

    return alter


def in_errors(kind: str, status: int, **error: Any) -> Alteration:
    """Answer errors of this type with another status, and with other values."""

    def change(x: Exchange) -> None:
        if x.error.get("type") == kind:
            x.reply(status)
            x.error.update(error)

    return change


def refuse(
    where: Callable[[Exchange], object], status: int = 400, kind: str = "ValidationError"
) -> Alteration:
    """Refuse what the sandbox accepts."""

    def change(x: Exchange) -> None:
        if not x.error and where(x):
            x.reply(status, type=kind, value="this cannot be")

    return change


def refuse_values(name: str, *values: Any) -> Alteration:
    """Refuse these values of a field anywhere in the body."""
    texts = [json.dumps({name: value})[1:-1] for value in values]
    return refuse(lambda x: x.method == "POST" and any(text in json.dumps(x.body) for text in texts))


def put(**values: Any) -> Change:
    """Set these values."""
    return lambda record: record.update(values)


def drop(*names: str) -> Change:
    """Drop these fields."""
    return lambda record: [record.pop(name, None) for name in names]


def replace(name: str, change: Callable[[Any], Any]) -> Change:
    """Replace a value, if there is one, by a function of it."""
    return lambda record: name in record and record.update({name: change(record[name])})


def replace_if(name: str, value: Any, by: Any) -> Change:
    """Replace one value by another."""
    return replace(name, lambda present: by if present == value else present)


def drop_header(name: str) -> Alteration:
    """Drop a header of each answer."""
    return lambda x: x.response is not None and x.response.headers.pop(name, None)


def of_cards(change: Change) -> Change:
    """Apply a change to transactions by credit card only."""
    return lambda attempt: attempt["payment_method"] == "credit-card" and change(attempt)


def change_text(old: str, new: str) -> Alteration:
    """Replace a pattern in the text of each answer."""

    def change(x: Exchange) -> None:
        x.data = json.loads(re.sub(old, new, json.dumps(x.data)))

    return change


def set_status(is_changed: Change, status: str) -> Alteration:
    """Report another status of an order and of those of its transactions to which this applies."""

    def change(order: Record) -> None:
        for attempt in filter(is_changed, order["transactions"]):
            order["status"] = attempt["status"] = status

    return in_orders(change)


def drop_sent_header(name: str, path_end: str = "") -> Alteration:
    """Drop a header of the calls whose path ends like this."""
    return lambda x: x.path.endswith(path_end) and x.options["headers"].pop(name, None)
