"""An epoch: everything of a project that a reset throws away, in one object."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import Due, Timeline
from payment_sandbox.methods.base import Terms
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.clock import Clock
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.events import Events
from payment_sandbox.projects.faults import NO_FAULTS, Faults
from payment_sandbox.projects.journal import Journal
from payment_sandbox.projects.locks import ADVANCE, ranked_lock
from payment_sandbox.projects.outbox import Outbox
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.store import Chosen, Counters, Store
from payment_sandbox.scenarios.model import Scenario

TIDY_AT_LEAST: Final = 1000


class State(NamedTuple):
    """What of an epoch is so small that every edit replaces it whole."""

    base_settings: Settings
    settings: Settings  # as the active scenario changes them
    scenario: Scenario
    scenario_faults: Faults
    faults: Faults  # besides the scenario's
    clock: Clock
    rule_uses: Mapping[int, int] = {}
    swapped: tuple[str, ...] = ()  # deliveries that wait for the next one to go first

    @classmethod
    def first(cls, settings: Settings, clock: Clock) -> "State":
        """The state in which an epoch begins."""
        scenario = default_scenario()
        return cls(settings, settings, scenario, Faults.of(scenario), NO_FAULTS, clock)

    def with_scenario(self, scenario: Scenario) -> "State":
        """With another scenario, whose settings hold while it is active (SCN-07).

        Raises:
            Invalid: a setting that no project has.
        """
        settings = read_settings(dict(scenario.settings), self.base_settings, "settings")
        faults = Faults.of(scenario)
        return self._replace(settings=settings, scenario=scenario, scenario_faults=faults, rule_uses={})

    def with_settings(self, data: Any) -> "State":
        """With some settings changed (CTL-01).

        Raises:
            Invalid: lists every wrong setting.
        """
        base = read_settings(data, self.base_settings)
        settings = read_settings(dict(self.scenario.settings), base, "settings")
        return self._replace(base_settings=base, settings=settings)

    @property
    def chosen(self) -> Chosen:
        """What somebody chose, as plain data."""
        return Chosen(
            self.base_settings.as_mapping(), dict(self.scenario.document), dict(self.faults.document)
        )


class SetAside(NamedTuple):
    """Something due that could not be done, and why; it is not tried again."""

    due: Due[Command]
    error: str


class Epoch:
    """Records, agenda, clock, webhooks and journal of a project between two resets.

    Its parts change in ``Edit.apply`` only, with the project's state lock held. Who reads takes a reference
    to an epoch and no lock; who works on one compares it with ``project.epoch`` to see whether it is current.
    """

    def __init__(self, number: int, state: State, store: Store, events: Events) -> None:
        self.number = number
        self.state = state
        self.store = store
        self.timeline: Timeline[Command] = Timeline(state.clock.anchor)
        self.ids = Ids(state.base_settings.seed, series=number)
        self.outbox = Outbox(events)
        self.journal = Journal()
        self.set_aside: dict[int, SetAside] = {}  # by place on the agenda
        self.finished: list[int] = []  # places on the agenda that a durable store still has to forget
        self.tidy_at = TIDY_AT_LEAST  # the length of the agenda at which it is looked through again
        self.advance_lock = ranked_lock(ADVANCE)
        self.advance_log: list[dict[str, Any]] | None = None  # of the advance under way
        self.answers: dict[str, tuple[str, bytes]] = {}  # order id -> (etag, body), for the web to keep
        self.scan_forms: OrderedDict[str, str] = OrderedDict()  # form id -> the order that it made
        self.orders_created = 0

    @property
    def is_advancing(self) -> bool:
        """Whether an advance moves the clock."""
        return self.advance_log is not None

    def now(self) -> datetime:
        """Sandbox time: while an advance steps, the time of its event."""
        clock = self.state.clock
        if not clock.running or self.is_advancing:
            return self.timeline.now
        return max(self.timeline.now, clock.read())

    def find_order(self, order_id: str) -> Order:
        """The newest version of an order or refund.

        Raises:
            Unknown: there is none of this id here.
        """
        order = self.store.order(order_id)
        if order is None:
            raise Unknown(f"there is no order {order_id!r} in this project")
        return order

    def find_qr_request(self, qr_id: str) -> QrRequest:
        """A QR request.

        Raises:
            Unknown: there is none of this id here.
        """
        request = self.store.qr_request(qr_id)
        if request is None:
            raise Unknown(f"there is no QR request {qr_id!r} in this project")
        return request

    def terms(self, now: datetime) -> Terms:
        """What a payment method may know of the project at a time."""
        settings = self.state.settings
        return Terms(now, settings.is_test, settings.features, self.store.credential, self.ids)

    def etag(self, order: Order) -> str:
        """What names a version of an order: it changes with every edit, and with how answers look."""
        number = f".{self.number}" if self.number else ""  # a restored epoch has ids of the one before
        return f"{order.id[:8]}-{order.version}{self.state.settings.presentation}{number}"

    def counters(self, state: State, ids: Ids, sequence: int, now: datetime) -> Counters:
        """What a durable store keeps besides records."""
        return Counters(
            now=now,
            clock_mode=state.clock.mode,
            clock_rate=state.clock.rate,
            rule_uses=tuple(state.rule_uses.items()),
            scenario_faults=state.scenario_faults.uses,
            fault_uses=state.faults.uses,
            seed=ids.seed,
            id_series=ids.series,
            id_counts=dict(ids.counts),
            epoch=self.number,
            sequence=sequence,
            deliveries_dropped=self.store.deliveries_dropped,
            swapped=state.swapped,
        )
