"""An outbox moves each webhook through its states, whoever sends it."""

from itertools import product

import pytest

from payment_sandbox.projects.events import Events
from payment_sandbox.projects.outbox import (
    MOVES,
    HeldDeliveries,
    Mover,
    Outbox,
    OutboxEntry,
    QueuedDelivery,
    SendingState,
)


@pytest.fixture
def outbox() -> Outbox:
    """An empty outbox."""
    return Outbox(Events())


def put(outbox: Outbox, *names: str, order: str = "an order") -> None:
    """Queue webhooks of one order."""
    for name in names:
        outbox.put(QueuedDelivery(name, order))


def take(outbox: Outbox) -> OutboxEntry:
    """Take the next webhook as the carrier."""
    entry = outbox.next()
    assert entry is not None, "the outbox has a webhook"
    return entry


def send_all(outbox: Outbox) -> list[str]:
    """Send the queued webhooks as the carrier, and return them in order."""
    return [entry.queued.delivery_id for entry in iter(outbox.next, None)]


@pytest.mark.parametrize(("is_closed", "sent"), [(False, ["held"]), (True, [])])
def test_held_webhooks_are_released_once_or_dropped(outbox: Outbox, is_closed: bool, sent: list[str]) -> None:
    """Held webhooks wait for their release, which may be repeated; the end of the epoch drops them."""
    held = HeldDeliveries(outbox)
    outbox.put(QueuedDelivery("held", "an order"), held)
    put(outbox, "free")
    assert send_all(outbox) == ["free"]
    assert not outbox.is_idle
    if is_closed:
        outbox.close()
    assert outbox.release(held) is not is_closed, "whether a carrier is needed"
    assert not outbox.release(held)
    assert send_all(outbox) == sent
    assert (outbox.is_idle, outbox.pending()) == (True, [])


def test_a_webhook_asks_for_a_carrier_again_if_no_thread_has_started(outbox: Outbox) -> None:
    """Only the first webhook asks for a carrier; after a failed start, the next one asks again."""
    needs_carrier = [outbox.put(QueuedDelivery(name, "an order")) for name in ("first", "second")]
    outbox.dismiss_carrier()
    needs_carrier.append(outbox.put(QueuedDelivery("third", "an order")))
    assert needs_carrier == [True, False, True]
    assert send_all(outbox) == ["first", "second", "third"]


def test_awaited_orders_go_first_and_keep_their_sequence(outbox: Outbox) -> None:
    """The webhooks of an awaited order overtake those of others, but not each other."""
    put(outbox, "other 1", order="other")
    put(outbox, "awaited 1", order="awaited")
    with outbox.awaiting(["awaited"]) as awaited:
        put(outbox, "other 2", order="other")
        put(outbox, "awaited 2", order="awaited")
        assert not outbox.is_settled(awaited)
    put(outbox, "awaited 3", order="awaited")
    assert send_all(outbox) == ["awaited 1", "awaited 2", "other 1", "other 2", "awaited 3"]


def test_a_webhook_that_has_awaited_a_listener_precedes_later_ones(outbox: Outbox) -> None:
    """The webhooks that awaited a listener are sent first, in their order, before those queued meanwhile."""
    put(outbox, "first", "second", "third")
    for _ in range(2):
        entry = take(outbox)
        assert outbox.await_listener(entry, lambda: False)
        assert outbox.await_listener(entry, lambda: False), "its transaction is repeated after an error"
    outbox.end_listener_wait()
    assert send_all(outbox) == ["first", "second", "third"]


def test_a_thread_does_not_end_a_webhook_that_another_thread_is_sending(outbox: Outbox) -> None:
    """A resend that awaited a listener is sent by the carrier; the end of the resend's own call ends nothing."""
    with outbox.sending(QueuedDelivery("resent", "an order", forced=True)) as entry:
        assert entry is not None
        assert outbox.await_listener(entry, lambda: False)
        outbox.end_listener_wait()
        assert outbox.next() is entry
    assert (entry.state, outbox.is_idle) == (SendingState.SENDING, False)
    assert outbox.next() is None
    assert (entry.state, outbox.is_idle) == (SendingState.DONE, True)


@pytest.mark.parametrize("by", Mover)
def test_a_mover_makes_no_other_moves(by: Mover) -> None:
    """Moves that are missing from the table fail, whoever makes them."""
    for before, to in product((None, *SendingState), SendingState):
        if to in MOVES[by].get(before, ()):
            continue
        entry = OutboxEntry(QueuedDelivery("a webhook", "an order"))
        entry.state = before
        with pytest.raises(AssertionError, match=to):
            Outbox(Events())._move(entry, to, by)
        assert entry.state is before
