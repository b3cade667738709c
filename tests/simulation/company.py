"""Three servers with the real edit, courier, advance and claims, on a simulated database, and what must hold."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import run_due
from payment_sandbox.operations.authorizations import apply_to_ledger, capture_amount
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import ClockBusy, Refusal, Unknown
from payment_sandbox.orders.webhooks import Reply, WebhookRequest
from payment_sandbox.projects.calling import Caller, TrackedRequest, as_caller
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import NoServices, Project, ProjectReset
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.courier import Courier
from payment_sandbox.storage.codec import NotStored, StepsInterrupted
from payment_sandbox_company.cluster import ClusterRegistry, is_claimed, storage_of
from payment_sandbox_company.replicas import CLAIM_SECONDS, UnknownOutcome
from tests.simulation.database import Broken, Fault, Killed, Mistake, Shared, SimulatedDatabase
from tests.simulation.world import World
from tests.support.state_files import snapshot_of

SERVERS: Final = 3
CATALOGUE: Final = Catalogue(METHOD_NAMES, check_scenario_settings, default=default_scenario())
CENTS: Final = 100
TRIES: Final = 4  # of a client that may ask again
HEALED_SECONDS: Final = 5 * CLAIM_SECONDS
BUSY_SECONDS: Final = 1000.0


class Services(NoServices):
    """A server's services, on the thread of whoever has the turn."""

    delivers = True

    def __init__(self, server: "Server", world: World) -> None:
        super().__init__(world.real)
        self._server = server
        self._world = world
        self.carried: list[tuple[Project, Epoch]] = []

    def deliver_outbox(self, project: Project, epoch: Epoch) -> None:
        """Deliver it as soon as nobody else has something to do on this server."""
        self.carried.append((project, epoch))

    def deliver_deferred(self, is_enough: Callable[[], bool]) -> None:
        """Deliver what is queued."""
        while self.carried and not is_enough():
            project, epoch = self.carried.pop(0)
            self._server.courier.carry_all(project, epoch)

    def deliver(self, project: Project, epoch: Epoch, queued: QueuedDelivery) -> None:
        """Deliver one webhook."""
        self._server.courier.deliver(project, epoch, queued)

    def pause(self, seconds: float) -> None:
        """Let other servers work."""
        self._world.wait(seconds)


class SimulatedCourier(Courier):
    """The courier, whose pauses are those of the world."""

    def __init__(self, server: "Server", company: "Company") -> None:
        super().__init__(lambda request, copies: company.receive(server, request))
        self._company = company
        self._server = server

    def carry_all(self, project: Project, epoch: Epoch) -> None:
        """Deliver what is in the outbox."""
        self._deliver_outbox(project, epoch)

    def pause(self, seconds: float) -> bool:
        """Let other servers work."""
        self._company.world.wait(seconds)
        self._server.database.expect_alive()
        return self._company.gives_up_webhooks


class Server:
    """One server's memory."""

    def __init__(self, company: "Company", name: str) -> None:
        self.database = SimulatedDatabase(company.shared, name)
        self.services = Services(self, company.world)
        self.courier = SimulatedCourier(self, company)
        database: Any = self.database
        self.registry = ClusterRegistry(self.services, database, CATALOGUE, ids=None)
        self._world = company.world
        self._is_busy = False

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Do one thing at a time."""
        self._world.wait(BUSY_SECONDS, lambda: not self._is_busy)
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def project(self, project_id: str) -> Project:
        """The project as it is now."""
        project = self.registry.find_by_id(project_id)
        assert project is not None, "nobody deletes it"
        return project

    def tend(self) -> None:
        """Do what a server does in the background."""
        try:
            for project in self.registry.loaded_projects():
                if is_claimed(project):
                    self.project(project.project_id)
                    if storage_of(project).is_hold_stale:
                        self.registry.follow(project, takes_over=True)
                    self.database.renew(project.project_id)
            for project_id in self.database.attend():
                attended = self.registry.find_by_id(project_id)
                if attended is not None and self.registry.follow(attended, takes_over=True):
                    run_due(attended)
            self.services.deliver_deferred(lambda: False)
        except (NotStored, ProjectReset, RuntimeError):
            pass


@dataclass
class Acknowledged:
    """What was acknowledged, by what they asked for."""

    done: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)  # may have happened
    advanced: int = 0
    perhaps_advanced: int = 0


class Company:
    """A run: its servers, its clients, its shop."""

    def __init__(self, seed: int, faults: Mapping[int, Fault], mistake: Mistake | None = None) -> None:
        self.world = World(seed)
        self.shared = Shared(self.world, {}, mistake)
        self.gives_up_webhooks = mistake is Mistake.GIVES_UP
        self.acknowledged = Acknowledged()
        self.received: list[str] = []  # ids of orders
        self._names = 0
        self._requests = 0
        self._answers_lost = 0
        self.servers = [self._server() for _ in range(SERVERS)]
        made, _ = self.servers[0].registry.create(
            {"webhook_url": "http://shop.test/", "clock": "frozen@2027-01-01T00:00:00Z", "seed": 1}
        )
        self.project_id = made.project_id
        self.orders: list[str] = []
        self.shared.statements = 0
        self.shared.faults = dict(faults)

    def _server(self) -> Server:
        self._names += 1
        return Server(self, f"s{self._names}")

    # The shop

    def receive(self, server: Server, request: WebhookRequest) -> list[Reply]:
        """A webhook arrives, and its answer is on its way for a while."""
        server.database.expect_alive()
        self.received.append(json.loads(request.body)["order_id"])
        try:
            with self.shared.statement(server.database):
                pass
        except Broken:  # it is a message here: the shop's answer is lost
            self._answers_lost += 1
        return [Reply(1.0, status=200)]

    # Clients

    def ask(self, number: int, name: str, work: Callable[[Project], object]) -> None:
        """Ask a server for something until it is known whether it has happened."""
        self._requests += 1
        request_id = f"r{self._requests}"
        is_unknown = False
        for attempt in range(TRIES):
            server = self.servers[(number + attempt) % SERVERS]
            try:
                with server.busy():
                    project = server.project(self.project_id)
                    if project.storage.answer(project, request_id) is None:
                        client = Caller()
                        client.tracked = TrackedRequest(
                            request_id, lambda edit: _answer(edit, name), is_named=True
                        )
                        with as_caller(client):
                            work(project)
                self.acknowledged.done[name] += 1
                return
            except UnknownOutcome:
                is_unknown = True
            except (NotStored, RuntimeError):
                pass  # it has not happened
            except Killed:
                self.replace(server)
                is_unknown = True
            except Refusal:
                break
        self.acknowledged.unknown[name] += is_unknown

    def advance(self, number: int, hours: int) -> None:
        """Move the clock; a client reads it if the move ended early."""
        server = self.servers[number]
        try:
            with server.busy():
                advance_clock(server.project(self.project_id), {"by": f"PT{hours}H"})
            self.acknowledged.advanced += hours
        except (StepsInterrupted, UnknownOutcome, Killed) as ended:
            self.acknowledged.perhaps_advanced += hours
            if isinstance(ended, Killed):
                self.replace(server)
        except (NotStored, ClockBusy, RuntimeError):
            pass

    def tend(self, number: int) -> None:
        """Let a server work in the background."""
        server = self.servers[number]
        try:
            with server.busy():
                server.tend()
        except Killed:
            self.replace(server)

    def replace(self, dead: Server) -> None:
        """Start another server instead of one that is dead."""
        if dead in self.servers:
            self.servers[self.servers.index(dead)] = self._server()

    def work(self, number: int) -> None:
        """What the clients of one server ask for: orders that are paid and captured, and time that passes."""
        for turn in range(2):
            name = f"order {number}.{turn}"
            self.ask(number, name, lambda project, name=name: _create(project, name, "P7D"))  # type: ignore[misc]
            self.ask(number, f"{name} pay", lambda project, name=name: _pay(project, name))  # type: ignore[misc]
            self.tend(number)
            for part in range(2):
                capture = f"{name} capture {part}"
                self.ask(number, capture, lambda project, name=name: _capture(project, name))  # type: ignore[misc]
            if number == turn:
                expiring = f"{name} that expires"
                self.ask(number, expiring, lambda project, name=expiring: _create(project, name, "PT10M"))  # type: ignore[misc]
                self.advance(number, 1)
            self.tend(number)

    # A run

    def run(self) -> None:
        """Work with faults, then heal, and compare what is there with what was acknowledged."""
        self.world.run([lambda number=number: self.work(number) for number in range(SERVERS)])  # type: ignore[misc]
        self.shared.faults = {}
        self.shared.heal()
        ends = self.world.seconds + HEALED_SECONDS
        while self.world.seconds < ends:
            for number in range(SERVERS):
                self.tend(number)
            self.world.seconds += 1.0
        self._compare()

    def _compare(self) -> None:
        projects = [server.project(self.project_id) for server in self.servers]
        fresh = self._server().project(self.project_id)
        stored = json.dumps(snapshot_of(fresh), sort_keys=True)
        for project in projects:
            assert json.dumps(snapshot_of(project), sort_keys=True) == stored, "a server's memory is wrong"
        assert not storage_of(fresh).replica.jobs, "a webhook is not sent"
        assert not any(project.epoch.failed_commands for project in projects), "an event was set aside"
        for project in projects:
            advance_clock(project, {"by": "PT0S"})  # nobody holds the clock any more
        self._compare_orders(fresh)
        self._compare_webhooks(fresh)
        hours = (fresh.now() - fresh.identity.start.at).total_seconds() / 3600  # type: ignore[operator]
        least, most = (
            self.acknowledged.advanced,
            self.acknowledged.advanced + self.acknowledged.perhaps_advanced,
        )
        assert least <= hours <= most, f"the clock moved {hours} hours, of {least} to {most}"

    def _compare_orders(self, project: Project) -> None:
        """Each acknowledged effect is there once, and none of what did not happen."""
        there: Counter[str] = Counter()
        for order in project.epoch.store.orders_newest_first():
            name = str(order.sent.get("merchant_order_id"))
            there[name] += 1
            authorization = order.transactions[0].authorization
            there[f"{name} capture"] += len(authorization.entries) if authorization is not None else 0
        done, unknown = (
            self._counted(counter) for counter in (self.acknowledged.done, self.acknowledged.unknown)
        )
        for name in {*there, *done, *unknown}:
            least, most = done[name], done[name] + unknown[name]
            assert least <= there[name] <= most, f"{name}: {there[name]}, of {least} to {most}"

    @staticmethod
    def _counted(counter: Counter[str]) -> Counter[str]:
        counted: Counter[str] = Counter()
        for name, count in counter.items():
            if not name.endswith(" pay"):
                order, _, part = name.partition(" capture ")
                counted[f"{order} capture" if part else order] += count
        return counted

    def _compare_webhooks(self, project: Project) -> None:
        """Each was delivered, those of an order in order, and repeated at most once for each fault."""
        received = Counter(self.received)
        for order in project.epoch.store.orders_newest_first():
            deliveries = project.epoch.store.deliveries_of(order.id)
            assert all(delivery.state == "delivered" for delivery in deliveries), "a webhook is pending"
            assert all(len(delivery.attempts) == 1 for delivery in deliveries), "an attempt counts twice"
            times = [attempt.real_at for delivery in deliveries for attempt in delivery.attempts]
            assert times == sorted(times), "webhooks of an order overtook each other"
            repeats = received[order.id] - len(deliveries)
            assert 0 <= repeats <= self.shared.injected, f"{repeats} repeats of a webhook"


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


def _answer(edit: Edit, name: str) -> str | None:
    return name if edit.orders else None
