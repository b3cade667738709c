"""The length of the path of a call from the socket to the response, which every reader follows; only growth fails."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import payment_sandbox
from payment_sandbox.projects.locks import check_order
from payment_sandbox.testing.reviews import WARN, review
from payment_sandbox.testing.servers import PaymentSandboxServer
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


CREATION_MAX = PathLength(358, 54, 121)  # 326, 52, 113; callbacks vary
PAYMENT_MAX = PathLength(1650, 83, 530)  # 1,475, 81, 480; more on a busy machine
"""A creation, the customer's payment, and the advance that delivers both webhooks."""
TEST_MAX = PathLength(1960, 104, 665)  # 1,923, 104, 655
"""A test with the fixture, whose project is new."""


class Recorder:
    """Records the package's calls on the threads of a server that starts within ``recorded_threads``."""

    def __init__(self) -> None:
        self._files: dict[int, list[Path]] = {}  # by thread
        self._is_on = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Record one event of the interpreter."""
        file = Path(frame.f_code.co_filename)
        if self._is_on and event == "call" and file.is_relative_to(PACKAGE):
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


def test_the_path_of_a_call_does_not_grow(shop: Shop) -> None:
    """A creation and a whole payment stay within their limits; a separate commit raises one, with the reason."""
    with recorded_threads() as recorder, make_server(seed=1, clock="frozen") as server:
        sandbox = Sandbox(server, webhook_url=shop.url)

        def pay() -> None:
            sandbox.pay(sandbox.place(card()))
            sandbox.settle()

        pay()  # loads what is loaded at the first use
        creation, payment = recorder.shortest(lambda: sandbox.place(card())), recorder.shortest(pay)
    assert all(length <= limit for length, limit in zip(creation, CREATION_MAX, strict=True)), creation
    assert all(length <= limit for length, limit in zip(payment, PAYMENT_MAX, strict=True)), payment


def test_the_path_of_a_payment_test_does_not_grow() -> None:
    """A test with the fixture stays within its limit: a project, a payment with two webhooks, and the review."""
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
        test = recorder.shortest(pay)
        sys.setprofile(None)
    check_order(on=True)
    assert all(length <= limit for length, limit in zip(test, TEST_MAX, strict=True)), test
