"""Code snippets: commands that repeat requests, and the lines of tests that repeat steps."""

import json
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.operations.history import history
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.journal import (
    MERCHANT_ACTOR,
    RETURN,
    SCAN,
    SHOP_REQUEST,
    VIA_SCENARIO,
    JournalEntry,
    PerformedAction,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.history import request_record

CREATE = "create"
ACTIONS_NOT_REPLAYED = (SHOP_REQUEST, RETURN, SCAN, CREATE)
ONE_SECOND = timedelta(seconds=1)
LINE_LENGTH = 70
ATTEMPT_LINE = '    attempt = sandbox.client.order(order_id)["transactions"][-1]["id"]'


def curl(project: Project, entry: JournalEntry | None) -> str | None:
    """Build the command to repeat a request; None without a request or a JSON object as its body."""
    body = request_record(project, entry)["request"] if entry is not None else None
    if entry is None or not isinstance(body, dict | None):
        return None
    path = f"{entry.path}{'?' if entry.query else ''}{entry.query}"
    return command(project, path, body, entry.method)


def command(project: Project, path: str, body: Mapping[str, object] | None, method: str = "POST") -> str:
    """Build a shell command for a request to this server."""
    url = shlex.quote(f"{project.services.public_url}{path}")
    verb = "" if method == ("GET" if body is None else "POST") else f"-X {method} "
    start = f'curl {"-g " if "[" in url else ""}-u "$SANDBOX_API_KEY": {verb}{url}'
    if body is None:
        return start
    quoted = "".join(map(_escape, json.dumps(body, ensure_ascii=False))).replace("'", "'\\''")
    return f"{start} \\\n  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"


def creation_of(project: Project, order: Order) -> JournalEntry | None:
    """Find the creation request of an order; None if there was none, or the journal dropped it."""
    created = project.epoch.journal.entries(
        lambda entry: entry.order_id == order.id and is_order_creation(entry)
    )
    return next(iter(created), None)


def creation_body(project: Project, order: Order, created: JournalEntry | None) -> dict[str, Any] | None:
    """Return the body of the request that ``created`` an order, or of its manual creation.

    None if the journal dropped the body, or the body contains secrets.
    """
    if created is not None:
        body = request_record(project, created)["request"]
    else:
        actions = project.epoch.journal.actions(frozenset((order.id,)))
        body = next((performed.how.get("order") for performed in actions if performed.action == CREATE), None)
    return dict(body) if isinstance(body, Mapping) and MASK not in json.dumps(body) else None


def _escape(letter: str) -> str:
    """Escape a letter for JSON, unless it is printable."""
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def format_body(body: Any) -> str:
    """Format a body for display: JSON with line breaks, other text unchanged."""
    if isinstance(body, str):
        try:
            body = json.loads(body) if body.startswith(("{", "[")) else body
        except (ValueError, RecursionError):
            return str(body)
    if body is None or isinstance(body, str):
        return body or ""
    return json.dumps(body, indent=2, ensure_ascii=False)


def is_order_creation(entry: JournalEntry) -> bool:
    """Whether a request created an order, even if its response was lost."""
    return entry.path.rstrip("/") == "/v1/orders" and entry.method == "POST" and entry.order_id is not None


def is_replayed(performed: PerformedAction) -> bool:
    """Whether a test must repeat an action, because no scenario performs it."""
    return performed.via != VIA_SCENARIO and performed.action not in ACTIONS_NOT_REPLAYED


def last_moment(project: Project, order: Order) -> datetime:
    """Return the time of an order's last timeline entry, regardless of the current time."""
    return max(timeline_entry.at for timeline_entry in history(project.epoch, order.id))


def format_period(elapsed: timedelta) -> str:
    """Format an exact ISO 8601 period, such as P2DT1H."""
    minutes, seconds = divmod(elapsed.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = f"{seconds}.{elapsed.microseconds:06}" if elapsed.microseconds else seconds
    time = "".join(
        f"{count}{unit}" for unit, count in zip("HMS", (hours, minutes, exact), strict=True) if count
    )
    return f"P{f'{elapsed.days}D' if elapsed.days else ''}{f'T{time}' if time else ''}"


def replayed_action_lines(performed: PerformedAction) -> Iterator[str]:
    """Yield the lines to repeat an action; a merchant's manual action becomes an API call."""
    how = {"amount" if name == "amount_cents" else name: value for name, value in performed.how.items()}
    if performed.actor != MERCHANT_ACTOR:
        more = "".join(f", {name}={value!r}" for name, value in how.items())
        yield f"    sandbox.act(order_id, {performed.actor!r}, {performed.action!r}{more})"
    elif performed.action == "cancel":
        yield from asserted_call_lines('delete(f"{orders}{order_id}/")')
    elif performed.action == "refund":
        yield from asserted_call_lines(
            f'post(f"{{orders}}{{order_id}}/refunds/", json={format_literal(how, 4)})'
        )
    else:
        yield ATTEMPT_LINE
        url = f'f"{{orders}}{{order_id}}/transactions/{{attempt}}/{performed.action}s/amount/"'
        yield from asserted_call_lines(f"post({url}, json={format_literal(how, 4)})")


def asserted_call_lines(call: str, status: int | None = None) -> Iterator[str]:
    """Yield a call and an assertion of its status; None asserts that the call succeeded."""
    yield f"    answer = sandbox.session.{call}"
    yield f"    assert answer.{'ok' if status is None else f'status_code == {status}'}, answer.text"


def replayed_call(project: Project, order: Order, entry: JournalEntry) -> tuple[list[str], str]:
    """Return the lines before a replayed request, and the request with the ids of the new order.

    The path after the id of the order is a quoted string.
    """
    rest = entry.path.partition(order.id)[2]
    url, needed = f"orders + order_id + {rest!r}", []
    for transaction_id in (attempt.id for attempt in order.transactions):
        before, match, after = rest.partition(transaction_id)
        if match:
            needed = [ATTEMPT_LINE]
            url = f"orders + order_id + {before!r} + attempt + {after!r}"
    body = request_record(project, entry)["request"]
    sent = f", json={format_literal(body, 4)}" if body is not None else ""
    return needed, f"{entry.method.lower()}({url}{sent})"


def format_literal(value: Any, indent: int) -> str:
    """Format a value as Python source, over several lines if it is long."""
    short = repr(value)
    if len(short) <= LINE_LENGTH or not isinstance(value, dict | list) or not value:
        return short
    inner = " " * (indent + 4)
    if isinstance(value, dict):
        lines = [f"{inner}{key!r}: {format_literal(item, indent + 4)}," for key, item in value.items()]
        return "\n".join(["{", *lines, f"{' ' * indent}}}"])
    lines = [f"{inner}{format_literal(item, indent + 4)}," for item in value]
    return "\n".join(["[", *lines, f"{' ' * indent}]"])
