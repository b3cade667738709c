"""Delivering a webhook: what goes out, how the scenario interferes, and what came back."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.kernel.periods import Period
from payment_sandbox.orders.commands import AttemptDelivery
from payment_sandbox.orders.deliveries import (
    ANSWERED_BY_SCENARIO,
    DROPPED_BY_SCENARIO,
    TIMED_OUT_BY_SCENARIO,
    Attempt,
    Delivery,
    DeliveryState,
    Parcel,
    Reply,
)
from payment_sandbox.projects.outbox import Errand
from payment_sandbox.projects.project import Project
from payment_sandbox.version import __version__

HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    "User-Agent": f"payment-orders-sandbox/{__version__}",
}


class Departure(NamedTuple):
    """An attempt about to be made; with ``reply`` it is decided already and nothing is sent."""

    delivery: Delivery
    parcel: Parcel
    at: datetime
    real_at: datetime
    copies: int = 1
    reply: Reply | None = None


def depart(project: Project, errand: Errand) -> Departure | None:
    """Prepare an attempt; None when there is nothing to send (any more, or not yet)."""
    with project.state_lock:
        delivery = project.store.delivery(errand.delivery_id)
        if delivery is None or (delivery.state is not DeliveryState.PENDING and not errand.forced):
            return None
        number = delivery.next_number
        effect = project.faults.webhook(delivery.status, number) or project.scenario_faults.webhook(
            delivery.status, number
        )
        if not errand.forced and _postponed(project, delivery, effect):
            return None
        body = {"event": "status_changed", "order_id": delivery.order_id, "project_id": project.project_id}
        parcel = Parcel(delivery.url, HEADERS, json.dumps(body).encode())
        return Departure(
            delivery,
            parcel,
            project.now(),
            project.real.wall_now(),
            copies=effect.get("duplicate", 1),
            reply=_decided(effect),
        )


def arrive(project: Project, departure: Departure, reply: Reply, *, is_copy: bool = False) -> None:
    """Record an attempt, and put the next one on the agenda if one is owed; a copy owes none.

    A result of before a reset is discarded: its delivery is not this project's any more.
    """
    delivery = departure.delivery
    with project.state_lock:
        if project.store.delivery(delivery.id) is not delivery:
            return
        number = delivery.next_number - is_copy
        attempt = Attempt(number, departure.at, departure.real_at, departure.parcel, reply)
        next_at = delivery.record(attempt, is_copy=is_copy)
        event = _event(delivery, number, departure.at, reply)
        if project.advance_log is not None:
            project.advance_log.append(event)
        with project.edit(departure.at) as edit:
            edit.touch(delivery)
            if next_at is not None:
                edit.schedule(next_at, AttemptDelivery(delivery.order_id, delivery.id, number + 1))
    project.feed.publish("webhook", **event, state=delivery.state)


def _postponed(project: Project, delivery: Delivery, effect: Mapping[str, Any]) -> bool:
    """Put a delivery off once, for a time or until the next one has gone (SCN-06)."""
    if delivery.postponed:
        return False
    if "delay" in effect:
        delivery.postponed = True
        with project.edit() as edit:
            edit.touch(delivery)
            at = Period.parse(effect["delay"]).after(edit.now)
            edit.schedule(at, AttemptDelivery(delivery.order_id, delivery.id, delivery.next_number))
        return True
    if effect.get("swap") and not project.swapped:
        delivery.postponed = True
        project.swapped.append(Errand(delivery.id))
        project.keep(touched=[delivery])
        return True
    return False


def _decided(effect: Mapping[str, Any]) -> Reply | None:
    if "answer" in effect:
        return Reply(0.0, status=effect["answer"], warning=ANSWERED_BY_SCENARIO)
    if effect.get("timeout"):
        return Reply(0.0, error=TIMED_OUT_BY_SCENARIO)
    if effect.get("drop"):
        return Reply(0.0, warning=DROPPED_BY_SCENARIO)
    return None


def _event(delivery: Delivery, number: int, at: datetime, reply: Reply) -> dict[str, Any]:
    outcome = reply.error or (f"answered {reply.status}" if reply.status else reply.warning)
    return {
        "at": timestamp(at),
        "kind": "webhook",
        "order_id": delivery.order_id,
        "label": f"webhook attempt {number} for {delivery.order_id}: {outcome}",
        "delivery_id": delivery.id,
    }
