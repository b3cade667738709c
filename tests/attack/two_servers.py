"""Two servers on one database, their clients, and what these have been told."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import requests

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.serving.realtime import monotonic_seconds
from tests.storage.wires import Wire
from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.shop import Shop

SHOP_KEY, FROZEN_KEY = "key-of-the-shop", "key-of-the-frozen-shop"
SCENARIO = """
name: pays-soon
description: Each card pays a second later.
rules:
  - then: {customer: pays, after: PT1S}
"""
PROJECTS = """
projects:
  - {{api_key: key-of-the-shop, name: shop, webhook_url: "{url}", scenario: pays-soon}}
  - {{api_key: key-of-the-frozen-shop, name: frozen, clock: "frozen@2027-01-01T00:00:00Z"}}
"""
TIMEOUT_SECONDS = 40.0
UNCHANGED = ("this server is a standby", "nothing has changed")


def pause(seconds: float) -> None:
    """Let real time pass."""
    Event().wait(seconds)


class Place:
    """One server, which is killed, stopped and started again, and its wire to the database."""

    def __init__(self, postgres: Postgres, database: str, folder: Path) -> None:
        self.wire = Wire(postgres.port)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        address = f"postgresql://postgres@127.0.0.1:{self.wire.port}/{database}"
        options = {
            "--port": self.port,
            "--state": address,
            "--scenarios": folder / "scenarios",
            "--project": folder / "projects.yaml",
        }
        self._command = [sys.executable, "-m", "payment_sandbox", "serve", "--quiet"]
        self._command += [str(part) for option in options.items() for part in option]
        self._log = (folder / f"{self.port}.log").open("ab")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def start_again(self) -> None:
        """Start the server again if it has ended, as a supervisor does: it needs the database to start."""
        if self.process.poll() is not None:
            self.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.wire.close()
        self._log.close()

    def health(self) -> str:
        try:
            return str(requests.get(f"{self.url}/health/", timeout=1).json()["status"])
        except requests.RequestException:
            return "down"


class Order:
    """What is known about an order: each capture takes one cent."""

    def __init__(self, order_id: str, transaction_id: str) -> None:
        self.path = f"/v1/orders/{order_id}/"
        self.capture_path = f"{self.path}transactions/{transaction_id}/captures/amount/"
        self.told = 0  # captures that were acknowledged
        self.unknown = 0  # captures that may have happened, the current one included


class World:
    """Clients of two servers, in threads; a failure of one of them ends the test."""

    def __init__(self, postgres: Postgres, folder: Path, seed: int) -> None:
        self.postgres, self.ids = postgres, Ids(seed)
        self.database = postgres.new_database().rpartition("/")[2]
        self.shop = Shop(keeps_alive=False)
        (folder / "scenarios").mkdir()
        (folder / "scenarios" / "pays-soon.yaml").write_text(SCENARIO)
        (folder / "projects.yaml").write_text(PROJECTS.format(url=self.shop.url))
        self.places = [Place(postgres, self.database, folder) for _ in range(2)]
        self.orders: list[Order] = []
        self.created: dict[
            str, str | None
        ] = {}  # ids by merchant_order_id; None if nothing was to be created
        self.failures: list[str] = []
        self.advanced_to = ""
        self.counts: Counter[str] = Counter()
        self.stopping = Event()
        self._threads: list[Thread] = []

    def run(self, work: Callable[..., None], *arguments: object) -> None:
        """Run work on a thread until the world stops."""

        def repeat() -> None:
            try:
                while not self.stopping.is_set():
                    work(*arguments)
            except Exception as failed:
                self.failures.append(f"{work.__name__}: {failed!r}")

        self._threads.append(thread := Thread(target=repeat, daemon=True))
        thread.start()

    def call(self, number: int, method: str, path: str, json: Any = None, idem: str = "") -> tuple[str, Any]:
        """Return what a call to a server says: done, refused, unchanged or unknown; and the answer."""
        headers = {"Idempotency-Key": idem} if idem else {}
        auth = (FROZEN_KEY if path.startswith("/control/clock/") else SHOP_KEY, "")
        url, late = f"{self.places[number % 2].url}{path}", TIMEOUT_SECONDS
        try:
            answer = requests.request(method, url, json=json, auth=auth, headers=headers, timeout=late)
        except requests.ConnectionError as failed:
            return ("unchanged" if "Connection refused" in str(failed) else "unknown"), None
        except requests.RequestException:
            return "unknown", None
        if answer.status_code < 300:
            return "done", answer.json()
        if answer.status_code != 503:
            return "refused", answer
        return ("unchanged" if any(each in answer.text for each in UNCHANGED) else "unknown"), answer

    def until_done(self, number: int, path: str, body: Any, idem: str) -> Any:
        """Make a call with an Idempotency-Key at one server or the other until it is done."""
        while not self.stopping.is_set():
            said, answer = self.call(number, "POST", path, body, idem)
            if said == "done":
                return answer
            if said == "refused" and answer.status_code != 409:
                raise AssertionError(f"{path}: {answer.status_code} {answer.text}")
            number += 1
            pause(0.05)
        return None

    def client(self, number: int, is_keyed: bool) -> None:
        """Create an order, and capture some cents of every eighth."""
        name = f"{number}-{self.counts.total()}-{int(1e9 * monotonic_seconds())}"
        card = {"payment_method": "credit-card", "capture_mode": "manual"}
        body = {"currency": "EUR", "amount": 100, "merchant_order_id": name, "transactions": [card]}
        if is_keyed:
            order = self.until_done(number, "/v1/orders/", body, name)
        else:
            said, order = self.call(number, "POST", "/v1/orders/", body)
            assert said != "refused", order.text
            if said == "unchanged":
                self.created[name] = None
        if order is None or not isinstance(order, dict):
            pause(0.1)
            return
        self.created[name] = order["id"]
        self.counts["orders"] += 1
        if self.counts["orders"] % 8:
            return
        known = Order(order["id"], order["transactions"][0]["id"])
        self.orders.append(known)
        for cent in range(20):
            self.capture(known, number + cent, f"{name}-{cent}" if is_keyed else "")

    def capture(self, known: Order, number: int, idem: str) -> None:
        """Capture a cent, once the order has been paid."""
        known.unknown += 1
        while not self.stopping.is_set():
            said, answer = self.call(number, "POST", known.capture_path, {"amount": 1}, idem)
            if said == "done":
                known.told += 1
                self.counts["captures"] += 1
            if said == "unknown" and not idem:
                return
            if said == "done" or (said == "unchanged" and not idem):
                known.unknown -= 1
                return
            if said == "refused" and answer.status_code != 409:
                raise AssertionError(f"{answer.status_code} {answer.text}")
            number += said != "refused"
            pause(0.1)

    def reader(self, number: int) -> None:
        """Read an order: nothing acknowledged before the read is missing, and nothing is twice."""
        if not self.orders:
            pause(0.1)
            return
        recent = self.orders[-20:]
        known = recent[int(1e9 * monotonic_seconds()) % len(recent)]
        told = known.told
        said, answer = self.call(number, "GET", f"{known.path}?fields[]=amount_details")
        if said != "done":
            assert said != "refused", f"an acknowledged order is missing: {answer.text}"
            pause(0.05)
            return
        captured = answer["amount_details"]["captured"]
        most = known.told + known.unknown
        self.counts["reads"] += 1
        assert told <= captured <= most, f"{told} <= {captured} <= {most}: {known.path} at {number}"

    def advancer(self) -> None:
        """Advance a clock, which never goes back."""
        for number in range(2):
            said, answer = self.call(number, "POST", "/control/clock/advance/", {"by": "PT1M"})
            if said == "done":
                self.counts["advances"] += 1
                assert answer["from"] >= self.advanced_to, "the clock went back"
                self.advanced_to = answer["to"]
        pause(0.1)

    # Faults

    def wait_for_writer(self, seconds: float = 30.0) -> tuple[Place, float]:
        """Wait until a server answers calls; return it, and the time that this took."""
        begun = monotonic_seconds()
        while monotonic_seconds() < begun + seconds:
            for place in self.places:
                if place.health() == "ok":
                    return place, monotonic_seconds() - begun
            pause(0.02)
        raise AssertionError(f"no server is the writer: {[place.health() for place in self.places]}")

    def kill(self, writer: Place) -> float:
        writer.kill()
        taken = self.wait_for_writer()[1]
        writer.start()
        return taken

    def stop_for_a_while(self, writer: Place) -> float:
        writer.process.send_signal(signal.SIGSTOP)
        try:
            pause(self.ids.number("pause", 12))
            return self.wait_for_writer()[1] if self.ids.number("waits", 2) else 0.0
        finally:
            writer.process.send_signal(signal.SIGCONT)

    def end_sessions(self, writer: Place) -> float:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        self.postgres.execute(ended, self.database)
        return self.wait_for_writer()[1]

    def black_hole(self, writer: Place) -> float:
        writer.wire.cut()
        pause(self.ids.number("hole", 12))
        taken = self.wait_for_writer()[1]
        writer.wire.restore()
        return taken

    def stop_database(self, writer: Place) -> float:
        self.postgres.stop("fast" if self.ids.number("mode", 2) else "immediate")
        pause(self.ids.number("stopped", 3))
        self.postgres.start()
        return self.wait_for_writer()[1]

    def harm(self) -> tuple[str, float]:
        """Let one fault happen, and wait until a server answers again; return its name, and how long that took."""
        for place in self.places:
            place.start_again()
        faults = (self.kill, self.stop_for_a_while, self.end_sessions, self.black_hole, self.stop_database)
        fault = faults[self.ids.number("fault", len(faults))]
        writer, _ = self.wait_for_writer()
        taken = fault(writer)
        self.wait_for_writer()
        pause(0.5 + self.ids.number("calm", 1000) / 1000)
        assert self.failures == [], f"{fault.__name__}: {self.failures}"
        return fault.__name__, taken

    def stop(self) -> None:
        """Let the clients finish."""
        self.stopping.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_SECONDS)

    def close(self) -> None:
        for place in self.places:
            with suppress(ProcessLookupError):
                place.process.send_signal(signal.SIGCONT)
            place.close()
        self.shop.close()


@contextmanager
def two_servers(postgres: Postgres, folder: Path, seed: int) -> Iterator[World]:
    """Run two servers with ten clients, two readers and an advancer."""
    world = World(postgres, folder, seed)
    try:
        world.wait_for_writer()
        for number in range(10):
            world.run(world.client, number, number % 2 == 0)
        for number in range(2):
            world.run(world.reader, number)
        world.run(world.advancer)
        yield world
    finally:
        world.stopping.set()
        world.close()


def snapshot(url: str, key: str) -> dict[str, Any]:
    """Return the records of a project."""
    answer = requests.get(f"{url}/control/state/", auth=(key, ""), timeout=60)
    assert answer.status_code == 200, answer.text
    state: dict[str, Any] = answer.json()
    return {
        name: state[name] for name in ("orders", "deliveries", "answers", "agenda", "id_counts", "sequence")
    }
