"""Kill, stop and resume servers that share a database, and interrupt the database, under load.

Clients record what was acknowledged; afterwards, every acknowledged change must exist exactly once.
"""

import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import Event, Lock
from time import perf_counter
from typing import Any, Final, NamedTuple

import requests

from payment_sandbox.kernel.ids import Ids
from payment_sandbox_company.replicas import CLAIM_SECONDS
from tests.attack import Report
from tests.support.cut_wire import Wire
from tests.support.driver import card
from tests.support.ports import free_port
from tests.support.postgres import Postgres, running
from tests.support.shop import Shop

SERVERS: Final = 3
CLIENTS: Final = 16
PROJECTS: Final = 8
PAUSE_SECONDS: Final = 0.7
STOP_SECONDS: Final = CLAIM_SECONDS + 3
WAIT_SECONDS_MAX: Final = 20
FREQUENT_CHECKPOINTS: Final = ("checkpoint_timeout=30s", "max_wal_size=64MB")  # for a short crash recovery
READ_TIMEOUT_SECONDS: Final = 3.0  # after which a load balancer tries another server
CENTS: Final = 100
UNAVAILABLE: Final = 503
UNCHANGED_TEXT: Final = "nothing has changed"
UNKNOWN_TEXT: Final = "is unknown"
CLIENT_ERROR_TEXT: Final = '"status": 4'  # a refusal with a client error
ATTEMPTS_MAX: Final = 5
RETRY_PERIOD: Final = "PT20M"  # the time of all retries of a webhook that the busy shop missed


class Member:
    """A server process, which is restarted after each kill."""

    def __init__(self, state: str, port: int, *options: str) -> None:
        self.wire = Wire(port)
        state = state.replace(str(port), str(self.wire.port))
        self._command = [
            sys.executable,
            "-m",
            "tests.attack.company_server",
            state,
            str(free_port()),
            *options,
        ]
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it serves."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def send(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill and restart the process."""
        self._kill()
        self.start()

    def end(self) -> None:
        """Kill the process without restarting it."""
        with suppress(OSError):
            self.send(signal.SIGCONT)
        self._kill()

    def _kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Disruption(NamedTuple):
    """A kill or stop of a server, and the affected projects."""

    at: float
    event: str
    project_ids: frozenset[str]


@dataclass
class History:
    """Attempted and acknowledged calls of all clients, and their waits."""

    attempted: Counter[tuple[str, str]] = field(default_factory=Counter)  # by order and kind of call
    acknowledged: Counter[tuple[str, str]] = field(default_factory=Counter)
    possible_orders: Counter[tuple[str, str]] = field(default_factory=Counter)  # by project; not acknowledged
    ambiguous_refusals: list[str] = field(default_factory=list)  # refusals that leave the outcome open
    order_keys: dict[str, str] = field(default_factory=dict)  # of each order's project
    longest_wait_seconds: float = 0.0  # since the newest disruption during the wait
    longest_wait: Sequence[str] = ()  # answers and disruptions during the longest wait
    longest_overall_seconds: float = 0.0  # from the first failed call on
    disruptions: list[Disruption] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)  # starts and ends
    _lock: Lock = field(default_factory=Lock)

    def note(self, counter: Counter[tuple[str, str]], order_id: str, kind: str) -> None:
        """Count a call of some kind for an order."""
        with self._lock:
            counter[order_id, kind] += 1

    def record_wait(
        self, project_id: str, start: float, end: float, answers: Sequence[tuple[float, str]]
    ) -> None:
        """Record the time until some server answered, without the time without a database.

        The server that takes a project over may be killed, too, which starts the limit anew.
        """
        disruptions = [
            each for each in self.disruptions if project_id in each.project_ids and start < each.at < end
        ]
        since = disruptions[-1].at if disruptions else start
        events = sorted([*answers, *((each.at, each.event) for each in disruptions)])
        with self._lock:
            self.longest_overall_seconds = max(
                self.longest_overall_seconds, self._seconds_with_database(start, end)
            )
            if (seconds := self._seconds_with_database(since, end)) > self.longest_wait_seconds:
                self.longest_wait_seconds = seconds
                self.longest_wait = [f"{at - start:.1f} s {event}" for at, event in events]

    def _seconds_with_database(self, start: float, end: float) -> float:
        outage_seconds = sum(max(0.0, min(end, until) - max(start, since)) for since, until in self.outages)
        return end - start - outage_seconds


class ProjectAccess(NamedTuple):
    """A project and its API key."""

    project_id: str
    key: str


class Client:
    """A merchant's back end behind a load balancer, which sends each call to a random server."""

    def __init__(
        self, members: Sequence[Member], project: ProjectAccess, number: int, history: History
    ) -> None:
        self._members = members
        self._ids = Ids(number)
        self._project_id, self._key = project
        self._history = history
        self.newest_answer = ""
        self.had_no_effect = True  # whether the newest unacknowledged call had no effect
        self.http = requests.Session()
        self.http.trust_env, self.http.auth = False, (self._key, "")

    def trade(self, is_over: Event) -> None:
        """Create, pay, partly capture and refund orders until ``is_over`` is set."""
        history = self._history
        while not is_over.is_set():
            body = {"currency": "EUR", "amount": 10 * CENTS, "transactions": [card(capture_mode="manual")]}
            created = self._call("POST", "/v1/orders/", body)
            if created is None:
                if not self.had_no_effect:
                    history.note(history.possible_orders, self._key, "order")
                continue
            history.note(history.acknowledged, self._key, "orders")
            order_id = created["id"]
            history.order_keys[order_id] = self._key
            act = f"/control/orders/{order_id}/act/"
            if self._call("POST", act, {"actor": "customer", "action": "pay"}) is None:
                continue
            transaction_id = created["transactions"][0]["id"]
            for kind, path in (("capture", f"transactions/{transaction_id}/captures/amount/"),) * 4:
                self._count(order_id, kind, f"/v1/orders/{order_id}/{path}")
            self._count(order_id, "refund", f"/v1/orders/{order_id}/refunds/")
            self._read(order_id)

    def _count(self, order_id: str, kind: str, path: str) -> None:
        history = self._history
        acknowledged = self._call("POST", path, {"amount": CENTS})
        if acknowledged is not None or not self.had_no_effect:
            history.note(history.attempted, order_id, kind)
        if acknowledged is not None:
            history.note(history.acknowledged, order_id, kind)

    def _call(self, method: str, path: str, body: Any, timeout_seconds: float = 60.0) -> Any:
        """Return the acknowledgement, or None after a refusal. A call with an unknown outcome is repeated."""
        key = f"{self._ids.token('key')}"
        self.had_no_effect = True
        for _ in range(ATTEMPTS_MAX if method == "POST" else 1):
            answer = self._send(method, path, body, timeout_seconds, key)
            if answer is not None and answer.status_code in (200, 201):
                return answer.json()
            has_known_outcome = answer is not None and (
                answer.status_code != UNAVAILABLE or UNCHANGED_TEXT in answer.text
            )
            if answer is not None and not any(
                text in answer.text for text in (UNCHANGED_TEXT, UNKNOWN_TEXT, CLIENT_ERROR_TEXT)
            ):
                self._history.ambiguous_refusals.append(self.newest_answer)
            self.had_no_effect = self.had_no_effect and has_known_outcome
            if has_known_outcome:
                return None
        return None

    def _send(self, method: str, path: str, body: Any, seconds: float, key: str) -> Any:
        number = self._ids.number("server", len(self._members))
        url, headers = f"{self._members[number].url}{path}", {"Idempotency-Key": key}
        try:
            answer = self.http.request(method, url, json=body, timeout=seconds, headers=headers)
        except requests.RequestException as error:
            self.newest_answer = f"{number}: {type(error).__name__}"
            return None
        self.newest_answer = f"{number}: {answer.status_code} {answer.text[:200]}"
        return answer

    def _read(self, order_id: str) -> None:
        start = perf_counter()
        answers: list[tuple[float, str]] = []
        while self._call("GET", f"/v1/orders/{order_id}/", None, READ_TIMEOUT_SECONDS) is None:
            answers.append((perf_counter(), self.newest_answer))
            if perf_counter() - start > 3 * WAIT_SECONDS_MAX:
                break
        self._history.record_wait(self._project_id, start, perf_counter(), answers)


def attack(report: Report) -> None:
    """Disrupt the servers under load, then compare the stored orders with the acknowledged ones."""
    with _company(report) as company:
        history = History()
        is_over = Event()
        clients = [company.client(number, history) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            tasks = [pool.submit(client.trade, is_over) for client in clients]
            try:
                _disrupt(report, company, history)
            finally:
                is_over.set()
            for task in tasks:
                task.result()
        _compare(report, company, history)


class Company(NamedTuple):
    """Servers that share a database, their projects, and the shop that receives the webhooks."""

    database: Postgres
    state: str
    members: Sequence[Member]
    projects: Sequence[ProjectAccess]
    shop: Shop

    def client(self, number: int, history: History) -> Client:
        """Return a client of one of the projects."""
        return Client(self.members, self.projects[number % len(self.projects)], number, history)

    def disruption(self, member: Member, event: str) -> Disruption:
        """Return a disruption of a server, which may affect all projects."""
        ids = frozenset(project.project_id for project in self.projects)
        return Disruption(perf_counter(), f"a server was {event}", ids)


@contextmanager
def _company(report: Report, *options: str) -> Iterator[Company]:
    with running(*FREQUENT_CHECKPOINTS) as database, ExitStack() as stack:
        state = database.new_database()
        shop = Shop()
        stack.callback(shop.close)
        members = []
        for _ in range(SERVERS):
            members.append(Member(state, database.port, *options))
            stack.callback(members[-1].end)
        settings = {"clock": "running", "webhook_url": shop.url}
        url = f"{members[0].url}/control/projects/"
        created = [requests.post(url, json=settings, timeout=9).json() for _ in range(PROJECTS)]
        projects = [ProjectAccess(each["project_id"], each["api_key"]) for each in created]
        yield Company(database, state, members, projects, shop)


def _disrupt(report: Report, company: Company, history: History) -> None:
    """Kill servers; now and then, stop a server for a while or crash the database."""
    database, members = company.database, company.members
    kills, pause, ids = report.size.count(200, 8), Event(), Ids(report.seed())
    stops, crashes = report.size.count(10), report.size.count(10)
    for number in range(kills):
        pause.wait(PAUSE_SECONDS)
        killed_member = members[ids.number("server", len(members))]
        history.disruptions.append(company.disruption(killed_member, "killed"))
        killed_member.kill()
        if number * stops // kills != (number + 1) * stops // kills:
            stopped_member = members[ids.number("server", len(members))]
            history.disruptions.append(company.disruption(stopped_member, "stopped"))
            stopped_member.send(signal.SIGSTOP)
            pause.wait(STOP_SECONDS)
            stopped_member.send(signal.SIGCONT)
        members[ids.number("server", len(members))].wire.cuts_answers_to = b"sandbox_request"
        if number * crashes // kills != (number + 1) * crashes // kills:
            _make_read_only(company, history, pause)
            start = perf_counter()
            history.outages.append((start, inf))
            database.stop("immediate")
            pause.wait(PAUSE_SECONDS)
            database.start()  # recovery may take long
            history.outages[-1] = (start, perf_counter())
    pause.wait(CLAIM_SECONDS)
    longest = max((end - start for start, end in history.outages), default=0.0)
    report.note("longest time without a database", f"{longest:.1f} s")
    report.note("kills; stopped servers; crashes of the database", f"{kills}, {stops}, {crashes}")


def _make_read_only(company: Company, history: History, pause: Event) -> None:
    """Make the database read-only for a moment, as a standby is, and end all its sessions."""
    name, start = company.state.rpartition("/")[2], perf_counter()
    terminate = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    for setting in ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"):
        company.database.execute(f"ALTER DATABASE {name} {setting}")
        company.database.execute(terminate)
        pause.wait(PAUSE_SECONDS)
    history.outages.append((start, perf_counter()))


def _compare(report: Report, company: Company, history: History) -> None:
    """Expect all acknowledged changes, and no change that was not attempted."""
    url, shop = company.members[0].url, company.shop
    differences = list(_differences(url, history))
    report.note("orders, captures and refunds that were acknowledged", sum(history.acknowledged.values()))
    report.note(
        "that were attempted without an acknowledgement",
        sum((history.attempted - history.acknowledged).values()),
    )
    report.expect("all acknowledged changes exist", not differences, differences[:5])
    report.expect(
        "each refusal states the outcome", not history.ambiguous_refusals, history.ambiguous_refusals[:5]
    )
    report.expect(
        "enough was acknowledged", sum(history.acknowledged.values()) > 100, history.acknowledged.total()
    )
    maximum = WAIT_SECONDS_MAX if report.size.strict else 3 * WAIT_SECONDS_MAX  # beside a test run
    report.limit(
        "longest time until some server answered, with a database", history.longest_wait_seconds, maximum, "s"
    )
    report.note("  from the first failed call on", f"{history.longest_overall_seconds:.1f} s")
    if history.longest_wait_seconds > maximum:
        for answer in dict.fromkeys(history.longest_wait):
            report.note("  during this time", answer)
    undelivered, disordered = _webhook_problems(url, history)
    report.expect("each webhook was delivered", not undelivered, undelivered[:5])
    report.expect("the webhooks of an order came in order", not disordered, disordered[:5])
    notified = {received.body["order_id"] for received in shop.received if received.raw.endswith(b"}")}
    report.expect(
        "the shop was notified of each order",
        notified >= _captured_order_ids(history),
        len(_captured_order_ids(history) - notified),
    )


def _captured_order_ids(history: History) -> set[str]:
    return {
        order_id for (order_id, kind), count in history.acknowledged.items() if kind == "capture" and count
    }


def _differences(url: str, history: History) -> Iterator[str]:
    """Yield differences between the stored and the acknowledged orders."""
    orders: dict[str, Any] = {}
    for key in set(history.order_keys.values()):
        state = requests.get(f"{url}/control/state/", auth=(key, ""), timeout=60).json()
        created = [order for order in state.get("orders", ()) if order["refund_of_order_id"] is None]
        minimum = history.acknowledged[key, "orders"]
        if not minimum <= len(created) <= minimum + history.possible_orders[key, "order"]:
            yield f"{len(created)} orders; {minimum} were acknowledged, and {history.possible_orders[key, 'order']} may exist"
        if "orders" not in state:
            yield f"the project's state cannot be read: {state}"
            continue
        orders |= {order["id"]: order for order in state["orders"]}
    for order_id in history.order_keys:
        order = orders.get(order_id)
        if order is None:
            yield f"{order_id} does not exist"
            continue
        captures = (order["transactions"][0]["authorization"] or {"entries": []})["entries"]
        for kind, entries in (("capture", captures), ("refund", order["refunds"])):
            minimum, maximum = history.acknowledged[order_id, kind], history.attempted[order_id, kind]
            if not minimum <= len(entries) <= maximum:
                yield f"{order_id}: {len(entries)} {kind}s; {minimum} were acknowledged, and {maximum} attempted"


def _webhook_problems(url: str, history: History) -> tuple[list[str], list[str]]:
    undelivered, disordered = [], []
    for key in set(history.order_keys.values()):
        webhooks = _settle_webhooks(url, (key, ""))
        if isinstance(webhooks, str):
            undelivered.append(webhooks)
            continue
        delivered_at: defaultdict[str, list[str]] = defaultdict(list)
        for webhook in webhooks:
            if webhook["state"] != "delivered":
                outcomes = [attempt["error"] or attempt["response"] for attempt in webhook["attempts"]]
                undelivered.append(f"{webhook['id']} is {webhook['state']}: {outcomes}")
                continue
            delivered_at[webhook["order_id"]].append(webhook["attempts"][-1]["at"])
        disordered += [order_id for order_id, times in delivered_at.items() if times != sorted(times)]
    return undelivered, disordered


def _settle_webhooks(url: str, auth: tuple[str, str]) -> list[dict[str, Any]] | str:
    """Return a project's webhooks after all retries, or the refusal of a project with a damaged state.

    The clock is frozen first: otherwise, orders would go on to expire and send webhooks.
    """
    for method, path, body in (
        ("PATCH", "/clock/", {"mode": "frozen"}),
        ("POST", "/clock/advance/", {"by": RETRY_PERIOD}),
        ("GET", "/webhooks/", None),
    ):
        response = requests.request(method, f"{url}/control{path}", json=body, auth=auth, timeout=90)
        if not response.ok:
            return f"{method} {path} was refused: {response.text}"
    webhooks: list[dict[str, Any]] = response.json()["items"]
    return webhooks


def finds_missing_lock(report: Report) -> bool:
    """Return whether the comparison detects servers that overwrite each other's changes."""
    with _company(report, "--without-lock") as company:
        history, is_over, pause = History(), Event(), Event()
        clients = [company.client(number, history) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            tasks = [pool.submit(client.trade, is_over) for client in clients]
            pause.wait(8 * PAUSE_SECONDS)
            is_over.set()
            for task in tasks:
                task.result()
        return any(_differences(company.members[0].url, history))
