"""What is loaded late is loaded whole, whoever needs it first."""

import subprocess
import sys

import pytest

LOADING = """
import sys
from threading import Event, Thread
from payment_sandbox.serving import sessions, wire

first, second = Thread(target=wire.warm_up), Thread(target=lambda: sessions.direct_session().close())
first, second = (first, second) if float(sys.argv[1]) >= 0 else (second, first)
first.start()
Event().wait(abs(float(sys.argv[1])))
second.start()
first.join()
second.join()
"""


@pytest.mark.parametrize("apart_seconds", [0, 0.005, 0.01, 0.03, -0.005, -0.02, -0.05])
def test_two_threads_may_need_the_network_at_once(apart_seconds: float) -> None:
    """A webhook while the server warms up: none of them gets half of a library, which ended the server."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADING, str(apart_seconds)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
