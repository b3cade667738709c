"""Lazy modules and objects created on first use are complete for every thread, whichever thread is first."""

import json
import sys
from pathlib import Path

import pytest

from tests import first_uses
from tests.first_uses import loadable_names
from tests.support.commands import run_program
from tests.support.packages import module_name, sources
from tests.support.samples import of_the_day


def problems_of_first_uses(seed: int) -> list[str]:
    """Return the problems of eight threads in a fresh process."""
    program = [sys.executable, "-m", first_uses.__name__, str(seed)]
    completed = run_program(program, Path(__file__).parents[1], 240)
    assert completed.returncode == 0, completed.stderr
    problems: list[str] = json.loads(completed.stdout)
    return problems


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.prove) for seed in of_the_day(range(2, 10), 2))]
)
def test_eight_threads_can_load_all_lazy_modules_in_any_order(seed: int) -> None:
    """Eight threads can load all lazy modules, each thread in a different order."""
    assert len(loadable_names()) > 20
    assert problems_of_first_uses(seed) == []


WITHOUT_LOCK = """
import sys
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from payment_sandbox.loading import LOADING

def hold():
    with LOADING:
        held.set()
        over.wait()

held, over = Event(), Event()
Thread(target=hold, daemon=True).start()
held.wait()
for name in sys.argv[1:]:
    print(name, flush=True)
    import_module(name)
over.set()
print("all")
"""


def test_no_module_needs_the_lock_while_it_loads() -> None:
    """No module takes the lock while it is imported: that would deadlock with an import under the lock."""
    names = [module_name(path) for path in sources() if path.name != "__main__.py"]
    program = [sys.executable, "-c", WITHOUT_LOCK, *names]
    completed = run_program(program)
    assert completed.stdout.splitlines()[-1:] == ["all"], completed.stderr


FORK = """
import os
from threading import Event, Thread
from payment_sandbox.loading import LOADING

def load():
    with LOADING:
        begun.set()
        Event().wait(0.05)

begun = Event()
Thread(target=load).start()
begun.wait()
child = os.fork()
with LOADING:
    pass
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_can_import() -> None:
    """A forked child can import although another thread was importing during the fork."""
    assert run_program([sys.executable, "-c", FORK]).returncode == 0


RUN_CONCURRENTLY = """
import gc
import sys
import threading
from select import select
from threading import Barrier, Thread

def let_others_run(*given):
    select([], [], [], 0.0002)

def let_others_run_in(file):
    def on_call(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.endswith(file):
            let_others_run()

    threading.setprofile(on_call)

def at_once(*works):
    def run(work):
        ready.wait()
        try:
            results.append(work())
        except BaseException as error:
            results.append(error)

    ready, results = Barrier(len(works)), []
    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
"""

DESCRIPTIONS = """
import warnings
from werkzeug.test import Client
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.app import build

def described(server):
    return Client(server.app).get("/openapi.json").text.replace(server.url, "")

warnings.simplefilter("error")
let_others_run_in("web/openapi.py")
config = ServerConfig(clock="frozen", seed=1)
with build(config) as first, build(config) as second:
    results = at_once(*[lambda: described(first), lambda: described(second)] * 4)
assert len(set(results)) == 1, results
"""


REQUESTS = """
from payment_sandbox.loading import load_module
from payment_sandbox.serving import sessions

class Begins:
    "Starts the second thread when the first one is about to load the adapters."

    def find_spec(self, name, path=None, target=None):
        if name == "requests.adapters" and not second.ident:
            second.start()

first = Thread(target=load_module, args=["requests"])
second = Thread(target=lambda: sessions.direct_session().close())
sys.meta_path.insert(0, Begins())
first.start()
first.join()
second.join()
"""


@pytest.mark.parametrize("what", [DESCRIPTIONS, REQUESTS], ids=["OpenAPI", "requests"])
def test_threads_can_create_the_same_objects_concurrently(what: str) -> None:
    """Threads can create schemas, or import requests, at the same time without mixing them up."""
    completed = run_program([sys.executable, "-c", RUN_CONCURRENTLY + what])
    assert (completed.returncode, completed.stderr) == (0, "")


FIRST_ORDER_PROGRAM = """
import sys
from payment_sandbox import PaymentSandboxServer

order = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
server = PaymentSandboxServer()
project = server.project()
made = project.session.post(f"{project.base_url}/v1/orders/", json=order).json()
assert project.act(made["id"])["status"] == "completed"
tops = [name.partition(".")[0] for name in sys.modules]
print(tops.count("payment_sandbox"), *sorted({*tops} - {*sys.stdlib_module_names}))
server.stop()
"""
LOADED_MAX = 202
LIBRARIES = {"certifi", "charset_normalizer", "click", "idna", "markupsafe", "marshmallow"}
LIBRARIES |= {"payment_sandbox", "requests", "urllib3", "werkzeug"}
LIBRARIES |= {"blinker", "flask", "itsdangerous", "jinja2"}  # Flask, and what it brings
ENVIRONMENT_MODULES = {"backports", "cython_runtime", "distutils", "_distutils_hack", "__main__"}
ENVIRONMENT_MODULES |= {"packaging", "ruamel"}  # loaded by marshmallow 3.20 and by an old namespace package


def test_the_first_order_loads_few_modules() -> None:
    """A first order loads few of our modules, and no library of the extra ``[server]``."""
    program = [sys.executable, "-W", "ignore", "-c", FIRST_ORDER_PROGRAM]
    completed = run_program(program)
    own_modules, *libraries = completed.stdout.split()
    assert int(own_modules) <= LOADED_MAX
    unknown = {name for name in libraries if not name.startswith("_") and "mypyc" not in name}
    assert unknown - LIBRARIES - ENVIRONMENT_MODULES == set()
