"""Counts the calls of the package's functions in one creation, and in one payment with its webhooks.

Run as a program in a fresh process; prints JSON. With ``--list`` it prints the calls of the creation, in order.
"""

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = f"{Path(__file__).parents[2] / 'sandbox'}/"
COUNTED_THREADS = ("server", "request", "courier")
SETTLE_SECONDS = 10
CHECK_SECONDS = 0.01
IDLE_CHECKS = 10


class CallRecorder:
    """Records the calls during some work, by thread, in order."""

    def __init__(self) -> None:
        self.is_recording = False
        self.calls: list[tuple[str, str, str]] = []  # thread, module, function

    def record(self, frame: FrameType, event: str, argument: object) -> None:
        """Record a call in the package; a resumed coroutine or generator counts as a call."""
        if not self.is_recording or event != "call":
            return
        path = frame.f_code.co_filename
        thread = threading.current_thread().name
        if path.startswith(SOURCE) and thread in COUNTED_THREADS:
            module = path.removeprefix(SOURCE).removeprefix("payment_sandbox/")
            self.calls.append((thread, module, frame.f_code.co_qualname))

    def count_during(self, work: Callable[[], object]) -> dict[str, int]:
        """Count the calls, modules and changes of folder during some work."""
        await_idle_threads()  # an earlier call may still run after its response
        self.calls.clear()
        self.is_recording = True
        try:
            work()
            await_idle_threads()
        finally:
            self.is_recording = False
        return {
            "calls": len(self.calls),
            "modules": len({module for _, module, _ in self.calls}),
            "changes of folder": sum(self._changes(thread) for thread in COUNTED_THREADS),
        }

    def _changes(self, thread: str) -> int:
        folders = [str(Path(module).parent) for each, module, _ in self.calls if each == thread]
        return sum(before != after for before, after in pairwise(folders))


def await_idle_threads() -> None:
    """Wait until no counted thread has moved during several checks."""
    idle_checks, positions = 0, thread_positions()
    while idle_checks < IDLE_CHECKS:
        threading.Event().wait(CHECK_SECONDS)
        before, positions = positions, thread_positions()
        idle_checks = idle_checks + 1 if positions == before else 0


def thread_positions() -> dict[int, tuple[int, int]]:
    """Return the frame and instruction of each counted thread."""
    counted = {thread.ident for thread in threading.enumerate() if thread.name in COUNTED_THREADS}
    frames = sys._current_frames().items()
    return {thread: (id(frame), frame.f_lasti) for thread, frame in frames if thread in counted}


def main() -> None:
    """Count the function calls in a creation and in a payment, and print the counts."""
    recorder = CallRecorder()
    threading.setprofile(recorder.record)
    import requests

    from payment_sandbox.projects.registry import FIRST_API_KEY
    from tests.support.servers import make_server
    from tests.support.shop import Shop

    shop = Shop()
    with make_server(clock="frozen") as server, requests.Session() as http:
        http.auth = (FIRST_API_KEY, "")
        order = {
            "currency": "EUR",
            "amount": 1295,
            "transactions": [{"payment_method": "credit-card"}],
            "webhook_url": shop.url,
        }

        def call(method: str, path: str, body: object = None) -> Any:
            answer = http.request(method, f"{server.url}{path}", json=body, timeout=SETTLE_SECONDS)
            assert answer.ok, answer.text
            return answer.json()

        def create() -> Any:
            return call("POST", "/v1/orders/", order)

        def settle() -> None:
            recorder.is_recording = False
            call("GET", "/control/wait/?idle=1")

        def pay() -> None:
            created = create()
            call("POST", f"/control/orders/{created['id']}/act/", {"actor": "customer", "action": "pay"})
            server.registry.loaded_projects()[0].settle()

        for _ in range(3):  # a warm-up: objects created on first use do not count
            create()
            pay()
            settle()
        creation = recorder.count_during(create)
        creation_calls = list(recorder.calls)
        settle()
        payment = recorder.count_during(pay)
        deliveries = call("GET", "/control/webhooks/")["items"]
        states = Counter(delivery["state"] for delivery in deliveries)
    shop.close()
    if "--list" in sys.argv:
        print("\n".join(" ".join(each) for each in creation_calls))
    print(json.dumps({"creation": creation, "payment": payment, "webhooks": states}))


if __name__ == "__main__":
    main()
