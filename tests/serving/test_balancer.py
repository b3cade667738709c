"""Two servers behind HAProxy, as on the operation page, and as in ``compose.yaml``."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import requests
from ruamel.yaml import YAML

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.ui.docs.library import read_source
from tests.support.blocks import blocks
from tests.support.documentation import ROOT
from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.tools import require

BLOCKS = list(blocks(read_source("operation")))
(CONFIGURATION,) = (block.text for block in BLOCKS if block.file == "haproxy.cfg")
(SERVE,) = (block.text for block in BLOCKS if "--state" in block.text and "$DATABASE" in block.text)
BODY = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
AUTH = (FIRST_API_KEY, "")
TAKEOVER_SECONDS = 30  # on a loaded machine


@contextmanager
def started(folder: Path, *command: str, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program until the block ends."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **variables, "PATH": path}, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def call(url: str, method: str, path: str, key: str = "") -> requests.Response:
    """Make a call until it succeeds, as clients do that send an Idempotency-Key."""
    until = monotonic_seconds() + TAKEOVER_SECONDS
    headers = {"Idempotency-Key": key} if key else {}
    body = BODY if method == "POST" else None
    while True:
        try:
            answer = requests.request(
                method, f"{url}{path}", json=body, auth=AUTH, headers=headers, timeout=20
            )
        except requests.RequestException:
            answer = None
        if answer is not None and answer.status_code < 300:
            return answer
        assert monotonic_seconds() < until, answer and answer.text
        Event().wait(0.1)


def health(url: str) -> int:
    """Return the status of a server's health, once it listens."""
    until = monotonic_seconds() + TAKEOVER_SECONDS
    while True:
        try:
            return requests.get(url, timeout=20).status_code
        except requests.ConnectionError:
            assert monotonic_seconds() < until
            Event().wait(0.1)


def test_one_server_dies_behind_the_balancer_of_the_page(postgres: Postgres, tmp_path: Path) -> None:
    """The commands of the page, as pasted: when the writer is killed, the other one goes on behind the same address."""
    require("haproxy")
    front, ports, database = free_port(), [free_port(), free_port()], postgres.new_database()
    url = f"http://127.0.0.1:{front}"
    variables = {"ADDRESS": "127.0.0.1", "DATABASE": database, "PUBLIC_URL": url, "TOKEN": "let-me-in"}
    text = CONFIGURATION.replace("bind :8090", f"bind 127.0.0.1:{front}")
    for name, port in zip(("one", "two"), ports, strict=True):
        text = text.replace(f"{name}:8080", f"127.0.0.1:{port}")
    (tmp_path / "haproxy.cfg").write_text(text)
    with ExitStack() as stack:
        servers = {}
        for port in ports:
            program = started(tmp_path, "bash", "-c", f"exec {SERVE}", PORT=str(port), **variables)
            servers[port] = stack.enter_context(program)
        stack.enter_context(started(tmp_path, "haproxy", "-db", "-f", str(tmp_path / "haproxy.cfg")))
        order = call(url, "POST", "/v1/orders/", "first").json()
        assert order["order_url"].startswith(url.removeprefix("http://"))
        healths = {port: health(f"http://127.0.0.1:{port}/health/") for port in ports}
        assert sorted(healths.values()) == [200, 503]
        (writer,) = (port for port, status in healths.items() if status == 200)
        servers[writer].kill()
        assert call(url, "GET", f"/v1/orders/{order['id']}/").json()["status"] == "new"
        repeated = call(url, "POST", "/v1/orders/", "first")
        assert (repeated.json()["id"], repeated.headers["Idempotency-Replayed"]) == (order["id"], "true")


def test_the_configuration_of_compose_is_that_of_the_page() -> None:
    """``docker compose up balancer`` runs the balancer of the page, and waits for no standby to be healthy."""
    compose = YAML(typ="safe", pure=True).load(ROOT / "compose.yaml")
    assert compose["configs"]["balancer"]["content"].strip() == CONFIGURATION.strip()
    services = compose["services"]
    assert services["one"] == services["two"]
    needs = services["balancer"]["depends_on"]
    assert needs == {"one": {"condition": "service_started"}, "two": {"condition": "service_started"}}
