"""Servers that share a database are killed, stopped and continued, and the database breaks off, under load.

Clients note what was acknowledged; afterwards all of it must be there, once.
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
BETWEEN_SECONDS: Final = 0.7
STOPPED_SECONDS: Final = CLAIM_SECONDS + 3
ANSWERED_SECONDS_MAX: Final = 20
OFTEN_WRITTEN: Final = ("checkpoint_timeout=30s", "max_wal_size=64MB")  # so that a crash is soon over
READ_SECONDS: Final = 3.0  # after which a load balancer asks another server
CENTS: Final = 100
UNAVAILABLE: Final = 503
NOTHING: Final = "nothing has changed"
UNKNOWN: Final = "is unknown"
BUSY: Final = '"status": 4'  # a refusal of what was asked for
ASKED_MAX: Final = 5
RETRIED: Final = "PT20M"  # after which the last try of a webhook that the busy shop missed was made


class Member:
    """A server process, which is started again after each kill."""

    def __init__(self, state: str, port: int, *options: str) -> None:
        self.wire = Wire(port)
        state = state.replace(str(port), str(self.wire.port))
        self._command = [sys.executable, "-m", "tests.attack.one_server", state, str(free_port()), *options]
        self.begin()

    def begin(self) -> None:
        """Start it, and wait until it serves."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def send(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._kill()
        self.begin()

    def end(self) -> None:
        """End it for good."""
        with suppress(OSError):
            self.send(signal.SIGCONT)
        self._kill()

    def _kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Trouble(NamedTuple):
    """What was done to a server, and which projects it had."""

    at: float
    what: str
    project_ids: frozenset[str]


@dataclass
class History:
    """What clients tried, and what of it was acknowledged."""

    tried: Counter[tuple[str, str]] = field(default_factory=Counter)  # by order and kind
    done: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)  # orders, by project
    strange: list[str] = field(default_factory=list)  # refusals that do not say what has happened
    keys: dict[str, str] = field(default_factory=dict)  # of each order's project
    longest_seconds: float = 0.0  # since the trouble that made somebody wait
    longest: Sequence[str] = ()  # what was answered meanwhile, and what was done to whoever had the project
    longest_in_all_seconds: float = 0.0  # through several troubles
    troubles: list[Trouble] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)  # when there was no database
    _lock: Lock = field(default_factory=Lock)

    def note(self, kept: Counter[tuple[str, str]], order_id: str, kind: str) -> None:
        """Count something."""
        with self._lock:
            kept[order_id, kind] += 1

    def waited(
        self, project_id: str, begun: float, ended: float, answers: Sequence[tuple[float, str]]
    ) -> None:
        """Note how long it took until some server answered, while there was a database.

        Whoever takes a project over may be killed, too: from then on there are as many seconds again.
        """
        met = [each for each in self.troubles if project_id in each.project_ids and begun < each.at < ended]
        since = met[-1].at if met else begun
        told = sorted([*answers, *((each.at, each.what) for each in met)])
        with self._lock:
            self.longest_in_all_seconds = max(self.longest_in_all_seconds, self._with_database(begun, ended))
            if (waited := self._with_database(since, ended)) > self.longest_seconds:
                self.longest_seconds = waited
                self.longest = [f"{at - begun:.1f} s {what}" for at, what in told]

    def _with_database(self, begun: float, ended: float) -> float:
        without = sum(max(0.0, min(ended, end) - max(begun, begin)) for begin, end in self.outages)
        return ended - begun - without


class Sandbox(NamedTuple):
    """A project, and its key."""

    project_id: str
    key: str


class Client:
    """A merchant's back end behind a load balancer: each call goes to any server that is there."""

    def __init__(self, members: Sequence[Member], project: Sandbox, number: int, history: History) -> None:
        self._members = members
        self._ids = Ids(number)
        self._project_id, self._key = project
        self._history = history
        self.told = ""  # by the newest call
        self.is_certain = True  # that a call which was not acknowledged has not happened
        self.http = requests.Session()
        self.http.trust_env, self.http.auth = False, (self._key, "")

    def trade(self, is_over: Event) -> None:
        """Create, pay, capture in parts and refund, until it is over."""
        history = self._history
        while not is_over.is_set():
            body = {"currency": "EUR", "amount": 10 * CENTS, "transactions": [card(capture_mode="manual")]}
            made = self._try("POST", "/v1/orders/", body)
            if made is None:
                if not self.is_certain:
                    history.note(history.unknown, self._key, "order")
                continue
            history.note(history.done, self._key, "orders")
            order_id = made["id"]
            history.keys[order_id] = self._key
            act = f"/control/orders/{order_id}/act/"
            if self._try("POST", act, {"actor": "customer", "action": "pay"}) is None:
                continue
            transaction_id = made["transactions"][0]["id"]
            for kind, path in (("capture", f"transactions/{transaction_id}/captures/amount/"),) * 4:
                self._count(order_id, kind, f"/v1/orders/{order_id}/{path}")
            self._count(order_id, "refund", f"/v1/orders/{order_id}/refunds/")
            self._read(order_id)

    def _count(self, order_id: str, kind: str, path: str) -> None:
        history = self._history
        done = self._try("POST", path, {"amount": CENTS})
        if done is not None or not self.is_certain:
            history.note(history.tried, order_id, kind)
        if done is not None:
            history.note(history.done, order_id, kind)

    def _try(self, method: str, path: str, body: Any, timeout_seconds: float = 60.0) -> Any:
        """What was acknowledged; None if it was not. A call that may have happened is asked for again."""
        key = f"{self._ids.token('key')}"
        self.is_certain = True
        for _ in range(ASKED_MAX if method == "POST" else 1):
            answer = self._sent(method, path, body, timeout_seconds, key)
            if answer is not None and answer.status_code in (200, 201):
                return answer.json()
            is_told = answer is not None and (answer.status_code != UNAVAILABLE or NOTHING in answer.text)
            if answer is not None and not any(words in answer.text for words in (NOTHING, UNKNOWN, BUSY)):
                self._history.strange.append(self.told)
            self.is_certain = self.is_certain and is_told
            if is_told:
                return None
        return None

    def _sent(self, method: str, path: str, body: Any, seconds: float, key: str) -> Any:
        number = self._ids.number("server", len(self._members))
        url, headers = f"{self._members[number].url}{path}", {"Idempotency-Key": key}
        try:
            answer = self.http.request(method, url, json=body, timeout=seconds, headers=headers)
        except requests.RequestException as error:
            self.told = f"{number}: {type(error).__name__}"
            return None
        self.told = f"{number}: {answer.status_code} {answer.text[:200]}"
        return answer

    def _read(self, order_id: str) -> None:
        begun = perf_counter()
        answers: list[tuple[float, str]] = []
        while self._try("GET", f"/v1/orders/{order_id}/", None, READ_SECONDS) is None:
            answers.append((perf_counter(), self.told))
            if perf_counter() - begun > 3 * ANSWERED_SECONDS_MAX:
                break
        self._history.waited(self._project_id, begun, perf_counter(), answers)


def attack(report: Report) -> None:
    """Kill, stop and break off, all the time; then compare."""
    with _company(report) as company:
        history = History()
        is_over = Event()
        clients = [company.client(number, history) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(client.trade, is_over) for client in clients]
            try:
                _trouble(report, company, history)
            finally:
                is_over.set()
            for each in working:
                each.result()
        _compare(report, company, history)


class Company(NamedTuple):
    """Servers on one database, their projects, and the shop that gets the webhooks."""

    database: Postgres
    state: str
    members: Sequence[Member]
    projects: Sequence[Sandbox]
    shop: Shop

    def client(self, number: int, history: History) -> Client:
        """One of those who share the projects."""
        return Client(self.members, self.projects[number % len(self.projects)], number, history)

    def trouble(self, member: Member, what: str) -> Trouble:
        """What is about to be done to a server, which all projects may notice."""
        ids = frozenset(project.project_id for project in self.projects)
        return Trouble(perf_counter(), f"a server was {what}", ids)


@contextmanager
def _company(report: Report, *options: str) -> Iterator[Company]:
    with running(*OFTEN_WRITTEN) as database, ExitStack() as ends:
        state = database.new_database()
        shop = Shop()
        ends.callback(shop.close)
        members = []
        for _ in range(SERVERS):
            members.append(Member(state, database.port, *options))
            ends.callback(members[-1].end)
        settings = {"clock": "running", "webhook_url": shop.url}
        url = f"{members[0].url}/control/projects/"
        made = [requests.post(url, json=settings, timeout=9).json() for _ in range(PROJECTS)]
        projects = [Sandbox(each["project_id"], each["api_key"]) for each in made]
        yield Company(database, state, members, projects, shop)


def _trouble(report: Report, company: Company, history: History) -> None:
    """Kills most of the time; now and then a server that stands still, or a database that crashes."""
    database, members = company.database, company.members
    kills, pause, ids = report.size.count(200, 8), Event(), Ids(report.seed())
    stops, crashes = report.size.count(10), report.size.count(10)
    for number in range(kills):
        pause.wait(BETWEEN_SECONDS)
        killed = members[ids.number("server", len(members))]
        history.troubles.append(company.trouble(killed, "killed"))
        killed.kill()
        if number * stops // kills != (number + 1) * stops // kills:
            stopped = members[ids.number("server", len(members))]
            history.troubles.append(company.trouble(stopped, "stopped"))
            stopped.send(signal.SIGSTOP)
            pause.wait(STOPPED_SECONDS)
            stopped.send(signal.SIGCONT)
        members[ids.number("server", len(members))].wire.cuts_answers_to = b"sandbox_request"
        if number * crashes // kills != (number + 1) * crashes // kills:
            _read_only(company, history, pause)
            begun = perf_counter()
            history.outages.append((begun, inf))
            database.stop("immediate")
            pause.wait(BETWEEN_SECONDS)
            database.start()  # it may have much to recover
            history.outages[-1] = (begun, perf_counter())
    pause.wait(CLAIM_SECONDS)
    longest = max((end - begin for begin, end in history.outages), default=0.0)
    report.note("longest time without a database", f"{longest:.1f} s")
    report.note("kills; servers that stood still; crashes of the database", f"{kills}, {stops}, {crashes}")


def _read_only(company: Company, history: History, pause: Event) -> None:
    """For a moment, the database takes no writes, as a standby does; sessions that there are end."""
    name, begun = company.state.rpartition("/")[2], perf_counter()
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    for change in ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"):
        company.database.execute(f"ALTER DATABASE {name} {change}")
        company.database.execute(ended)
        pause.wait(BETWEEN_SECONDS)
    history.outages.append((begun, perf_counter()))


def _compare(report: Report, company: Company, history: History) -> None:
    """All that was acknowledged is there, and nothing more than was tried."""
    url, shop = company.members[0].url, company.shop
    wrong = list(_differences(url, history))
    report.note("orders, captures and refunds that were acknowledged", sum(history.done.values()))
    report.note("that were tried without an answer", sum((history.tried - history.done).values()))
    report.expect("all that was acknowledged is there", not wrong, wrong[:5])
    report.expect("each refusal says what has happened", not history.strange, history.strange[:5])
    report.expect("enough was acknowledged", sum(history.done.values()) > 100, history.done.total())
    most = ANSWERED_SECONDS_MAX if report.size.strict else 3 * ANSWERED_SECONDS_MAX  # beside a test run
    report.limit(
        "longest time until some server answered, with a database", history.longest_seconds, most, "s"
    )
    report.note("  through all that happened meanwhile", f"{history.longest_in_all_seconds:.1f} s")
    if history.longest_seconds > most:
        for answer in dict.fromkeys(history.longest):
            report.note("  meanwhile", answer)
    undelivered, disordered = _webhooks(url, history)
    report.expect("each webhook was delivered", not undelivered, undelivered[:5])
    report.expect("the webhooks of an order came in order", not disordered, disordered[:5])
    told = {received.body["order_id"] for received in shop.received if received.raw.endswith(b"}")}
    report.expect("the shop was told of each order", told >= _paid(history), len(_paid(history) - told))


def _paid(history: History) -> set[str]:
    return {order_id for (order_id, kind), count in history.done.items() if kind == "capture" and count}


def _differences(url: str, history: History) -> Iterator[str]:
    """What orders lack, or have too much of."""
    orders: dict[str, Any] = {}
    for key in set(history.keys.values()):
        state = requests.get(f"{url}/control/state/", auth=(key, ""), timeout=60).json()
        made = [order for order in state.get("orders", ()) if order["refund_of_order_id"] is None]
        least = history.done[key, "orders"]
        if not least <= len(made) <= least + history.unknown[key, "order"]:
            yield f"{len(made)} orders; {least} were acknowledged, and {history.unknown[key, 'order']} tried"
        if "orders" not in state:
            yield f"the project's state cannot be read: {state}"
            continue
        orders |= {order["id"]: order for order in state["orders"]}
    for order_id in history.keys:
        order = orders.get(order_id)
        if order is None:
            yield f"{order_id} is not there"
            continue
        captures = (order["transactions"][0]["authorization"] or {"entries": []})["entries"]
        for kind, entries in (("capture", captures), ("refund", order["refunds"])):
            least, most = history.done[order_id, kind], history.tried[order_id, kind]
            if not least <= len(entries) <= most:
                yield f"{order_id}: {len(entries)} {kind}s; {least} were acknowledged, and {most} tried"


def _webhooks(url: str, history: History) -> tuple[list[str], list[str]]:
    undelivered, disordered = [], []
    for key in set(history.keys.values()):
        webhooks = _settled_webhooks(url, (key, ""))
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


def _settled_webhooks(url: str, auth: tuple[str, str]) -> list[dict[str, Any]] | str:
    """Return a project's webhooks after all retries, or the refusal of a project with a damaged state.

    The clock is frozen first: otherwise, orders would go on to expire and send webhooks.
    """
    for method, path, body in (
        ("PATCH", "/clock/", {"mode": "frozen"}),
        ("POST", "/clock/advance/", {"by": RETRIED}),
        ("GET", "/webhooks/", None),
    ):
        response = requests.request(method, f"{url}/control{path}", json=body, auth=auth, timeout=90)
        if not response.ok:
            return f"{method} {path} was refused: {response.text}"
    webhooks: list[dict[str, Any]] = response.json()["items"]
    return webhooks


def finds_lost_lock(report: Report) -> bool:
    """Whether the comparison fails where servers write over what others have written."""
    broken = Report("servers without a lock", report.size, report._show)
    with _company(broken, "--without-lock") as company:
        history, is_over, pause = History(), Event(), Event()
        clients = [company.client(number, history) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(client.trade, is_over) for client in clients]
            pause.wait(8 * BETWEEN_SECONDS)
            is_over.set()
            for each in working:
                each.result()
        _compare(broken, company, history)
    return bool(broken.problems)
