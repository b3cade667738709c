"""However a merchant's test run ends, nothing of it stays: no process, no thread, no port."""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.commands import hearing
from tests.support.suites import passed, suite

ORDER = {"currency": "EUR", "amount": 1, "transactions": [{"payment_method": "wallet-web"}]}
INTERRUPTED = """
import socket
import sys
import threading
import requests

def tell_once_it_waits(ports):
    def look(frame, event, argument):
        if event == "c_call" and frame.f_code.co_name in ("wait", "readinto"):
            sys.setprofile(None)
            with socket.create_connection(("127.0.0.1", PORT)) as told:
                told.sendall(ports.encode())
    sys.setprofile(look)

def test_that_takes_long(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    ports = payment_sandbox.base_url.rpartition(":")[2] + " " + webhook_receiver.url.split(":")[2].split("/")[0]
    tell_once_it_waits(ports)
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
    """Whether somebody listens there."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "wait", [name if name == "waiting" else pytest.param(name, marks=pytest.mark.prove) for name in WAITS]
)
def test_ctrl_c_in_the_middle(tmp_path: Path, wait: str) -> None:
    """The run ends at once, as pytest ends when it is interrupted, and its ports are free."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(60)
    port = str(listening.getsockname()[1])
    (tmp_path / "test_long.py").write_text(INTERRUPTED.replace("WAIT", WAITS[wait]).replace("PORT", port))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        str(tmp_path),
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SANDBOX_"))}
    with (
        listening,
        subprocess.Popen(
            hearing(command),
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running,
    ):
        telling, _ = listening.accept()
        with telling, telling.makefile() as told:
            ports = [int(port) for port in told.read().split()]
        assert all(map(is_listening, ports))
        assert len(ports) == 2
        running.send_signal(signal.SIGINT)
        printed, _ = running.communicate(timeout=30)  # what it waited for takes 50
    assert running.returncode == pytest.ExitCode.INTERRUPTED, printed
    assert "KeyboardInterrupt" in printed
    assert not any(map(is_listening, ports))


def test_a_server_leaves_no_thread_and_no_port() -> None:
    """Stopped in this process, with a project that was left as it was."""
    before = set(threading.enumerate())
    server = PaymentSandboxServer()
    project = server.project({"webhook_url": "http://127.0.0.1:9/webhook"})
    order = project.client.call("POST", "/v1/orders/", ORDER)
    project.act(order["id"])
    project.client.clock.run()
    events = project.client.events()
    port = int(server.base_url.rpartition(":")[2])
    assert is_listening(port)
    server.stop()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) - before == set()
    assert not is_listening(port)
    events.close()


def test_a_deleted_project_goes_without_the_collector() -> None:
    """A long-lived server freezes what it holds, so a project that holds itself would stay for ever."""
    server = PaymentSandboxServer()
    assert server.in_process is not None
    project = server.project({"webhook_url": "http://127.0.0.1:9/webhook"})
    is_gone = threading.Event()
    found = server.in_process.registry.find(project.api_key)
    gone = weakref.ref(found or project, lambda ended: is_gone.set())
    del found
    project.client.call("POST", "/v1/orders/", ORDER)
    project.clock.advance("PT1H")
    project.client.reset()
    order_id = project.client.call("POST", "/v1/orders/", ORDER)["id"]
    project.act(order_id)
    gc.collect()
    gc.disable()
    try:
        project.close()
        server.project({}).close()  # the last one may still be known by name
        assert is_gone.wait(10), "a carrier may still be on its way home"
        assert gone() is None
    finally:
        gc.enable()
        server.stop()


def test_who_waits_in_a_project_that_goes_is_told() -> None:
    """At once, by a call and by a stream, and not after the time is over."""
    server = PaymentSandboxServer()
    project = server.project({})
    client = SandboxClient(server.base_url, project.api_key)
    events = client.events()
    refusals: list[SandboxError] = []

    def wait() -> None:
        try:
            client.wait(webhook="00000000-0000-4000-8000-000000000000", timeout_seconds=60)
        except SandboxError as refused:
            refusals.append(refused)

    waiting = threading.Thread(target=wait)
    waiting.start()
    project.close()
    waiting.join(10)
    assert [refused.status for refused in refusals] in (
        [404],
        [401],
    )  # 401: it was gone before the wait began
    assert {event.kind for event in events} <= {"clock", "reset", "scenario"}, "and then the stream ended"
    server.stop()


FORKED = """
import os
import pickle
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    "Each test in a process of its own that ends without a farewell, as pytest-forked does it."
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
def test_each_test_in_a_process_of_its_own(tmp_path: Path) -> None:
    """That ends without a farewell."""
    (tmp_path / "conftest.py").write_text(FORKED)
    passed(suite(tmp_path, SEVERAL), 5)


FORKING = """
import os

def test_a_child_that_ends_in_every_way(payment_sandbox, shop):
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
    """A test that forks goes on with the server that it had."""
    passed(suite(tmp_path, FORKING), 1)


LEFT_BEHIND = """
left = {}

def test_a_leaves_work_behind(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    payment_sandbox.client.clock.run(rate=1000000)
    left["order"] = place(payment_sandbox)
    left["sandbox"] = payment_sandbox


def test_b_sees_nothing_of_it(payment_sandbox, webhook_receiver):
    import threading
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    assert payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{left['order']['id']}/").status_code == 404
    answer = requests.get(f"{payment_sandbox.base_url}/control/project/", auth=(left["sandbox"].api_key, ""))
    assert answer.status_code == 401
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    payment_sandbox.client.wait(idle=True)
    assert {webhook.order_id for webhook in webhook_receiver.received} == {order["id"]}
"""


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2", "--dist", "loadfile"), marks=pytest.mark.prove)]
)
def test_what_a_test_leaves_behind_goes_with_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A project that never comes to rest, on a clock that runs."""
    passed(suite(tmp_path, LEFT_BEHIND, *options), 2)


@pytest.mark.parametrize(
    "options",
    [
        ("-p", "randomly"),
        *(pytest.param(more, marks=pytest.mark.prove) for more in (("-n", "3"), ("-p", "no:xdist"))),
    ],
)
def test_any_order_on_any_number_of_workers(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With and without pytest-randomly and pytest-xdist."""
    passed(suite(tmp_path, SEVERAL, *options), 5)


def test_projects_whose_clocks_run_go_as_well() -> None:
    """The scheduler forgets them; it would have looked at them an hour later."""
    server = PaymentSandboxServer()
    assert server.in_process is not None
    gone = []
    for _ in range(5):
        project = server.project({})
        project.client.clock.run()
        project.client.call("POST", "/v1/orders/", {**ORDER, "transactions": []})
        gone.append(weakref.ref(server.in_process.registry.find(project.api_key) or project))
        project.close()
    server.project({}).close()
    gc.collect()
    assert [found() for found in gone].count(None) >= 4, "the scheduler may just be looking at one"
    server.stop()
    gc.collect()
    assert [found() for found in gone] == [None] * 5


def test_a_body_that_is_no_webhook(webhook_receiver: WebhookReceiver) -> None:
    """Is refused, and not kept."""
    assert requests.post(webhook_receiver.url, data=b"not JSON", timeout=5).status_code == 400
    assert webhook_receiver.received == []
