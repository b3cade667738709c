"""What developers copy of an order: the command that creates it, and a test that replays it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.records import (
    RETURN,
    SCAN,
    VIA_SCENARIO,
    VISIT,
    Deed,
    JournalEntry,
)
from payment_sandbox.web.answers.history import request_record
from payment_sandbox.web.carried import application

NOT_REPLAYED = (RETURN, SCAN, "create")
ONE_SECOND = timedelta(seconds=1)


def curl(project: Project, order: Order) -> str | None:
    """The command that creates the same order; None if no request created it, or it is forgotten."""
    created = next(
        (
            entry
            for entry in project.epoch.journal.entries(
                lambda entry: entry.order_id == order.id and entry.method == "POST" and entry.status == 201
            )
        ),
        None,
    )
    if created is None:
        return None
    body = json.dumps(request_record(project, created)["request"], ensure_ascii=False)
    quoted = body.replace("'", "'\\''")
    return (
        f'curl -u "$SANDBOX_API_KEY": {application().public_url}{created.path} \\\n'
        f"  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"
    )


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
    deeds = [deed for deed in journal.deeds(frozenset((order.id,))) if _is_replayed(deed)]
    return "\n".join(_lines(project, order, entries, deeds)) + "\n"


def _is_creation(entry: JournalEntry) -> bool:
    return entry.path.rstrip("/") == "/v1/orders" and entry.status == 201


def _is_replayed(deed: Deed) -> bool:
    return deed.via != VIA_SCENARIO and deed.action not in NOT_REPLAYED


def _lines(project: Project, order: Order, entries: list[JournalEntry], deeds: list[Deed]) -> Iterator[str]:
    created, scenario = entries[0], project.epoch.state.scenario
    mode = project.epoch.state.base_settings.mode
    yield "import pytest"
    yield ""
    yield ""
    yield f'@pytest.mark.payment_settings(clock="frozen@{timestamp(created.at)}", mode="{mode}")'
    yield f"def test_order_{order.id[:8]}(payment_sandbox):"
    yield '    """Replays an order from the dashboard."""'
    if scenario.name != "default":
        yield f"    payment_sandbox.scenario({scenario.name!r})"
    yield '    orders = f"{payment_sandbox.base_url}/v1/orders/"'
    body = request_record(project, created)["request"]
    yield f"    body = {_literal(body)}"
    yield "    order = payment_sandbox.session.post(orders, json=body).json()"
    yield from _steps(project, entries, deeds)
    yield '    found = payment_sandbox.client.order(order["id"])'
    yield f'    assert found["status"] == {order.status!r}'


def _steps(project: Project, entries: list[JournalEntry], deeds: list[Deed]) -> Iterator[str]:
    """What the shop and the others did after the creation, each at its own time."""
    now = entries[0].at
    steps: list[tuple[Any, JournalEntry | Deed]] = [
        *((entry.real_at, entry) for entry in entries[1:]),
        *((deed.real_at, deed) for deed in deeds),
    ]
    for _, step in sorted(steps, key=lambda step: step[0]):
        if step.at - now >= ONE_SECOND:
            yield f'    payment_sandbox.clock.advance(to="{timestamp(step.at)}")'
            now = step.at
        yield _deed(step) if isinstance(step, Deed) else _request(project, step)
    if project.now() - now >= ONE_SECOND:
        yield f'    payment_sandbox.clock.advance(to="{timestamp(project.now())}")'


def _deed(deed: Deed) -> str:
    how = {"amount" if name == "amount_cents" else name: value for name, value in deed.how.items()}
    more = "".join(f", {name}={value!r}" for name, value in how.items())
    action = VISIT if deed.action == VISIT else deed.action
    return f'    payment_sandbox.act(order["id"], {deed.actor!r}, {action!r}{more})'


def _request(project: Project, entry: JournalEntry) -> str:
    path = entry.path.partition(entry.order_id or " ")[2]
    place = f"f\"{{orders}}{{order['id']}}{path}\""
    for transaction in _transactions(project, entry):
        place = place.replace(transaction, "{order['transactions'][-1]['id']}")
    body = request_record(project, entry)["request"]
    sent = f", json={_literal(body)}" if body is not None else ""
    return f"    payment_sandbox.session.{entry.method.lower()}({place}{sent})"


def _transactions(project: Project, entry: JournalEntry) -> list[str]:
    order = project.epoch.store.order(entry.order_id or "")
    return [attempt.id for attempt in order.transactions] if order is not None else []


def _literal(body: Any) -> str:
    """A body as Python source, indented as it stands in the test."""
    if not isinstance(body, dict):
        return repr(body)
    text = json.dumps(body, indent=4, ensure_ascii=False)
    return _as_python(text).replace("\n", "\n    ")


def _as_python(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        head, colon, value = line.rpartition(": ")
        bare = value.removesuffix(",")
        python = {"true": "True", "false": "False", "null": "None"}.get(bare)
        lines.append(f"{head}{colon}{python}{value[len(bare) :]}" if python else line)
    return "\n".join(lines)
