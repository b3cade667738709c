"""Two servers with thousands of projects: one is killed, then one is stopped; and what idle projects cost.

Another server answers the next call at once, claims run out within seconds, and nothing under way is lost.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from threading import Event
from time import perf_counter
from typing import Any, Final, NamedTuple

import requests

from payment_sandbox.cli.serve import DRAIN_NOTICE_SECONDS
from payment_sandbox_company.cluster import CLEAN_UP_SECONDS, IDLE_SECONDS
from payment_sandbox_company.replicas import CLAIM_SECONDS
from tests.attack import Report
from tests.attack.served import Project, Served, served
from tests.support.driver import by, card
from tests.support.postgres import Postgres, running
from tests.support.shop import Received, Shop

CLIENTS: Final = 8
COUNTED_SECONDS: Final = 10.0
LONG_SECONDS: Final = 3.0  # of a call that is under way when a server is stopped
ENDED_SECONDS_MAX: Final = 60.0
AT_ONCE_SECONDS: Final = 1.0
OWED: Final = "SELECT count(*) FROM sandbox_record WHERE kind = 'jobs' AND body IS NOT NULL"
CLAIMED: Final = "SELECT count(*) FROM sandbox_project WHERE courier IS NOT NULL"
LOADED: Final = "SELECT coalesce(sum(projects), 0) FROM sandbox_server WHERE seen_at > now() - interval '5 s'"


class Company(NamedTuple):
    """A database, and a shop that answers when it may."""

    database: Postgres
    state: str
    shop: Shop

    def ask(self, query: str) -> int:
        """A number from the database."""
        return int(self.database.execute(query, self.state.rpartition("/")[2])[0][0])

    def statements_per_second(self) -> float:
        """What all servers ask for while nobody calls them."""
        name = self.state.rpartition("/")[2]
        query = f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}'"
        before = int(self.database.execute(query)[0][0])
        Event().wait(COUNTED_SECONDS)
        return (int(self.database.execute(query)[0][0]) - before) / COUNTED_SECONDS

    def seconds_until_none(self, query: str) -> float:
        """How long it takes until there is nothing of this; at most a minute."""
        begun = perf_counter()
        while self.ask(query) and perf_counter() - begun < ENDED_SECONDS_MAX:
            Event().wait(0.05)
        return perf_counter() - begun


def attack(report: Report) -> None:
    """Idle projects first, then a kill, then two stops."""
    with _company() as company, ExitStack() as ends:
        servers = [ends.enter_context(_served(company)) for _ in range(2)]
        alone = company.statements_per_second() if report.size.strict else 0.0
        projects = _made(report, company, servers)
        active = projects[:: len(projects) // report.size.count(100, 10)]
        if report.size.strict:
            _idle(report, company, alone)
        _all(lambda project: project.order(card()), active)
        _killed(report, company, servers, active)
        for under_way in (False, True):
            _stopped(report, company, servers[1], under_way=under_way)


@contextmanager
def _company() -> Iterator[Company]:
    with running() as database, closing(Shop()) as shop:
        yield Company(database, database.new_database(), shop)


def _served(company: Company) -> Any:
    return served("--quiet", "--state", company.state)


def _all(work: Any, items: Sequence[Any]) -> list[Any]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, items))


def _made(report: Report, company: Company, servers: Sequence[Served]) -> list[Project]:
    count, settings = report.size.count(10_000), {"clock": "running", "webhook_url": company.shop.url}
    begun = perf_counter()
    projects = _all(lambda number: servers[number % 2].project(**settings), range(count))
    report.note("projects; seconds to make them", f"{count}; {perf_counter() - begun:.0f}")
    return projects


def _idle(report: Report, company: Company, alone: float) -> None:
    """A project that nobody uses costs no query, and is not in memory for long."""
    begun, most = perf_counter(), IDLE_SECONDS + 2 * CLEAN_UP_SECONDS
    while company.ask(LOADED) > 2 and perf_counter() - begun < 2 * most:
        Event().wait(1.0)
    report.limit("seconds until no server has them", perf_counter() - begun, most, "s")
    report.note("statements per second of two servers without projects", f"{alone:.1f}")
    more = company.statements_per_second() - alone
    report.limit("  and more with all of them idle", more, 0.1 * alone + 1, "")


def _killed(report: Report, company: Company, servers: Sequence[Served], active: Sequence[Project]) -> None:
    """Kill the server that sends webhooks of all active projects, while the shop has not answered."""
    killed, other = servers
    may_answer, seen = Event(), Event()

    def answer(received: Received) -> int:
        seen.set()
        may_answer.wait(CLAIM_SECONDS)
        return 200

    company.shop.answer = answer
    orders = _all(lambda project: Project(killed.url, project.key).order(by("bank-transfer")), active)
    assert seen.wait(CLAIM_SECONDS), "the shop was told of something"
    claimed = company.ask(CLAIMED)
    os.kill(killed.pid, signal.SIGKILL)
    may_answer.set()
    begun = perf_counter()
    longest = max(_all(lambda pair: _read_seconds(other, *pair), list(zip(active, orders, strict=True))))
    most = AT_ONCE_SECONDS if report.size.strict else ENDED_SECONDS_MAX
    report.limit(f"longest first call of {len(active)} projects after a kill", longest, most, "s")
    company.seconds_until_none(OWED)
    seconds = perf_counter() - begun
    report.expect("the killed server had claims", claimed > 0, claimed)
    most = CLAIM_SECONDS + AT_ONCE_SECONDS if report.size.strict else ENDED_SECONDS_MAX
    report.limit(f"until all webhooks of its {claimed} claims were sent", seconds, most, "s")
    told = {received.body["order_id"] for received in company.shop.received}
    untold = {order["id"] for order in orders} - told
    report.expect("the shop was told of each order", not untold, untold)


def _read_seconds(server: Served, project: Project, order: Any) -> float:
    begun = perf_counter()
    with Project(server.url, project.key) as asked:
        assert asked.expect("GET", f"/v1/orders/{order['id']}/")["id"] == order["id"]
    return perf_counter() - begun


def _stopped(report: Report, company: Company, other: Served, *, under_way: bool) -> None:
    """Stop a server, perhaps while an advance waits for the shop; another one goes on at once."""
    with ExitStack() as ends, ThreadPoolExecutor(1) as pool:
        server = ends.enter_context(_served(company))
        project = server.project(clock="frozen", webhook_url=company.shop.url)
        order = project.order(by("bank-transfer"))
        is_asked = Event()

        def answer(received: Received) -> int:
            is_asked.set()
            Event().wait(LONG_SECONDS if under_way else 0.0)
            return 200

        company.shop.answer = answer
        body = {"by": "P40D"}  # until the order has expired, which the shop is told
        moving = pool.submit(project.call, "POST", "/control/clock/advance/", body) if under_way else None
        assert moving is None or is_asked.wait(ENDED_SECONDS_MAX)
        begun = perf_counter()
        os.kill(server.pid, signal.SIGTERM)
        answered = _answered(moving) if moving is not None else 200
        took = perf_counter() - begun
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        seconds = perf_counter() - begun
        what = f"a stop with a call of {took:.1f} s under way" if under_way else "a stop without calls"
        least = max(DRAIN_NOTICE_SECONDS, took) if under_way else DRAIN_NOTICE_SECONDS
        report.limit(what, seconds, least + (2 if report.size.strict else 20), "s")
        report.expect("the call under way was answered", answered == 200, answered)
        report.limit("  first call at another server", _read_seconds(other, project, order), 5, "s")
        report.expect("nothing is claimed", not company.ask(CLAIMED), company.ask(CLAIMED))


def _answered(moving: Any) -> Any:
    try:
        answer = moving.result(ENDED_SECONDS_MAX)
    except requests.RequestException as error:
        return str(error)
    return answer.status_code
