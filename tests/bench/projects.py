"""Benchmark of projects: creation, reset, the effect of their number, and constant memory."""

import gc
import os
from functools import partial
from typing import Any

from werkzeug.test import Client

from payment_sandbox.serving.server import Server
from tests.bench import inverse, paired, report
from tests.bench.bodies import ORDER
from tests.support.servers import make_server

PROJECTS = 10_000
BATCH = 200
ROUNDS = 15
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1000000"))
FIRST_PROJECT = ("sandbox-key", "")


def make_client() -> tuple[Server, Client]:
    """Return a server, and a client that calls it without sockets."""
    server = make_server(clock="frozen", seed=1, freeze_memory=True)
    return server, Client(server.app)


def post(client: Client, path: str, key: str, body: Any = None) -> Any:
    """Make a call, and return its data."""
    return client.post(path, json=body, auth=(key, "")).get_json()


def post_many(client: Client, path: str, key: str, body: Any = None) -> None:
    """Make a batch of the same call."""
    for _ in range(BATCH):
        client.post(path, json=body, auth=(key, ""))


def report_costs() -> None:
    """Report the cost of creating and of resetting a project."""
    server, client = make_client()
    create = partial(post_many, client, "/v1/orders/", FIRST_PROJECT[0], ORDER)
    make = partial(post_many, client, "/control/projects/", FIRST_PROJECT[0], {"clock": "frozen"})
    reset = partial(post_many, client, "/control/reset/", FIRST_PROJECT[0])
    report("making a project / creating an order", inverse(paired(make, create, ROUNDS)), "<= 3")
    report("resetting a project / creating an order", inverse(paired(reset, create, ROUNDS)), "<= 3")
    server.stop()


def report_many_projects() -> None:
    """Report orders in one of ten thousand projects against orders in a single project."""
    (alone, alone_client), (crowded, crowded_client) = make_client(), make_client()
    keys = [post(crowded_client, "/control/projects/", "")["api_key"] for _ in range(PROJECTS)]
    for key in keys:
        post(crowded_client, "/v1/orders/", key, ORDER)
    gc.freeze()
    first = partial(post_many, alone_client, "/v1/orders/", FIRST_PROJECT[0], ORDER)
    last = partial(post_many, crowded_client, "/v1/orders/", keys[-1], ORDER)
    report(f"creations per second among {PROJECTS} projects / alone", paired(last, first, ROUNDS), ">= 0.95")
    alone.stop()
    crowded.stop()


def resident_mib() -> float:
    """Return the memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def report_constant_memory() -> None:
    """Report memory after many requests to a regularly reset project, as on a long-lived server."""
    server, client = make_client()
    order = post(client, "/v1/orders/", FIRST_PROJECT[0], ORDER)
    path = f"/v1/orders/{order['id']}/"
    early_mib = 0.0
    for number in range(REQUESTS):
        if number == REQUESTS // 10:
            gc.collect()
            early_mib = resident_mib()
        if number % 10 == 0:
            order = post(client, "/v1/orders/", FIRST_PROJECT[0], ORDER)
            path = f"/v1/orders/{order['id']}/"
            act = {"actor": "customer", "action": "pay"}
            client.post(f"/control/orders/{order['id']}/act/", json=act, auth=FIRST_PROJECT)
        if number % 20_000 == 19_999:
            client.post("/control/reset/", auth=FIRST_PROJECT)
        else:
            client.get(path, auth=FIRST_PROJECT)
    gc.collect()
    report(f"memory after {REQUESTS} requests / after a tenth of them", resident_mib() / early_mib, "<= 1.1")
    server.stop()


def main() -> None:
    """Report costs, the effect of many projects, and constant memory."""
    report_costs()
    report_many_projects()
    report_constant_memory()
