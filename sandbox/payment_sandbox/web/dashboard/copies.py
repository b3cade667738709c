"""What developers copy of an order: the command that creates it, and a test that replays it."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.default_scenario import DEFAULT
from payment_sandbox.projects.journal import (
    ASK,
    MERCHANT,
    RETURN,
    SCAN,
    VIA_SCENARIO,
    JournalEntry,
    PerformedAction,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.history import request_record
from payment_sandbox.web.carried import application

CREATE = "create"
NOT_REPLAYED = (ASK, RETURN, SCAN, CREATE)
ONE_SECOND = timedelta(seconds=1)
LINE_LENGTH = 70
ATTEMPT = '    attempt = sandbox.client.order(order_id)["transactions"][-1]["id"]'


def curl(project: Project, created: JournalEntry | None) -> str | None:
    """The command that creates the same order as this request; None if there was none, or it is forgotten."""
    body = request_record(project, created)["request"] if created is not None else None
    if created is None or not isinstance(body, dict):
        return None
    text = json.dumps(body, ensure_ascii=False)
    quoted = "".join(map(_escaped, text)).replace("'", "'\\''")
    return (
        f'curl -u "$SANDBOX_API_KEY": {application().public_url}{created.path} \\\n'
        f"  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"
    )


def creation_of(project: Project, order: Order) -> JournalEntry | None:
    """The request that created an order; None if there was none, or it is forgotten."""
    created = project.epoch.journal.entries(
        lambda entry: entry.order_id == order.id and entry.method == "POST" and entry.status == 201
    )
    return next((entry for entry in created if _is_creation(entry)), None)


def created_with(project: Project, order: Order, created: JournalEntry | None) -> dict[str, Any] | None:
    """The body of the request that ``created`` an order, or what somebody asked for by hand.

    None if it is forgotten, or had secrets.
    """
    if created is not None:
        body = request_record(project, created)["request"]
    else:
        by_hand = project.epoch.journal.actions(frozenset((order.id,)))
        body = next((taken.how.get("order") for taken in by_hand if taken.action == CREATE), None)
    return dict(body) if isinstance(body, Mapping) and MASK not in json.dumps(body) else None


def _escaped(letter: str) -> str:
    """A letter in JSON; what a terminal would not print is escaped."""
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def pretty(body: Any) -> str:
    """A body for people: JSON with line breaks, other text as it is."""
    if body is None:
        return ""
    return body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)


def test_code(project: Project, order: Order) -> str | None:
    """The source of the test; None if no request that is still in the journal created the order."""
    journal = project.epoch.journal
    entries = list(journal.entries(lambda entry: entry.order_id == order.id and entry.method != "GET"))
    if not entries or not _is_creation(entries[0]):
        return None
    body = request_record(project, entries[0])["request"]
    if not isinstance(body, dict):
        return None  # it was too long to keep
    actions = [taken for taken in journal.actions(frozenset((order.id,))) if _is_replayed(taken)]
    return "\n".join(_lines(project, order, entries, actions, body)) + "\n"


def _is_creation(entry: JournalEntry) -> bool:
    return entry.path.rstrip("/") == "/v1/orders" and entry.status == 201


def _is_replayed(taken: PerformedAction) -> bool:
    return taken.via != VIA_SCENARIO and taken.action not in NOT_REPLAYED


def _lines(
    project: Project,
    order: Order,
    entries: list[JournalEntry],
    actions: list[PerformedAction],
    body: dict[str, Any],
) -> Iterator[str]:
    created, scenario = entries[0], project.epoch.state.scenario
    mode = project.epoch.state.base_settings.mode
    yield "import pytest"
    yield ""
    yield ""
    yield f'@pytest.mark.payment_settings(clock="frozen@{timestamp(created.at)}", mode="{mode}")'
    yield f"def test_order_{order.id[:8]}(payment_sandbox):"
    yield '    """Replays an order from the dashboard."""'
    yield "    sandbox = payment_sandbox"
    if scenario.name != DEFAULT:
        yield f"    sandbox.scenario({scenario.name!r})"
    yield '    orders = f"{sandbox.base_url}/v1/orders/"'
    yield f"    body = {_literal(body, 4)}"
    yield '    order_id = sandbox.session.post(orders, json=body).json()["id"]'
    yield from _steps(project, entries, actions)
    yield f'    assert sandbox.client.order(order_id)["status"] == {order.status!r}'


def _steps(project: Project, entries: list[JournalEntry], actions: list[PerformedAction]) -> Iterator[str]:
    """What the shop and the others did after the creation, each at its own time."""
    now = entries[0].at
    steps: list[tuple[Any, JournalEntry | PerformedAction]] = [
        *((entry.real_at, entry) for entry in entries[1:]),
        *((taken.real_at, taken) for taken in actions),
    ]
    for _, step in sorted(steps, key=lambda step: step[0]):
        if step.at - now >= ONE_SECOND:
            yield f'    sandbox.clock.advance(to="{timestamp(step.at)}")'
            now = step.at
        yield from _action(step) if isinstance(step, PerformedAction) else _request(project, step)
    if project.now() - now >= ONE_SECOND:
        yield f'    sandbox.clock.advance(to="{timestamp(project.now())}")'


def _action(taken: PerformedAction) -> Iterator[str]:
    how = {"amount" if name == "amount_cents" else name: value for name, value in taken.how.items()}
    if taken.actor != MERCHANT:
        more = "".join(f", {name}={value!r}" for name, value in how.items())
        yield f"    sandbox.act(order_id, {taken.actor!r}, {taken.action!r}{more})"
    elif taken.action == "cancel":
        yield '    sandbox.session.delete(f"{orders}{order_id}/")'
    elif taken.action == "refund":
        yield f'    sandbox.session.post(f"{{orders}}{{order_id}}/refunds/", json={_literal(how, 4)})'
    else:
        yield ATTEMPT
        place = f'f"{{orders}}{{order_id}}/transactions/{{attempt}}/{taken.action}s/amount/"'
        yield f"    sandbox.session.post({place}, json={_literal(how, 4)})"


def _request(project: Project, entry: JournalEntry) -> Iterator[str]:
    """The request with the ids of the new order; what follows the order's id is text, not code."""
    rest = entry.path.partition(entry.order_id or " ")[2]
    place = f"orders + order_id + {rest!r}"
    for transaction_id in _transactions(project, entry):
        before, match, after = rest.partition(transaction_id)
        if match:
            yield ATTEMPT
            place = f"orders + order_id + {before!r} + attempt + {after!r}"
    body = request_record(project, entry)["request"]
    sent = f", json={_literal(body, 4)}" if body is not None else ""
    yield f"    sandbox.session.{entry.method.lower()}({place}{sent})"


def _transactions(project: Project, entry: JournalEntry) -> list[str]:
    order = project.epoch.store.order(entry.order_id or "")
    return [attempt.id for attempt in order.transactions] if order is not None else []


def _literal(value: Any, indent: int) -> str:
    """A value as Python source, over several lines if it is long."""
    short = repr(value)
    if len(short) <= LINE_LENGTH or not isinstance(value, dict | list) or not value:
        return short
    inner = " " * (indent + 4)
    if isinstance(value, dict):
        lines = [f"{inner}{key!r}: {_literal(item, indent + 4)}," for key, item in value.items()]
        return "\n".join(["{", *lines, f"{' ' * indent}}}"])
    lines = [f"{inner}{_literal(item, indent + 4)}," for item in value]
    return "\n".join(["[", *lines, f"{' ' * indent}]"])
