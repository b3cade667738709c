"""A merchant's test run releases all processes, threads and ports, however it ends."""

import gc
import signal
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.commands import hearing
from tests.support.documentation import environment
from tests.support.suites import PLUGINS, passed, suite

ORDER = {"currency": "EUR", "amount": 1, "transactions": [{"payment_method": "wallet-web"}]}
INTERRUPTED = """
import socket
import sys
import threading
import requests

def send_ports_when_waiting(ports):
    def profile(frame, event, argument):
        if event == "c_call" and frame.f_code.co_name in ("wait", "readinto"):
            sys.setprofile(None)
            with socket.create_connection(("127.0.0.1", PORT)) as connection:
                connection.sendall(ports.encode())
    sys.setprofile(profile)

def test_that_takes_long(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    ports = payment_sandbox.base_url.rpartition(":")[2] + " " + webhook_receiver.url.split(":")[2].split("/")[0]
    send_ports_when_waiting(ports)
    while True:  # until the interruption
        WAIT
"""
WAITS = {
    "waiting": "payment_sandbox.client.wait(webhook='00000000-0000-4000-8000-000000000000', timeout_seconds=50)",
    "waiting over a socket": "requests.get(payment_sandbox.base_url + '/control/wait/', "
    "params={'webhook': '00000000-0000-4000-8000-000000000000', 'timeout': 50}, auth=(payment_sandbox.api_key, ''))",
    "watching": "list(payment_sandbox.client.events())",
    "doing nothing": "threading.Event().wait(50)",
}


def is_listening(port: int) -> bool:
    """Return whether a server listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "wait", [name if name == "waiting" else pytest.param(name, marks=pytest.mark.prove) for name in WAITS]
)
def test_ctrl_c_in_the_middle(tmp_path: Path, wait: str) -> None:
    """An interrupted run ends at once like any run of pytest, and releases its ports."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(90)
    port = str(listening.getsockname()[1])
    (tmp_path / "test_long.py").write_text(INTERRUPTED.replace("WAIT", WAITS[wait]).replace("PORT", port))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    with (
        listening,
        subprocess.Popen(
            hearing(command),
            cwd=tmp_path,
            env=environment(**PLUGINS),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        connection, _ = listening.accept()
        with connection, connection.makefile() as file:
            ports = [int(port) for port in file.read().split()]
        assert all(map(is_listening, ports))
        assert len(ports) == 2
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=90)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert not any(map(is_listening, ports))


def test_a_server_leaves_no_thread_and_no_port() -> None:
    """A stopped server in this process releases its threads and its port, even with an open project."""
    before = set(threading.enumerate())
    with PaymentSandboxServer() as server:
        project = server.project({"webhook_url": "http://127.0.0.1:9/webhook"})
        order = project.client.call("POST", "/v1/orders/", ORDER)
        project.act(order["id"])
        project.client.clock.run()
        events = project.client.events()
        port = int(server.base_url.rpartition(":")[2])
        assert is_listening(port)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert set(threading.enumerate()) - before == set()
    assert not is_listening(port)
    events.close()


def test_a_deleted_project_is_freed_without_the_collector() -> None:
    """A deleted project is freed without the garbage collector, as long-lived servers freeze objects."""
    server = PaymentSandboxServer()
    assert server.in_process is not None
    project = server.project({"webhook_url": "http://127.0.0.1:9/webhook"})
    is_collected = threading.Event()
    registered = server.in_process.registry.find(project.api_key)
    reference = weakref.ref(registered or project, lambda ended: is_collected.set())
    del registered
    project.client.call("POST", "/v1/orders/", ORDER)
    project.clock.advance("PT1H")
    project.client.reset()
    order_id = project.client.call("POST", "/v1/orders/", ORDER)["id"]
    project.act(order_id)
    gc.collect()
    gc.disable()
    try:
        project.close()
        server.project({}).close()  # frees references to the newest project
        assert is_collected.wait(60), "a carrier may still hold a reference"
        assert reference() is None
    finally:
        gc.enable()
        server.stop()


def test_closing_a_project_ends_its_waits_and_streams() -> None:
    """Closing a project ends its waits and event streams at once."""
    server = PaymentSandboxServer()
    project = server.project({})
    client = SandboxClient(server.base_url, project.api_key)
    events = client.events()
    refusals: list[SandboxError] = []

    def wait() -> None:
        try:
            client.wait(webhook="00000000-0000-4000-8000-000000000000", timeout_seconds=60)
        except SandboxError as error:
            refusals.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    project.close()
    thread.join(60)
    assert [error.status for error in refusals] in (
        [404],
        [401],
    )  # 401: the project was deleted before the wait began
    assert {event.kind for event in events} <= {"clock", "reset", "scenario"}, "the stream ends afterwards"
    server.stop()


FORKED = """
import os
import pickle
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    "Run each test in a forked process that exits without cleanup, as pytest-forked does."
    read, write = os.pipe()
    child = os.fork()
    if not child:
        reports = runtestprotocol(item, log=False)
        os.write(write, pickle.dumps([item.config.hook.pytest_report_to_serializable(config=item.config, report=report) for report in reports]))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    for data in pickle.loads(raw):
        item.ihook.pytest_runtest_logreport(report=item.config.hook.pytest_report_from_serializable(config=item.config, data=data))
    return True
"""
SEVERAL = """
@pytest.mark.parametrize("number", range(5))
def test_one_of_several(payment_sandbox, shop, webhook_receiver, number):
    order = place(payment_sandbox)
    over_http = requests.get(
        f"{payment_sandbox.base_url}/v1/orders/{order['id']}/", auth=(payment_sandbox.api_key, "")
    )
    assert over_http.status_code == 200
    payment_sandbox.act(order["id"])
    assert shop.known[-1] == "completed"
    assert [entry["order_id"] for entry in payment_sandbox.client.journal(method="POST")] == [order["id"]]
"""


@pytest.mark.prove
def test_each_test_in_a_forked_process(tmp_path: Path) -> None:
    """Tests work in forked processes that exit without cleanup."""
    (tmp_path / "conftest.py").write_text(FORKED)
    passed(suite(tmp_path, SEVERAL), 5)


FORKING = """
import os

def test_children_that_exit_or_are_killed(payment_sandbox, shop):
    for end in (lambda: os._exit(0), lambda: os.kill(os.getpid(), 9)):
        child = os.fork()
        if not child:
            end()
        os.waitpid(child, 0)
        order = place(payment_sandbox)
        payment_sandbox.act(order["id"])
        assert shop.known[-1] == "completed"
        assert requests.get(f"{payment_sandbox.base_url}/health/").status_code == 200
"""


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_of_a_test_disturb_nothing(tmp_path: Path) -> None:
    """A test that forks can continue to use its server."""
    passed(suite(tmp_path, FORKING), 1)


PENDING_WORK = """
first = {}

def test_a_has_pending_work(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    payment_sandbox.client.clock.run(rate=1000000)
    first["order"] = place(payment_sandbox)
    first["sandbox"] = payment_sandbox


def test_b_is_not_affected(payment_sandbox, webhook_receiver):
    import threading
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    assert payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{first['order']['id']}/").status_code == 404
    answer = requests.get(f"{payment_sandbox.base_url}/control/project/", auth=(first["sandbox"].api_key, ""))
    assert answer.status_code == 401
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    payment_sandbox.client.wait(idle=True)
    assert {webhook.order_id for webhook in webhook_receiver.received} == {order["id"]}
"""


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2", "--dist", "loadfile"), marks=pytest.mark.prove)]
)
def test_pending_work_of_a_test_ends_with_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A project with a running clock and pending work is deleted with its test."""
    passed(suite(tmp_path, PENDING_WORK, *options), 2)


def test_projects_with_running_clocks_are_freed() -> None:
    """The scheduler frees closed projects with running clocks at once."""
    server = PaymentSandboxServer()
    assert server.in_process is not None
    references = []
    for _ in range(5):
        project = server.project({})
        project.client.clock.run()
        project.client.call("POST", "/v1/orders/", {**ORDER, "transactions": []})
        references.append(weakref.ref(server.in_process.registry.find(project.api_key) or project))
        project.close()
    server.project({}).close()
    gc.collect()
    assert [reference() for reference in references].count(None) >= 4, "the scheduler may still hold one"
    server.stop()
    gc.collect()
    assert [reference() for reference in references] == [None] * 5
