"""A shop in PHP that prefixes ``payment_url`` with ``https://``, like many plugins."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from tests.support.commands import command, run_program
from tests.support.documentation import ROOT
from tests.support.ports import free_port
from tests.support.tools import require

SHOP = ROOT / "tests" / "howto" / "projects" / "compose" / "shop"

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start programs, wait for the first line of their output, and stop them after the test."""
    with ExitStack() as stack:

        def start_program(*program: str, **environment: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                program,
                env={**os.environ, **environment},
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            assert process.stdout is not None
            stack.callback(process.stdout.close)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)  # including its workers
            assert process.stdout.readline(), "the program has ended"
            return process

        yield start_program


def trust(ca_file: str, home: Path) -> None:
    """Let Chromium trust a certificate authority, as the page about https explains."""
    database = home / ".pki" / "nssdb"
    database.mkdir(parents=True)
    options = ["-d", f"sql:{database}"]
    subprocess.run(["certutil", *options, "-N", "--empty-password"], check=True, timeout=30)
    add = ["-A", "-t", "C,,", "-n", "payment-sandbox", "-i", ca_file]
    subprocess.run(["certutil", *options, *add], check=True, timeout=30)


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_customer_pays_in_chromium(start: Start, tmp_path: Path, is_trusted: bool) -> None:
    """A customer pays over https with a trusted certificate; without it, Chromium refuses the page."""
    require("php-cli", "libnss3-tools", "chromium")
    ready, port = tmp_path / "ready.json", free_port()
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    webhook_url = f"http://127.0.0.1:{port}/webhook.php"
    options = ["--port", "0", "--tls", "--ready-file", str(ready), "--webhook-url", webhook_url]
    start(*command("serve", *options), **state)
    addresses = json.loads(ready.read_text())
    shop = {"SANDBOX_URL": addresses["listening"], "SANDBOX_API_KEY": "sandbox-key", "SCHEME": "https"}
    start(
        "php",
        "-d",
        f"openssl.cafile={addresses['ca_file']}",
        "-S",
        f"127.0.0.1:{port}",
        "-t",
        str(SHOP),
        **shop,
        PHP_CLI_SERVER_WORKERS="4",
    )
    home = tmp_path / "home"
    home.mkdir()
    if is_trusted:
        trust(addresses["ca_file"], home)
    buy = (sys.executable, "-m", "tests.containers.customer", f"http://127.0.0.1:{port}/")
    purchase = run_program(buy, ROOT, 120, HOME=str(home))
    session = requests.Session()
    session.trust_env, session.verify = False, addresses["ca_file"]  # requests prefers the environment
    sandbox = SandboxClient(addresses["listening"], "sandbox-key", session=session)
    (order,) = sandbox.orders()
    sandbox.close()
    if is_trusted:
        assert purchase.stdout.splitlines() == [
            addresses["url"],
            "Order completed",
            "The webhook said: completed",
        ], purchase.stderr[-2000:]
        assert (order["status"], order["webhooks"]["failed"]) == ("completed", 0)
    else:
        assert "the browser refuses the payment page" in purchase.stderr
        assert order["status"] == "new"
