"""An epoch: all data of a project that a reset discards."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, NotRequired, TypedDict

from payment_sandbox.kernel.descriptions import Moment
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.timeline import DueItem, Timeline
from payment_sandbox.methods.common import Terms
from payment_sandbox.orders.commands import AttemptDelivery, Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import OrderChanged, Unknown
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.caller import SAVED_FOR, SavedAnswer, TrackedRequest
from payment_sandbox.projects.clock import ProjectClock
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.events import Events
from payment_sandbox.projects.faults import NO_FAULTS, ProjectFaults
from payment_sandbox.projects.jobs import Jobs
from payment_sandbox.projects.journal import EpochJournal, ReachedStatus
from payment_sandbox.projects.locks import ADVANCE, ranked_lock
from payment_sandbox.projects.outbox import Outbox, QueuedDelivery
from payment_sandbox.projects.rehearsal import NO_REHEARSAL, Rehearsal
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.slots import Slots
from payment_sandbox.projects.store import Configuration, Counters, Store
from payment_sandbox.scenarios.model import Scenario

CLEANUP_LENGTH_MIN: Final = 1000
UNMATCHED_MAX: Final = 100
"""The number of removed rules whose sentences an epoch keeps."""

IfMatch = Callable[[str], bool]
"""Decides whether the request's ``If-Match`` header accepts an ETag."""


class State(NamedTuple):
    """The state of an epoch that edits replace as a whole."""

    base_settings: Settings
    settings: Settings  # including those of the active scenario
    scenario: Scenario
    scenario_faults: ProjectFaults
    faults: ProjectFaults  # in addition to the scenario's faults
    clock: ProjectClock
    rule_uses: Mapping[int, int] = {}
    swapped: tuple[str, ...] = ()  # deliveries deferred until another webhook is sent
    unmatched: tuple[str, ...] = ()  # sentences about removed rules that never matched

    @classmethod
    def initial(cls, settings: Settings, clock: ProjectClock) -> "State":
        """Return the initial state of an epoch."""
        scenario = default_scenario()
        return cls(settings, settings, scenario, ProjectFaults.of(scenario), NO_FAULTS, clock)

    def with_scenario(self, scenario: Scenario) -> "State":
        """Return the state with another scenario, whose settings apply while it is active (SCN-07).

        Raises:
            Invalid: the scenario has an unknown setting.
        """
        settings = read_settings(dict(scenario.settings), self.base_settings, "settings")
        faults = ProjectFaults.of(scenario)
        return self._replace(settings=settings, scenario=scenario, scenario_faults=faults, rule_uses={})

    def with_settings(self, data: Any) -> "State":
        """Return the state with some settings changed (CTL-01).

        Raises:
            Invalid: lists every invalid setting.
        """
        base = read_settings(data, self.base_settings)
        settings = read_settings(dict(self.scenario.settings), base, "settings")
        return self._replace(base_settings=base, settings=settings)

    def note_unmatched(self, sentences: Iterable[str]) -> "State":
        """Return the state with more sentences about removed rules, for the end of a test."""
        return self._replace(unmatched=tuple(dict.fromkeys((*self.unmatched, *sentences)))[-UNMATCHED_MAX:])

    @property
    def documents(self) -> tuple[dict[str, Any], Mapping[str, Any], Mapping[str, Any]]:
        """Settings, scenario and faults, as plain data."""
        return self.base_settings.stored, self.scenario.document, self.faults.document

    @property
    def chosen(self) -> Configuration:
        """Settings, scenario and faults, to be stored."""
        return Configuration(
            *self.documents,
            is_inline=self.scenario.is_inline,
            unmatched=self.unmatched,
        )


class FailedCommand(NamedTuple):
    """A failed due command, which is not retried, and its error."""

    due: DueItem[Command]
    error: str


class AgendaItem(TypedDict):
    """A scheduled event, pending or failed."""

    at: Moment
    kind: str
    order_id: str
    label: str
    failed: NotRequired[Annotated[str, "The error of a failed event, which is not retried."]]


class ProcessedEvent(AgendaItem):
    """An event that ran during an advance."""

    delivery_id: NotRequired[Annotated[str, "For webhooks: the delivery's id."]]


def unannounced(statuses: Iterable[ReachedStatus], deliveries: Iterable[Delivery]) -> list[ReachedStatus]:
    """Return the statuses for which there is no webhook."""
    sent = Counter((each.order_id, each.status, each.created) for each in deliveries)
    unsent = []
    for reached in statuses:
        is_creation = reached.status == OrderStatus.NEW and reached.before is None
        if reached.payment_method is None and not is_creation:
            webhook = (reached.order_id, reached.status, reached.at)
            sent[webhook] -= 1
            if sent[webhook] < 0:
                unsent.append(reached)
    return unsent


class Epoch:
    """Records, agenda, clock, webhooks and journal of a project between two resets.

    Its parts change only in ``Edit.apply``, with the project's state lock held. Readers take a reference to
    an epoch and no lock; writers compare the epoch with ``project.epoch`` to check that it is current.
    """

    def __init__(self, number: int, state: State, store: Store, events: Events, outbox: Outbox) -> None:
        self.number = number
        self.state = state
        self.store = store
        self.timeline: Timeline[Command] = Timeline(state.clock.anchor)
        self.ids = Ids(state.base_settings.seed, series=number)
        self.outbox = outbox
        self.journal = EpochJournal(events, is_stored=store.is_durable)
        self.failed_commands: dict[int, FailedCommand] = {}  # by sequence number
        self.finished_entries: list[int] = []  # sequence numbers to delete from the store
        self.cleanup_length = CLEANUP_LENGTH_MIN  # the agenda length at which the next cleanup begins
        self.checked_entries = 0  # the number of entries checked by the current cleanup
        self.obsolete_entries: list[int] = []  # sequence numbers of obsolete entries
        self.advance_lock = ranked_lock(ADVANCE)
        self.jobs = Jobs()
        self.rehearsal: Rehearsal = NO_REHEARSAL
        self.advance_log: list[ProcessedEvent] | None = None  # the log of the current advance
        self.is_stopping = False  # a call has asked the current advance to stop
        self.is_moment_cut = False  # the next advance reports the rest of the current moment
        # The ETag and body of some orders, by order id: a cache for the web layer.
        self.answer_cache: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self.scan_forms: OrderedDict[str, str] = OrderedDict()  # created orders by form id
        self.running_requests: dict[str, TrackedRequest] = {}  # requests with a key, by its digest
        self.orders_created = 0
        self.slots = Slots()

    @property
    def awaits_advance(self) -> bool:
        """Whether the rest of the current moment is left to the next advance; a running clock goes on."""
        return self.is_moment_cut and not self.state.clock.running

    @property
    def is_advancing(self) -> bool:
        """Whether an advance is moving the clock."""
        return self.advance_log is not None

    @property
    def is_idle(self) -> bool:
        """Whether no webhook is queued or in flight."""
        return self.outbox.is_idle

    def now(self) -> datetime:
        """Sandbox time; during an advance, the time of its current event."""
        clock = self.state.clock
        if not clock.running or self.is_advancing:
            return self.timeline.now
        return max(self.timeline.now, clock.read())

    def webhooks_to_send(self) -> Iterator[QueuedDelivery]:
        """Yield those of the epoch's webhooks that must be sent now.

        A pending webhook that is not on the agenda was in flight.
        """
        later = {due.item.delivery_id for due in self.timeline if type(due.item) is AttemptDelivery}
        for delivery in self.store.deliveries():
            if delivery.state is DeliveryState.PENDING and delivery.id not in later:
                yield QueuedDelivery(delivery.id, delivery.order_id)

    def unsent_webhooks(self) -> list[ReachedStatus]:
        """Return the statuses whose webhooks were not sent because no address was set, oldest first."""
        if self.store.deliveries_dropped:
            return []  # a dropped webhook looks like one that was never sent
        unsent = unannounced(self.journal.of(ReachedStatus), self.store.deliveries())
        return [reached for reached in unsent if self.store.order(reached.order_id) is not None]

    def find_order(self, order_id: str) -> Order:
        """Return the newest version of an order or refund.

        Raises:
            Unknown: the project has no such order.
        """
        order = self.store.order(order_id)
        if order is None:
            raise Unknown(f"there is no order {order_id!r} in this project")
        return order

    def find_qr_request(self, qr_id: str) -> QrRequest:
        """Return a QR request.

        Raises:
            Unknown: the project has no such QR request.
        """
        request = self.store.qr_request(qr_id)
        if request is None:
            raise Unknown(f"there is no QR request {qr_id!r} in this project")
        return request

    def saved_answer(self, key_digest: str) -> SavedAnswer | None:
        """Return the answer to an executed request with this key, for an hour of sandbox time (A57)."""
        saved = self.store.answer(key_digest)
        return saved if saved is not None and self.now() < saved.at + SAVED_FOR else None

    def terms(self, now: datetime, settings: Settings | None = None, ids: Ids | None = None) -> Terms:
        """Return the parts of the project that payment methods use; an edit passes its own versions."""
        settings = settings or self.state.settings
        return Terms(
            now,
            settings.is_test,
            settings.features,
            self.store.credential,
            ids or self.ids,
            banks=settings.banks,
            issuer_required=settings.issuer_required,
        )

    def etag(self, order: Order) -> str:
        """Return the ETag of an order; it depends on the version and on the presentation settings."""
        number = f".{self.number}" if self.number else ""  # a restored epoch reuses ids of earlier epochs
        return f"{order.id[:8]}-{order.version}{self.state.settings.presentation}{number}"

    def check_etag(self, order_id: str, if_match: IfMatch) -> None:
        """Check that an order is unchanged since the merchant's last read.

        Raises:
            Unknown: the project has no such order.
            OrderChanged: the order's ETag does not match (SET-33).
        """
        etag = self.etag(self.find_order(order_id))
        if not if_match(etag):
            raise OrderChanged(f"order {order_id} has changed: its ETag is now {etag!r}; read it again")

    def counters(self, state: State, ids: Ids, sequence: int, now: datetime) -> Counters:
        """Return the counters saved by a durable store in addition to records."""
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
