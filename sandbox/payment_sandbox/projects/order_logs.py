"""The logs of orders: what a project has recorded about each order, and what others derive from it.

A log never changes: after a change there is another one. Whatever is derived from a log, such as its
findings, is therefore computed once, and again only for the orders that have changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import is_
from typing import Any, Final, TypeVar

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import AnyRecord, LoggedRequest, Record, number_of
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.projects.slots import Slot

Derived = TypeVar("Derived")


@dataclass(frozen=True, eq=False)
class OrderLog:
    """An order and its refunds, their webhooks, and the records about them.

    A call about an unknown order, or about none, belongs to a log without orders.
    """

    orders: Mapping[str, Order]  # the order first
    webhooks: Sequence[Delivery] = ()
    records: Sequence[Record] = ()
    webhooks_first: bool = False  # a setting sends webhooks before responses
    sources: Sequence[object] = ()  # other objects after a change
    _derived: dict[object, Any] = field(default_factory=dict)

    def derive(self, function: "Callable[[OrderLog], Derived]") -> Derived:
        """Return what a function makes of the log; it is called once."""
        if function not in self._derived:
            self._derived[function] = function(self)
        derived: Derived = self._derived[function]
        return derived

    def of(self, kind: type[AnyRecord]) -> list[AnyRecord]:
        """Return the records of a kind."""
        return [record for record in self.records if isinstance(record, kind)]

    @cached_property
    def requests(self) -> Sequence[LoggedRequest]:
        """The calls that show what the shop does or knows."""
        return [entry for entry in self.of(LoggedRequest) if entry.is_evidence]


class NewestLogs:
    """The newest logs of an epoch, and its revision at that time."""

    value: tuple[object, Mapping[str, OrderLog]] = (None, {})


NEWEST_LOGS: Final = Slot(NewestLogs)


def order_logs(epoch: Epoch) -> Mapping[str, OrderLog]:
    """Return the logs by the id of the order or the call, oldest first; an unchanged one is the same object.

    An order without records and webhooks has none.
    """
    newest, settings = epoch.slots.of(NEWEST_LOGS), epoch.state.settings
    revision = (epoch.store.revision, epoch.journal.revision, settings.webhook_timing)
    known_revision, known = newest.value
    if known_revision == revision:
        return known
    logs: dict[str, OrderLog] = {}
    for key, sources in _sources(epoch, settings.webhook_timing == BEFORE_RESPONSE):
        before = known.get(key)
        is_same = before is not None and all(map(is_, before.sources, sources))
        logs[key] = before if before is not None and is_same else _make_log(sources)
    newest.value = revision, logs
    return logs


def log_of(epoch: Epoch, order: Order) -> OrderLog:
    """Return the log of an order, or for a refund that of its order."""
    return order_logs(epoch).get(order.refund_of_order_id or order.id) or OrderLog({order.id: order})


def _sources(epoch: Epoch, webhooks_first: bool) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the sources of each log: a setting, and for each id the order, its webhooks and records."""
    store, logs = epoch.store, epoch.journal.logs
    for order_id in store.order_ids():
        order = store.order(order_id)
        if order is not None and order.refund_of_order_id is None:
            sources = [webhooks_first, order, store.deliveries_of(order_id), logs.get(order_id, ())]
            for refund in order.refunds:
                id_ = refund.refund_id
                sources += (store.order(id_), store.deliveries_of(id_), logs.get(id_, ()))
            if any(sources[2:]):
                yield order_id, sources
    for order_id, log in logs.items():
        if store.order(order_id) is None:
            yield order_id, (webhooks_first, None, (), log)
    for entry in epoch.journal.of(LoggedRequest):
        if entry.order_id is None:
            yield entry.id, (webhooks_first, None, (), entry)


def _make_log(sources: Sequence[Any]) -> OrderLog:
    webhooks_first, *parts = sources
    orders, webhooks, logs = parts[::3], parts[1::3], parts[2::3]
    is_call = isinstance(logs[0], LoggedRequest)
    records = logs if is_call else logs[0] if len(logs) == 1 else sorted(chain(*logs), key=number_of)
    by_id = {order.id: order for order in orders if order is not None}
    return OrderLog(by_id, list(chain(*webhooks)), records, webhooks_first, sources)
