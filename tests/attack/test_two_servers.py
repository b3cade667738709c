"""Random faults of two servers and their database lose nothing, repeat nothing, and cause no false answer."""

import os
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

import pytest
import requests

from tests.attack import FULL, note
from tests.attack.two_servers import FROZEN_KEY, SHOP_KEY, World, snapshot, two_servers
from tests.support.postgres import Postgres
from tests.support.servers import make_server

FAULTS = 20  # the orders of more would not fit into a snapshot
ROUNDS = 10 if FULL else 1
SEED = int(os.environ.get("SEED", "1"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_random_faults(postgres: Postgres, tmp_path: Path, seed: int) -> None:
    """Each acknowledged change is there once, each answer was true, and no read was stale."""
    taken: dict[str, list[float]] = defaultdict(list)
    with two_servers(postgres, tmp_path, seed) as world:
        for _ in range(FAULTS):
            fault, seconds = world.harm()
            taken[fault].append(seconds)
        world.stop()
        assert world.failures == []
        url = world.wait_for_writer()[0].url
        check_orders(world, url)
        check_webhooks(world, url)
        memory = {key: snapshot(url, key) for key in (SHOP_KEY, FROZEN_KEY)}
        for place in world.places:
            place.kill()
        with make_server(state=postgres.address(world.database)) as server:
            for key, state in memory.items():
                assert snapshot(server.url, key) == state
    for fault, times in taken.items():
        note(
            f"{fault}: {len(times)} times, seconds to the next answer",
            f"{median(times):.2f} {max(times):.2f}",
        )
    note("acknowledged", dict(world.counts))


def check_orders(world: World, url: str) -> None:
    """Each acknowledged order is there once, and what was refused is not there."""
    items = snapshot(url, SHOP_KEY)["orders"]
    times = Counter(item["sent"]["merchant_order_id"] for item in items)
    ids = {item["id"] for item in items}
    for name, order_id in world.created.items():
        assert times[name] == (order_id is not None), f"{name} is there {times[name]} times"
        assert order_id is None or order_id in ids
    assert max(times.values()) == 1
    for known in world.orders:
        answer = requests.get(f"{url}{known.path}?fields[]=amount_details", auth=(SHOP_KEY, "")).json()
        assert known.told <= answer["amount_details"]["captured"] <= known.told + known.unknown


def check_webhooks(world: World, url: str) -> None:
    """Each webhook has arrived, and those of an order in their order."""
    waited = requests.get(f"{url}/control/wait/?idle=1&timeout=60", auth=(SHOP_KEY, ""), timeout=90)
    assert waited.status_code == 200, waited.text
    arrived = Counter(each.body["order_id"] for each in list(world.shop.received))
    deliveries = requests.get(f"{url}/control/webhooks/", auth=(SHOP_KEY, ""), timeout=60).json()["items"]
    first: dict[str, list[str]] = defaultdict(list)
    for delivery in deliveries:
        assert delivery["state"] == "delivered", delivery
        first[delivery["order_id"]].append(delivery["attempts"][0]["real_at"])
    for order_id, sent in first.items():
        assert arrived[order_id] >= len(sent)
        assert sent == sorted(sent)
