"""Lazy modules are complete for every thread, whichever thread is first, and a first order loads few of them."""

import ast
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from random import Random  # noqa: TID251 (an order of its own for each thread)
from threading import Event

import pytest

from payment_sandbox.loading import load_module
from tests.support.commands import run_program
from tests.support.packages import module_name, sources
from tests.support.samples import of_the_day

THREADS = 8
PAUSE_SECONDS = 0.001  # enough for a thread to proceed until it blocks


def loadable_names() -> list[str]:
    """Return the names of the modules that are loaded lazily; some libraries may be missing."""
    names = set()
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("LazyModule", "late"):
                modules = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
                is_own = ast.unparse(node.func) == "late"
                names |= {f"{module_name(file)}.{name}" if is_own else name for name in modules}
    return sorted(name for name in names if find_spec(name.partition(".")[0]) is not None)


def load_all(names: Sequence[str]) -> set[str]:
    """Load modules; return the problems."""
    problems = set()
    for name in names:
        try:
            if load_module(name) is not sys.modules[name]:
                problems.add(f"{name}: two threads have different modules")
        except BaseException as error:
            problems.add(f"{name}: {error!r}")
    return problems


def pause_on_load(event: str, _: tuple[object, ...]) -> None:
    """Let other threads run when a module begins to load."""
    if event == "exec":
        Event().wait(PAUSE_SECONDS)


def load_in_random_order(seed: int) -> list[str]:
    """Return the problems of eight threads that load all modules, each in a random order."""
    orders, names = Random(seed), loadable_names()
    sys.addaudithook(pause_on_load)
    with ThreadPoolExecutor(THREADS) as threads:
        problems = threads.map(load_all, [orders.sample(names, len(names)) for _ in range(THREADS)])
        return sorted(set().union(*problems))


@pytest.mark.prove
@pytest.mark.parametrize("seed", of_the_day(range(1, 10), 1))
def test_eight_threads_can_load_all_lazy_modules_in_any_order(seed: int) -> None:
    """Eight threads of a fresh process can load all lazy modules, each thread in a different order."""
    assert len(loadable_names()) > 20
    program = [sys.executable, "-m", __name__, str(seed)]
    completed = run_program(program, Path(__file__).parents[1], 240)
    assert (completed.stdout, completed.stderr) == ("[]", "")


WITHOUT_LOCK = """
import sys
from importlib import import_module
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
    completed = run_program([sys.executable, "-c", WITHOUT_LOCK, *names])
    assert completed.stdout.splitlines()[-1:] == ["all"], completed.stderr


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
    own_modules, *libraries = run_program(program).stdout.split()
    assert int(own_modules) <= LOADED_MAX
    unknown = {name for name in libraries if not name.startswith("_") and "mypyc" not in name}
    assert unknown - LIBRARIES - ENVIRONMENT_MODULES == set()


if __name__ == "__main__":
    json.dump(load_in_random_order(int(sys.argv[1])), sys.stdout)
