"""Three servers on a simulated database, with real edits, couriers, advances and claims; invariants."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast

from payment_sandbox.delivery.outbox import DeliveringOutbox
from payment_sandbox.delivery.receivers import DeliveryOutcome, PreparedAttempt, Receiver
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import run_due
from payment_sandbox.operations.authorizations import apply_to_ledger, capture_amount
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.move_clock import advance_clock
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import ClockBusy, Invalid, Refusal, Unknown
from payment_sandbox.orders.webhooks import Reply
from payment_sandbox.projects.caller import (
    AlreadyAnswered,
    Caller,
    Carrier,
    SavedAnswer,
    TrackedRequest,
    WaitingThread,
    as_waiting_thread,
)
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.project import Project, ProjectReset, Services
from payment_sandbox.projects.queued_deliveries import Outbox, QueuedDelivery
from payment_sandbox.storage.codec import NotStored, StepsInterrupted
from payment_sandbox.storage.snapshot import restore
from payment_sandbox_company.cluster import ClusterRegistry, is_claimed, store_of
from payment_sandbox_company.postgresql import Database
from payment_sandbox_company.project_rows import CLAIM_SECONDS, UnknownOutcome
from payment_sandbox_company.shared_storage import flush_all
from tests.simulation.database import Broken, Fault, Killed, SharedState, SimulatedDatabase
from tests.simulation.world import World
from tests.support.projects import catalogue
from tests.support.state_files import snapshot_of

SERVERS: Final = 3
CATALOGUE: Final = catalogue()
CENTS: Final = 100
ATTEMPTS_MAX: Final = 4  # of a client that resends calls
RECOVERY_SECONDS: Final = 5 * CLAIM_SECONDS
BUSY_SECONDS: Final = 1000.0
BACKGROUND_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 0.2
ADVANCE_MINUTES: Final = 15  # of each server: all in all shorter than keys of requests are remembered


class SimulatedServices(Services):
    """A server's services, on the thread whose turn it is."""

    def __init__(self, server: "Server", world: World) -> None:
        super().__init__(world.real)
        self._server = server

    def create_outbox(self, project: Project) -> Outbox:
        """Create an outbox whose webhooks the simulated courier delivers."""
        return DeliveringOutbox(project, self._server.courier)


class SimulatedCourier:
    """A courier that delivers to the simulated shop, on the thread that holds the server."""

    def __init__(self, server: "Server", company: "Company") -> None:
        self._company = company
        self._server = server
        self.carriers: deque[Carrier] = deque()

    def receiver(self, project: Project, url: str) -> Receiver:
        """Return the shop."""
        return self

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send the webhook to the simulated shop."""
        return [DeliveryOutcome(self._company.receive(self._server, attempt.queued), attempt.real_at)]

    def delivers_on_waiting_thread(self, project: Project) -> bool:
        """Deliver on the thread that holds the server."""
        return True

    def run(self, work: Callable[[], None]) -> None:
        """Let the next thread that holds the server do the work."""
        self.carriers.append(DeferredCarrier(work))

    def pause(self, seconds: float) -> bool:
        """Let other servers work."""
        self._company.world.wait(seconds)
        self._server.database.expect_alive()
        return False


class DeferredCarrier(NamedTuple):
    """Deliveries that a thread has handed over."""

    work: Callable[[], None]

    def carry(self, is_enough: Callable[[], bool]) -> None:
        """Deliver all webhooks."""
        self.work()

    def start_thread(self) -> None:
        """Wait for a thread that holds the server."""


class Server:
    """A simulated server: its memory and its background work."""

    def __init__(self, company: "Company", name: str) -> None:
        self.database = SimulatedDatabase(company.shared, name)
        self.courier = SimulatedCourier(self, company)
        self.services = SimulatedServices(self, company.world)
        database: Any = self.database
        self.registry = ClusterRegistry(self.services, database, CATALOGUE, ids=None)
        self._world = company.world
        self._is_busy = False

    @contextmanager
    def hold(self) -> Iterator[WaitingThread]:
        """Hold the server for one piece of work."""
        self._world.wait(BUSY_SECONDS, lambda: not self._is_busy)
        self._is_busy = True
        try:
            with as_waiting_thread() as waiting:
                waiting.carriers = self.courier.carriers
                yield waiting
        finally:
            self._is_busy = False

    def project(self, project_id: str) -> Project:
        """Return the current project."""
        project = self.registry.find_by_id(project_id)
        assert project is not None, "the simulation never deletes the project"
        return project

    def run_background_work(self, thread: WaitingThread) -> None:
        """Do the background work of a server on a thread that holds it."""
        try:
            for project in self.registry.loaded_projects():
                if is_claimed(project):
                    self.project(project.project_id)
                    if store_of(project).is_hold_stale:
                        self.registry.follow(project, takes_over=True)
                    self.database.renew(project.project_id)
            for project_id in self.database.attend():
                attended = self.registry.find_by_id(project_id)
                if attended is not None and self.registry.follow(attended, takes_over=True):
                    run_due(attended)
            thread.deliver(lambda: False)
        except (NotStored, ProjectReset, RuntimeError):
            pass


@dataclass
class CallCounts:
    """Counts of acknowledged and uncertain calls, by the name of the call."""

    succeeded: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)  # calls with an unknown outcome
    advanced: int = 0
    possibly_advanced: int = 0


class Company:
    """A simulation run with its servers, clients and shop."""

    def __init__(self, seed: int, faults: Mapping[int, Fault]) -> None:
        self.world = World(seed)
        self.shared = SharedState(self.world, {})
        self.counts = CallCounts()
        self.received: list[QueuedDelivery] = []  # the webhooks that the shop received, in order
        self._names = 0
        self._requests = 0
        self._lost_responses = 0
        self._working = 0  # clients with calls to make
        self.servers = [self._server() for _ in range(SERVERS)]
        project, _ = self.servers[0].registry.create(
            {"webhook_url": "http://shop.test/", "clock": "frozen@2027-01-01T00:00:00Z", "seed": 1}
        )
        self.project_id = project.project_id
        self.orders: list[str] = []
        self.shared.statements = 0
        self.shared.faults, self.faults = dict(faults), len(faults)

    def _server(self) -> Server:
        self._names += 1
        return Server(self, f"s{self._names}")

    # The shop

    def receive(self, server: Server, queued: QueuedDelivery) -> Reply:
        """Receive a webhook; its response may be lost."""
        server.database.expect_alive()
        self.received.append(queued)
        try:
            with self.shared.statement(server.database):
                pass
        except Broken:  # the broken connection is that to the shop, whose response is lost
            self._lost_responses += 1
        return Reply(1.0, status=200)

    # Clients

    def call(self, number: int, name: str, work: Callable[[Project], object]) -> None:
        """Make a call, and resend it to other servers until its outcome is known."""
        self._requests += 1
        request_id = f"request {self._requests}"
        is_unknown = False
        for attempt in range(ATTEMPTS_MAX):
            server = self.servers[(number + attempt) % SERVERS]
            try:
                with server.hold():
                    project = server.project(self.project_id)
                    client = Caller()
                    client.tracked = TrackedRequest(name, partial(_answer, name), request_id)
                    with client, suppress(AlreadyAnswered):
                        work(project)
                self.counts.succeeded[name] += 1
                return
            except UnknownOutcome:
                is_unknown = True
            except (NotStored, RuntimeError):
                pass  # the call had no effect
            except Killed:
                self.replace(server)
                is_unknown = True
            except (Refusal, Invalid):  # such as that of a call for an order that a reset has discarded
                break
        self.counts.unknown[name] += is_unknown

    def advance(self, number: int, minutes: int) -> None:
        """Advance the clock; an advance that ends early may have moved it in part."""
        server = self.servers[number]
        try:
            with server.hold():
                advance_clock(server.project(self.project_id), {"by": f"PT{minutes}M"})
            self.counts.advanced += minutes
        except (StepsInterrupted, UnknownOutcome, Killed) as ended:
            self.counts.possibly_advanced += minutes
            if isinstance(ended, Killed):
                self.replace(server)
        except (NotStored, ClockBusy, RuntimeError):
            pass

    def run_background_work(self, number: int) -> None:
        """Let a server do its background work."""
        server = self.servers[number]
        try:
            with server.hold() as thread:
                server.run_background_work(thread)
        except Killed:
            self.replace(server)

    def replace(self, dead: Server) -> None:
        """Start a new server in place of a dead one."""
        if dead in self.servers:
            self.servers[self.servers.index(dead)] = self._server()

    def work(self, number: int) -> None:
        """Make the calls of one server's clients: create, pay and capture orders, and advance the clock."""
        for turn in range(2):
            name = f"order {number}.{turn}"
            self.call(number, name, lambda project, name=name: _create(project, name, "P7D"))  # type: ignore[misc]
            self.call(number, f"{name} pay", lambda project, name=name: _pay(project, name))  # type: ignore[misc]
            self.run_background_work(number)
            for part in range(2):
                capture = f"{name} capture {part}"
                self.call(number, capture, lambda project, name=name: _capture(project, name))  # type: ignore[misc]
            if number == turn:
                expiring = f"{name} that expires"
                self.call(number, expiring, lambda project, name=expiring: _create(project, name, "PT10M"))  # type: ignore[misc]
                self.advance(number, ADVANCE_MINUTES)
            self.run_background_work(number)

    # A run

    def run(self) -> None:
        """Run all clients with faults, then heal, and compare the state with the acknowledged calls."""
        self._working = SERVERS
        clients = [partial(self._work_as_client, number) for number in range(SERVERS)]
        self.world.run(
            [*clients, *(partial(self._repeat_background_work, number) for number in range(SERVERS))]
        )
        self.shared.faults = {}
        self.shared.heal()
        end_seconds = self.world.seconds + RECOVERY_SECONDS
        while self.world.seconds < end_seconds:
            for number in range(SERVERS):
                self.run_background_work(number)
            self.world.seconds += 1.0
        self._compare()

    def _work_as_client(self, number: int) -> None:
        try:
            self.work(number)
        finally:
            self._working -= 1

    def _repeat_background_work(self, number: int) -> None:
        """Do a server's background work until all clients are done, even while another server pauses."""
        while self._working:
            self.world.wait(BACKGROUND_SECONDS, lambda: not self._working)
            self.run_background_work(number)

    def _compare(self) -> None:
        projects = [server.project(self.project_id) for server in self.servers]
        reloaded = self._server().project(self.project_id)
        stored = json.dumps(snapshot_of(reloaded), sort_keys=True)
        for project in projects:
            assert json.dumps(snapshot_of(project), sort_keys=True) == stored, (
                "a server's memory differs from the database"
            )
        assert not store_of(reloaded).replica.jobs, "a webhook was not sent"
        assert not any(project.epoch.failed_commands for project in projects), "an event was set aside"
        for number, (server, project) in enumerate(zip(self.servers, projects, strict=True)):
            with server.hold():
                advance_clock(project, {"by": "PT0S"})  # the clock must be free
            self.run_background_work(number)  # which sends the webhooks of an event left to this advance
        reloaded = self._server().project(self.project_id)  # an interrupted advance leaves events to this one
        self._compare_orders(reloaded)
        self._compare_webhooks(reloaded)
        minutes = (reloaded.now() - reloaded.identity.start.at).total_seconds() / 60  # type: ignore[operator]
        minimum, maximum = (
            self.counts.advanced,
            self.counts.advanced + self.counts.possibly_advanced,
        )
        assert minimum <= minutes <= maximum, f"the clock moved {minutes} minutes, of {minimum} to {maximum}"

    def _compare_orders(self, project: Project) -> None:
        """Check that each acknowledged effect exists once, and no refused one."""
        effects: Counter[str] = Counter()
        for order in project.epoch.store.orders_newest_first():
            name = str(order.sent.get("merchant_order_id"))
            effects[name] += 1
            authorization = order.transactions[0].authorization
            effects[f"{name} capture"] += len(authorization.entries) if authorization is not None else 0
        succeeded, unknown = (
            self._count_effects(counter) for counter in (self.counts.succeeded, self.counts.unknown)
        )
        for name in {*effects, *succeeded, *unknown}:
            minimum, maximum = succeeded[name], succeeded[name] + unknown[name]
            assert minimum <= effects[name] <= maximum, f"{name}: {effects[name]}, of {minimum} to {maximum}"

    @staticmethod
    def _count_effects(counter: Counter[str]) -> Counter[str]:
        effects: Counter[str] = Counter()
        for name, count in counter.items():
            if not name.endswith(" pay"):
                order, _, part = name.partition(" capture ")
                effects[f"{order} capture" if part else order] += count
        return effects

    def _compare_webhooks(self, project: Project) -> None:
        """Check that webhooks arrived in order.

        Only a server that dies, or can record nothing for as long as its claim lasts, causes a repetition:
        by a pause, or by at least two faults of the database in a row.
        """
        for order in project.epoch.store.orders_newest_first():
            deliveries = project.epoch.store.deliveries_of(order.id)
            assert all(delivery.state == "delivered" for delivery in deliveries), "a webhook is pending"
            assert all(len(delivery.attempts) == 1 for delivery in deliveries), "an attempt counts twice"
            numbers = {delivery.id: number for number, delivery in enumerate(deliveries)}
            arrived = [numbers[queued.delivery_id] for queued in self.received if queued.order_id == order.id]
            assert arrived == sorted(arrived), f"webhooks of an order overtook each other: {arrived}"
            repeats, allowed = len(arrived) - len(deliveries), self.shared.absences + self.faults // 2
            assert 0 <= repeats <= allowed, f"{repeats} repeats of a webhook: {arrived}"


class ResettingCompany(Company):
    """A simulation run in which clients also reset and restore the project, and set faults for their orders."""

    def work(self, number: int) -> None:
        """Make the calls of one server's clients."""
        for turn in range(3):
            name = f"order {number}.{turn}"
            self.call(number, name, lambda project, name=name: _create(project, name, "P7D"))  # type: ignore[misc]
            self.call(number, f"{name} faults", lambda project, name=name: _set_fault(project, name))  # type: ignore[misc]
            self.call(number, f"{name} pay", lambda project, name=name: _pay(project, name))  # type: ignore[misc]
            self.world.wait(PAUSE_SECONDS)  # the journal is still to be written
            if number == turn:
                self.call(number, f"reset {number}", lambda project: project.reset(default_scenario()))
            elif (number + 1) % SERVERS == turn:
                self.call(number, f"restore {number}", _restore)
            self.run_background_work(number)

    def run_background_work(self, number: int) -> None:
        """Let a server list the projects, write journals, and do its other background work."""
        server = self.servers[number]
        assert [each.problem for each in server.registry.listed()] == [None]
        try:
            with server.hold():
                flush_all(cast(Database, server.database))
        except NotStored:
            pass
        except Killed:
            self.replace(server)
        row = self.shared.rows[self.project_id]
        logged = {json.loads(each.body)["order_id"] for each in row.history if each.kind == "status"}
        stored = {order_id for kind, order_id in row.records if kind == "orders"}
        assert logged <= stored, "the journal has a record of an earlier epoch"
        super().run_background_work(number)

    def _compare_orders(self, project: Project) -> None:
        """Check that each order exists once at most."""
        made = self.counts.succeeded + self.counts.unknown
        orders = project.epoch.store.orders_newest_first()
        names = Counter(str(order.sent["merchant_order_id"]) for order in orders)
        assert not [name for name, count in names.items() if count > min(made[name], 1)]

    def _compare_webhooks(self, project: Project) -> None:
        """Check that all webhooks were sent, those of a restored snapshot included."""
        deliveries = project.epoch.store.deliveries()
        assert all(delivery.state == "delivered" for delivery in deliveries), "a webhook is pending"
        received = {queued.delivery_id for queued in self.received}
        assert {delivery.id for delivery in deliveries} <= received


def _restore(project: Project) -> None:
    state = json.loads(json.dumps({**snapshot_of(project), "decisions": [], "unsent": []}))
    for delivery in state["deliveries"]:
        delivery |= {"state": "pending", "attempts": []}
    state["agenda"] = [due for due in state["agenda"] if "delivery_id" not in due["command"]]
    restore(project, state | {"swapped": []})


def _set_fault(project: Project, name: str) -> None:
    rule = {"when": {"order_id": _order(project, name).id}, "then": {"duplicate": 2}}
    project.put_faults({"webhooks": [rule]})


def _create(project: Project, name: str, period: str) -> None:
    card = {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": period}
    body = {
        "currency": "EUR",
        "amount": 10 * CENTS,
        "client": {},
        "merchant_order_id": name,
        "transactions": [card],
    }
    create_order(project, body)


def _order(project: Project, name: str) -> Order:
    for order in project.epoch.store.orders_newest_first():
        if order.sent.get("merchant_order_id") == name:
            return order
    raise Unknown("there is no such order")


def _pay(project: Project, name: str) -> None:
    act(project, _order(project, name).id, Action("customer", "pay"))


def _capture(project: Project, name: str) -> None:
    order = _order(project, name)
    apply_to_ledger(project, order.id, order.transactions[0].id, capture_amount(CENTS, None), None)


def _answer(name: str, edit: Edit) -> SavedAnswer | None:
    tracked = edit.caller.tracked
    if tracked is None or not edit.orders:
        return None
    return SavedAnswer(tracked.key_digest, edit.now, name, 200, None, None, "")
