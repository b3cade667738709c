"""Modules that are imported late are complete for every thread that needs them."""

import subprocess
import sys

import pytest

from payment_sandbox.projects.registry import FIRST_PROJECT_ID
from tests.support.servers import make_server

LOADING = """
import sys
from threading import Thread
from payment_sandbox.serving.server import Server
from payment_sandbox.projects.registry import FIRST_PROJECT_ID
from payment_sandbox.loading import load_module
from payment_sandbox.serving import sessions

class Begins:
    "Starts the second thread when the first one is about to load a module."

    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not second.ident:
            second.start()

threads = [Thread(target=load_module, args=["requests"]), Thread(target=lambda: sessions.direct_session().close())]
first, second = threads if sys.argv[2] == "warm-up" else reversed(threads)
sys.meta_path.insert(0, Begins())
first.start()
first.join()
assert second.ident, "the module was not loaded by the first one"
second.join()
"""


@pytest.mark.parametrize("first", ["warm-up", "session"])
@pytest.mark.parametrize("module", ["requests", "urllib3", "urllib3.connectionpool", "requests.adapters"])
def test_two_threads_may_need_the_network_at_once(module: str, first: str) -> None:
    """A webhook during the warm-up of the server gets completely loaded modules."""
    result = subprocess.run(
        [sys.executable, "-c", LOADING, module, first], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_first_project_has_one_id_for_ever() -> None:
    """The first project has a constant id for bookmarks; other projects have different ids."""
    ids = []
    for _ in range(2):
        with make_server(clock="frozen") as server:
            server.registry.create({})
            ids.append([project.project_id for project in server.registry.all()])
    assert ids[0][0] == ids[1][0] == FIRST_PROJECT_ID
    assert ids[0][1] != ids[1][1]
