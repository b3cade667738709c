"""``serve --state postgresql://…``: several processes form one sandbox."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from ruamel.yaml import YAML

from payment_sandbox.ui.docs.library import read_source
from tests.cluster.conftest import Company
from tests.support.blocks import blocks
from tests.support.documentation import ROOT
from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.tools import require

pytestmark = pytest.mark.prove
KEY = ("sandbox-key", "")
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_a_draining_server_says_so(company: Company) -> None:
    """A draining server reports 503 at /health/, so that load balancers stop using it."""
    server = company.servers[0]
    assert server.cluster is not None
    server.cluster.is_draining = True
    answer = requests.get(f"{server.local_url}/health/")
    assert (answer.status_code, answer.json()["status"]) == (503, "draining")


def test_the_page_for_companies_works_as_written(postgresql: Postgres, tmp_path: Path) -> None:
    """The commands on the page start two servers behind HAProxy; one can be stopped during calls."""
    require("haproxy")
    examples = list(blocks(read_source("operation")))
    create, start = (block.text for block in examples if block.language == "shell")
    variables = {"PGHOST": "127.0.0.1", "PGPORT": str(postgresql.port), "PGUSER": "postgres"}
    subprocess.run(["sh", "-ec", create], env={**os.environ, **variables}, check=True)
    database = f"postgresql://sandbox@127.0.0.1:{postgresql.port}/sandbox"
    (balancer,) = (block.text for block in examples if block.file == "haproxy.cfg")
    front, ports = free_port(), [free_port(), free_port()]
    for number, port in enumerate(ports, start=1):
        balancer = balancer.replace(f"10.0.0.{number}:8080", f"127.0.0.1:{port}")
    (tmp_path / "haproxy.cfg").write_text(balancer.replace("bind :8080", f"bind 127.0.0.1:{front}"))
    url = f"http://127.0.0.1:{front}"
    values = {"DATABASE": database, "ADDRESS": "127.0.0.1", "PUBLIC_URL": url, "TOKEN": "t"}
    expect_a_company(
        url,
        ports,
        [(["sh", "-c", f"exec {start}"], {**values, "PORT": str(port)}) for port in ports],
        tmp_path,
    )


def test_the_compose_file_is_the_company_of_the_page() -> None:
    """The Compose file has the page's load balancer, and its servers use its database and its address."""
    compose = YAML(typ="safe", pure=True).load(ROOT / "compose.yaml")
    (balancer,) = (block.text for block in blocks(read_source("operation")) if block.file == "haproxy.cfg")
    services = compose["services"]
    for name, address in (("one", "10.0.0.1"), ("two", "10.0.0.2")):
        balancer = balancer.replace(f"{address}:8080", f"{name}:8080")
        names, variables = services["database"]["environment"], services[name]["environment"]
        user = f"{names['POSTGRES_USER']}:{names['POSTGRES_PASSWORD']}"
        assert variables["SANDBOX_STATE"] == f"postgresql://{user}@database:5432/{names['POSTGRES_DB']}"
        assert variables["SANDBOX_PUBLIC_URL"] == "http://localhost:8090"
    content = compose["configs"]["balancer"]["content"]
    assert content.split() == balancer.replace("bind :8080", "bind :8090").split()
    assert services["balancer"]["ports"] == ["127.0.0.1:8090:8090"]


def expect_a_company(
    url: str, ports: list[int], servers: list[tuple[list[str], dict[str, str]]], folder: Path
) -> None:
    """Check that two servers behind a load balancer form one sandbox, also while one of them stops."""
    with ExitStack() as stack:
        commands = [*servers, (["haproxy", "-db", "-f", str(folder / "haproxy.cfg")], {})]
        running = [
            _run(stack, command, {**os.environ, **variables}, folder) for command, variables in commands
        ]
        while not _is_ready(url) or not all(_is_ready(f"http://127.0.0.1:{port}") for port in ports):
            assert all(each.poll() is None for each in running), (folder / "log").read_text()
        while not all(_is_ready(url) for _ in range(10)):
            pass  # the load balancer does not use both servers yet
        created = requests.post(f"{url}/v1/orders/", json=ORDER, auth=KEY)
        assert created.status_code == 201, created.text
        order = created.json()
        assert order["transactions"][0]["payment_url"].startswith(url.partition("://")[2])
        session = requests.Session()
        subprocess.run(["kill", "-TERM", str(_listening_process(ports[0]))], check=True)
        for _ in range(100):
            answer = session.get(f"{url}/v1/orders/{order['id']}/", auth=KEY)
            assert answer.status_code == 200, answer.text


def _run(
    stack: ExitStack, command: list[str], environment: dict[str, str], folder: Path
) -> "subprocess.Popen[bytes]":
    log = stack.enter_context((folder / "log").open("ab"))
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"  # the folder of the command
    process = subprocess.Popen(command, env={**environment, "PATH": path}, stdout=log, stderr=log)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    return process


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/health/").status_code == 200
    except requests.ConnectionError:
        return False


def _listening_process(port: int) -> int:
    """Return the id of the process that listens on a port."""
    sockets = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True)
    match = re.search(r"pid=(\d+)", sockets.stdout)
    assert match is not None, sockets.stdout
    return int(match[1])
