"""Projects: what making and resetting one costs, whether many slow each other, and whether memory stays flat."""

import gc
import os
from functools import partial
from typing import Any

from flask.testing import FlaskClient

from payment_sandbox.serving.server import Server
from tests.bench import inverse, paired, report
from tests.bench.bodies import ORDER
from tests.support.servers import make_server

PROJECTS = 10_000
BATCH = 200
ROUNDS = 15
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1000000"))
FIRST = ("sandbox-key", "")


def served() -> tuple[Server, FlaskClient]:
    """A server, called without sockets."""
    server = make_server(clock="frozen", seed=1, freeze_memory=True)
    return server, server.app.test_client()


def post(client: FlaskClient, path: str, key: str, body: Any = None) -> Any:
    """One call."""
    return client.post(path, json=body, auth=(key, "")).get_json()


def many(client: FlaskClient, path: str, key: str, body: Any = None) -> None:
    """A batch of the same call."""
    for _ in range(BATCH):
        client.post(path, json=body, auth=(key, ""))


def costs() -> None:
    """Of one project more, and of a fresh start."""
    server, client = served()
    create = partial(many, client, "/v1/orders/", FIRST[0], ORDER)
    make = partial(many, client, "/control/projects/", FIRST[0], {"clock": "frozen"})
    reset = partial(many, client, "/control/reset/", FIRST[0])
    report("making a project / creating an order", inverse(paired(make, create, ROUNDS)), "<= 3")
    report("resetting a project / creating an order", inverse(paired(reset, create, ROUNDS)), "<= 3")
    server.stop()


def crowd() -> None:
    """An order in one of ten thousand projects against an order in the only one."""
    (alone, alone_client), (crowded, crowded_client) = served(), served()
    keys = [post(crowded_client, "/control/projects/", "")["api_key"] for _ in range(PROJECTS)]
    for key in keys:
        post(crowded_client, "/v1/orders/", key, ORDER)
    gc.freeze()
    first = partial(many, alone_client, "/v1/orders/", FIRST[0], ORDER)
    last = partial(many, crowded_client, "/v1/orders/", keys[-1], ORDER)
    report(f"creations per second among {PROJECTS} projects / alone", paired(last, first, ROUNDS), ">= 0.95")
    alone.stop()
    crowded.stop()


def resident_mib() -> float:
    """Memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def flat() -> None:
    """Requests without end on a project that is reset now and then, as a long-lived server sees them."""
    server, client = served()
    order = post(client, "/v1/orders/", FIRST[0], ORDER)
    path = f"/v1/orders/{order['id']}/"
    early_mib = 0.0
    for number in range(REQUESTS):
        if number == REQUESTS // 10:
            gc.collect()
            early_mib = resident_mib()
        if number % 10 == 0:
            made = post(client, "/v1/orders/", FIRST[0], ORDER)
            path = f"/v1/orders/{made['id']}/"
            act = {"actor": "customer", "action": "pay"}
            client.post(f"/control/orders/{made['id']}/act/", json=act, auth=FIRST)
        if number % 20_000 == 19_999:
            client.post("/control/reset/", auth=FIRST)
        else:
            client.get(path, auth=FIRST)
    gc.collect()
    report(f"memory after {REQUESTS} requests / after a tenth of them", resident_mib() / early_mib, "<= 1.1")
    server.stop()


def main() -> None:
    """All three."""
    costs()
    crowd()
    flat()
