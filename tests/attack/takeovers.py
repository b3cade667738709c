"""Kill or stop one of two servers with thousands of projects, and measure the cost of idle projects.

Another server must answer the next call at once, claims expire within seconds, and no call in flight is lost.
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
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import by, card
from tests.support.postgres import Postgres, running
from tests.support.shop import Received, Shop

CLIENTS: Final = 8
SAMPLE_SECONDS: Final = 10.0
LONG_SECONDS: Final = 3.0  # duration of a call in flight when its server is stopped
TIMEOUT_SECONDS: Final = 60.0
TAKEOVER_SECONDS: Final = 1.0
UNSENT: Final = "SELECT count(*) FROM sandbox_record WHERE kind = 'jobs' AND body IS NOT NULL"
CLAIMED: Final = "SELECT count(*) FROM sandbox_project WHERE courier IS NOT NULL"
LOADED: Final = "SELECT coalesce(sum(projects), 0) FROM sandbox_server WHERE seen_at > now() - interval '5 s'"


class Company(NamedTuple):
    """A database, and a shop that receives webhooks."""

    database: Postgres
    state: str
    shop: Shop

    def query_number(self, query: str) -> int:
        """Return the number that a query yields."""
        return int(self.database.execute(query, self.state.rpartition("/")[2])[0][0])

    def statements_per_second(self) -> float:
        """Return the statements per second of all servers without calls."""
        name = self.state.rpartition("/")[2]
        query = f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}'"
        before = int(self.database.execute(query)[0][0])
        Event().wait(SAMPLE_SECONDS)
        return (int(self.database.execute(query)[0][0]) - before) / SAMPLE_SECONDS

    def seconds_until_none(self, query: str) -> float:
        """Wait until a query yields zero, at most a minute, and return the seconds."""
        start = perf_counter()
        while self.query_number(query) and perf_counter() - start < TIMEOUT_SECONDS:
            Event().wait(0.05)
        return perf_counter() - start


def attack(report: Report) -> None:
    """Measure idle projects, then kill a server, then stop two."""
    with _company() as company, ExitStack() as stack:
        servers = [stack.enter_context(_run_server(company)) for _ in range(2)]
        baseline = company.statements_per_second() if report.size.strict else 0.0
        projects = _create_projects(report, company, servers)
        active = projects[:: len(projects) // report.size.count(100, 10)]
        if report.size.strict:
            _measure_idle(report, company, baseline)
        _map(lambda project: project.order(card()), active)
        _kill_server(report, company, servers, active)
        for in_flight in (False, True):
            _stop_server(report, company, servers[1], in_flight=in_flight)


@contextmanager
def _company() -> Iterator[Company]:
    with running() as database, closing(Shop()) as shop:
        yield Company(database, database.new_database(), shop)


def _run_server(company: Company) -> Any:
    return run_server("--quiet", "--state", company.state)


def _map(work: Any, items: Sequence[Any]) -> list[Any]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, items))


def _create_projects(report: Report, company: Company, servers: Sequence[ServerProcess]) -> list[Project]:
    count, settings = report.size.count(10_000), {"clock": "running", "webhook_url": company.shop.url}
    start = perf_counter()
    projects = _map(lambda number: servers[number % 2].project(**settings), range(count))
    report.note("projects; seconds to create them", f"{count}; {perf_counter() - start:.0f}")
    return projects


def _measure_idle(report: Report, company: Company, baseline: float) -> None:
    """Check that idle projects soon leave the memory of the servers, and cause no queries."""
    start, maximum = perf_counter(), IDLE_SECONDS + 2 * CLEAN_UP_SECONDS
    while company.query_number(LOADED) > 2 and perf_counter() - start < 2 * maximum:
        Event().wait(1.0)
    report.limit("seconds until no server has idle projects in memory", perf_counter() - start, maximum, "s")
    report.note("statements per second of two servers without projects", f"{baseline:.1f}")
    increase = company.statements_per_second() - baseline
    report.limit("  and the increase with idle projects", increase, 0.1 * baseline + 1, "")


def _kill_server(
    report: Report, company: Company, servers: Sequence[ServerProcess], active: Sequence[Project]
) -> None:
    """Kill a server while the shop delays its answers to webhooks of all active projects."""
    killed_server, other_server = servers
    may_answer, is_notified = Event(), Event()

    def answer(received: Received) -> int:
        is_notified.set()
        may_answer.wait(CLAIM_SECONDS)
        return 200

    company.shop.answer = answer
    orders = _map(lambda project: Project(killed_server.url, project.key).order(by("bank-transfer")), active)
    assert is_notified.wait(CLAIM_SECONDS), "the shop has received no webhook"
    claimed = company.query_number(CLAIMED)
    os.kill(killed_server.pid, signal.SIGKILL)
    may_answer.set()
    start = perf_counter()
    longest = max(
        _map(lambda pair: _read_seconds(other_server, *pair), list(zip(active, orders, strict=True)))
    )
    maximum = TAKEOVER_SECONDS if report.size.strict else TIMEOUT_SECONDS
    report.limit(f"longest first call of {len(active)} projects after a kill", longest, maximum, "s")
    company.seconds_until_none(UNSENT)
    seconds = perf_counter() - start
    report.expect("the killed server had claims", claimed > 0, claimed)
    maximum = CLAIM_SECONDS + TAKEOVER_SECONDS if report.size.strict else TIMEOUT_SECONDS
    report.limit(f"until all webhooks of its {claimed} claims were sent", seconds, maximum, "s")
    notified = {received.body["order_id"] for received in company.shop.received}
    missing = {order["id"] for order in orders} - notified
    report.expect("the shop was notified of each order", not missing, missing)


def _read_seconds(server: ServerProcess, project: Project, order: Any) -> float:
    start = perf_counter()
    with Project(server.url, project.key) as client:
        assert client.expect("GET", f"/v1/orders/{order['id']}/")["id"] == order["id"]
    return perf_counter() - start


def _stop_server(report: Report, company: Company, other_server: ServerProcess, *, in_flight: bool) -> None:
    """Stop a server with or without an advance that waits for the shop; another server must take over."""
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        server = stack.enter_context(_run_server(company))
        project = server.project(clock="frozen", webhook_url=company.shop.url)
        order = project.order(by("bank-transfer"))
        is_notified = Event()

        def answer(received: Received) -> int:
            is_notified.set()
            Event().wait(LONG_SECONDS if in_flight else 0.0)
            return 200

        company.shop.answer = answer
        body = {"by": "P40D"}  # until the order expires, which sends a webhook
        advance = pool.submit(project.call, "POST", "/control/clock/advance/", body) if in_flight else None
        assert advance is None or is_notified.wait(TIMEOUT_SECONDS)
        start = perf_counter()
        os.kill(server.pid, signal.SIGTERM)
        status = _status_of(advance) if advance is not None else 200
        call_seconds = perf_counter() - start
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        seconds = perf_counter() - start
        label = (
            f"a stop with a call of {call_seconds:.1f} s in flight" if in_flight else "a stop without calls"
        )
        minimum = max(DRAIN_NOTICE_SECONDS, call_seconds) if in_flight else DRAIN_NOTICE_SECONDS
        report.limit(label, seconds, minimum + (2 if report.size.strict else 20), "s")
        report.expect("the call in flight was answered", status == 200, status)
        report.limit("  first call at another server", _read_seconds(other_server, project, order), 5, "s")
        report.expect("nothing is claimed", not company.query_number(CLAIMED), company.query_number(CLAIMED))


def _status_of(advance: Any) -> Any:
    try:
        answer = advance.result(TIMEOUT_SECONDS)
    except requests.RequestException as error:
        return str(error)
    return answer.status_code
