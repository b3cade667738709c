"""The length of the path of a call from the socket to the response, which every reader follows; only growth fails."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import payment_sandbox
from payment_sandbox.projects.locks import check_order
from payment_sandbox.testing.reviews import WARN, review
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.documentation import ROOT, run_command
from tests.support.driver import Sandbox, card
from tests.support.in_process import place, shop_that
from tests.support.servers import make_server
from tests.support.shop import Shop

PACKAGE = Path(payment_sandbox.__file__).parent


class PathLength(NamedTuple):
    """The calls of our functions, their modules, and how often the next call is in another folder."""

    calls: int
    modules: int
    changes_of_folder: int


CREATION_MAX = PathLength(240, 44, 90)
READ_MAX = PathLength(62, 18, 35)
PAYMENT_MAX = PathLength(1000, 65, 360)
"""A creation, the customer's payment, and the advance that delivers both webhooks."""
TEST_MAX = PathLength(1460, 95, 550)
"""A test with the fixture, with a new project, two webhooks and the review."""


@cache
def _file_of_ours(name: str) -> Path | None:
    file = Path(name)
    return file if file.is_relative_to(PACKAGE) else None


class Recorder:
    """Records the package's calls on the threads of a server that starts within ``recorded_threads``."""

    def __init__(self) -> None:
        self._files: dict[int, list[Path]] = {}  # by thread
        self._is_on = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Record one event of the interpreter."""
        if self._is_on and event == "call" and (file := _file_of_ours(frame.f_code.co_filename)):
            self._files.setdefault(threading.get_ident(), []).append(file)

    def shortest(self, work: Callable[[], object]) -> PathLength:
        """Return the least of five measurements, because threads that wait call a few functions more."""
        return PathLength(*map(min, zip(*(self._measure(work) for _ in range(5)), strict=True)))

    def _measure(self, work: Callable[[], object]) -> PathLength:
        self._files, self._is_on = {}, True
        work()
        self._is_on = False
        threads = list(self._files.values())
        changes = sum(here.parent != there.parent for files in threads for here, there in pairwise(files))
        return PathLength(sum(map(len, threads)), len(set(chain(*threads))), changes)


@contextmanager
def recorded_threads() -> Iterator[Recorder]:
    """Record the calls of the threads that start within the context, whose locks are those of a server."""
    recorder = Recorder()
    threading.setprofile(recorder)
    check_order(on=False)
    try:
        yield recorder
    finally:
        check_order(on=True)
        threading.setprofile(None)


def _measure_calls() -> tuple[PathLength, ...]:
    shop = Shop()
    with recorded_threads() as recorder, make_server(seed=1, clock="frozen") as server:
        sandbox = Sandbox(server, webhook_url=shop.url)

        def pay() -> None:
            sandbox.pay(sandbox.place(card()))
            sandbox.settle()

        pay()  # loads what is loaded at the first use
        order = sandbox.place(card())
        works = (lambda: sandbox.place(card()), lambda: sandbox.read(order), pay)
        lengths = tuple(map(recorder.shortest, works))
    shop.close()
    return lengths


def _measure_payment_test() -> PathLength:
    recorder = Recorder()

    def pay() -> None:
        with server.project() as sandbox:
            sandbox.deliver_to(shop_that(lambda order_id: None))
            sandbox.act(place(sandbox))
            review(sandbox, WARN, "", expect=["HOOK-08"])

    check_order(on=False)
    with PaymentSandboxServer() as server:
        pay()  # loads what is loaded at the first use
        sys.setprofile(recorder)
        length = recorder.shortest(pay)
        sys.setprofile(None)
    check_order(on=True)
    return length


def test_paths_do_not_grow() -> None:
    """A creation, a read, a payment and a payment test stay within their limits; a separate commit raises one, with the reason.

    They are measured in a new process, because other tests leave callbacks in this one.
    """
    result = run_command([sys.executable, "-m", __name__], ROOT)
    assert result.returncode == 0, result.stderr
    lengths = json.loads(result.stdout)
    for length, limit in zip(lengths, (CREATION_MAX, READ_MAX, PAYMENT_MAX, TEST_MAX), strict=True):
        assert all(map(int.__le__, length, limit)), lengths


if __name__ == "__main__":
    json.dump([*_measure_calls(), _measure_payment_test()], sys.stdout)
