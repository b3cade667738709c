"""A merchant's test run releases all processes, threads and ports, however it ends."""

import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.commands import hearing
from tests.support.documentation import environment
from tests.support.suites import PLUGINS, SHOP, passed, suite

ORDER = {"currency": "EUR", "amount": 1, "transactions": [{"payment_method": "wallet-web"}]}
INTERRUPTED = """
import socket
import sys

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
        payment_sandbox.client.wait(webhook="00000000-0000-4000-8000-000000000000", timeout_seconds=50)
"""


def is_listening(port: int) -> bool:
    """Return whether a server listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def started(folder: Path, code: str, *options: str) -> subprocess.Popen[str]:
    """Start pytest with a suite, which a signal can interrupt."""
    (folder / "test_shop.py").write_text(code)
    return subprocess.Popen(
        hearing([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_shop.py"]),
        cwd=folder,
        env=environment(**PLUGINS),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_ctrl_c_in_the_middle(tmp_path: Path) -> None:
    """An interrupted run ends at once like any run of pytest, and releases its ports."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(90)
    port = str(listening.getsockname()[1])
    with listening, started(tmp_path, INTERRUPTED.replace("PORT", port), "-q") as process:
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


HANGS_FOR_GOOD = """
import time

@pytest.mark.payment_settings(webhook_timeout=0.2)
def test_it(payment_sandbox):
    app = Flask("shop")

    @app.post("/webhook")
    def hang():
        while True:
            time.sleep(1)

    payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox)["id"], action="visit")
"""


def test_a_handler_that_hangs_for_good_is_named_on_the_terminal(tmp_path: Path) -> None:
    """Although the runner captures output, a line names the handler; Ctrl-C then ends the run at once."""
    with started(tmp_path, SHOP + HANGS_FOR_GOOD, "-v") as process:
        assert process.stdout is not None
        line = next((each for each in process.stdout if "no answer within 0.2 seconds" in each), "")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=90)
    file = re.escape(str(tmp_path / "test_shop.py"))
    assert re.match(rf"payment-sandbox: the webhook handler hang \({file}, line \d+\):", line), line + rest
    assert "KeyboardInterrupt" in rest


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


def test_pending_work_of_a_test_ends_with_it(tmp_path: Path) -> None:
    """A project with a running clock and pending work is deleted with its test."""
    passed(suite(tmp_path, PENDING_WORK), 2)
