"""The journal records and events of an edit, added once the edit is applied."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.events import BuildData
from payment_sandbox.projects.journal import (
    JOURNAL_BODY_BYTES,
    AgendaEvent,
    ConfigurationChange,
    Journal,
    PerformedAction,
    ReachedStatus,
    RecordedDecision,
    to_plain_data,
)
from payment_sandbox.scenarios.model import ScenarioDecision
from payment_sandbox.scenarios.near_misses import explain

ACTION_FIELDS: Final = ("actor", "action")


class PublishedEvent(NamedTuple):
    """An event to publish; ``build`` creates expensive, rarely read data."""

    kind: str
    data: dict[str, Any]
    build: BuildData | None = None


class StatusMove(NamedTuple):
    """A status change of an order; ``before`` is None for a new order."""

    order_id: str
    before: str | None
    after: str


class Recorder:
    """A collector for the records and events of an edit, and their cause."""

    def __init__(self, journal: Journal, cause: str | None) -> None:
        self.cause = cause
        self.decisions: dict[str, ScenarioDecision] = {}  # by transaction
        self._journal = journal
        self._events: list[PublishedEvent] = []
        self._records: list[PerformedAction | AgendaEvent | ConfigurationChange] = []
        self._new_events: set[str] = set()  # ids of transaction events

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Publish an event."""
        self._events.append(PublishedEvent(kind, data))

    def record_event_id(self, event_id: str) -> None:
        """Record the status reached by an attempt with this transaction event."""
        self._new_events.add(event_id)

    def record_action(
        self,
        action: Action,
        via: str,
        at: datetime,
        order_id: str | None,
        transaction_id: str | None,
        details: Mapping[str, Any],
    ) -> None:
        """Record an action as the cause of the rest of the edit."""
        fields = {name: value for name, value in action.as_mapping().items() if name not in ACTION_FIELDS}
        performed = PerformedAction(
            self._journal.next_id("action"),
            at,
            at,  # set to real time when the edit is applied
            action.actor,
            action.action,
            via,
            order_id,
            transaction_id,
            {**fields, **details},
        )
        self._records.append(performed)
        self.cause = performed.id

    def record_choice(self, kind: str, before: Mapping[str, Any], at: datetime) -> None:
        """Record the replaced settings or scenario."""
        is_short = len(json.dumps(before, default=str)) <= JOURNAL_BODY_BYTES
        choice = ConfigurationChange(
            self._journal.next_id("choice"), at, at, kind, before if is_short else None
        )
        self._records.append(choice)

    def record_agenda_event(self, due: DueItem[Command], at: datetime) -> None:
        """Record a due event as the cause of the rest of the edit."""
        command = due.item
        event = AgendaEvent(
            self._journal.next_id("event"), command.order_id, command.kind, command.label, at, at
        )
        self._records.append(event)
        self.cause = event.id

    def record(
        self, orders: Iterable[Order], moves: list[StatusMove], at: datetime, real_at: datetime
    ) -> Iterator[PublishedEvent]:
        """Add the records to the journal, and yield the events to publish."""
        journal = self._journal
        decided = [RecordedDecision(journal.next_id("decision"), *each) for each in self.decisions.items()]
        own = [record._replace(real_at=real_at) for record in self._records]
        statuses = list(self._new_statuses(orders, moves, at, real_at))
        journal.add([*decided, *own, *statuses])
        yield from (action_event(record) for record in own if isinstance(record, PerformedAction))
        for transaction_id, decision in self.decisions.items():
            yield PublishedEvent("decision", {}, partial(_explain_decision, transaction_id, decision))
        yield from self._status_events(moves, statuses, at)
        yield from self._events

    def _new_statuses(
        self, orders: Iterable[Order], moves: list[StatusMove], at: datetime, real_at: datetime
    ) -> Iterator[ReachedStatus]:
        """Yield the new statuses of attempts and orders."""
        next_id, cause = self._journal.next_id, self.cause
        for order in orders:
            for attempt in order.transactions:
                for event in attempt.events:
                    if event.id in self._new_events:
                        yield ReachedStatus(
                            next_id("status"),
                            order.id,
                            attempt.payment_method,
                            attempt.id,
                            event.event,
                            at,
                            real_at,
                            cause,
                        )
        for move in moves:
            yield ReachedStatus(next_id("status"), move.order_id, None, None, move.after, at, real_at, cause)

    def _status_events(
        self, moves: list[StatusMove], statuses: list[ReachedStatus], at: datetime
    ) -> Iterator[PublishedEvent]:
        of_orders = statuses[len(statuses) - len(moves) :]
        for move, status in zip(moves, of_orders, strict=True):
            yield PublishedEvent(
                "status", {**move._asdict(), "at": timestamp(at), "id": status.id, "cause": status.cause}
            )


def _explain_decision(transaction_id: str, decision: ScenarioDecision) -> dict[str, Any]:
    return {"transaction_id": transaction_id, **explain(decision)}


def action_event(action: PerformedAction) -> PublishedEvent:
    """Return the event for an action."""
    return PublishedEvent("action", to_plain_data(action))
