"""``compose.yaml``: its services run as processes in a separate network, with their names and environment."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.commands import command
from tests.support.documentation import ROOT, run_command
from tests.support.tools import require

COMPOSE: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
CONTAINERFILE = (ROOT / "Containerfile").read_text()
ADDRESSES = {"localhost": "127.0.0.1", "sandbox": "127.0.0.2", "shop": "127.0.0.3"}
NETWORK = ["unshare", "--net", "--mount", "--kill-child", "--fork", "--pid"]

SCRIPT = """
set -eu
ip link set lo up
mount --bind {hosts} /etc/hosts
( {sandbox} ) > sandbox.log 2>&1 &
timeout 30 sh -c 'until {health}; do sleep 0.2; done'
( {shop} ) > shop.log 2>&1 &
timeout 30 sh -c 'until curl -s -o /dev/null http://localhost:8000/; do sleep 0.2; done'
{customer}
"""


def image_environment() -> dict[str, str]:
    """Return the environment variables of the image."""
    lines = CONTAINERFILE.rpartition("FROM ")[2].replace("\\\n", " ").splitlines()
    (assignments,) = (line.removeprefix("ENV ") for line in lines if line.startswith("ENV "))
    return dict(pair.split("=", 1) for pair in assignments.split())


def with_environment(program: list[str], folder: Path, *variables: dict[str, str]) -> str:
    """Return a shell command with these variables; the state is in a folder of the test."""
    merged = {name: value for each in variables for name, value in each.items() if name != "PATH"}
    values = {name: _default_of(value).replace("/state", str(folder)) for name, value in merged.items()}
    pairs = [f"{name}={value}" for name, value in values.items()]
    return shlex.join(["env", "-C", str(ROOT), *pairs, *program])


def _default_of(value: str) -> str:
    """Return the default of an unset variable."""
    return value.partition(":-")[2].removesuffix("}") if value.startswith("${") else value


def test_a_customer_buys_in_the_shop_beside_the_sandbox(tmp_path: Path) -> None:
    """Browser and shop reach the sandbox under different names, and its webhooks reach the shop."""
    require("php-cli", "iproute2", "curl", "chromium", "util-linux")
    if os.geteuid() != 0 or run_command([*NETWORK, "true"], tmp_path).returncode:
        pytest.skip("needs root to create a network namespace")
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in ADDRESSES.items()))
    shop_folder = SERVICES["shop"]["volumes"][0].partition(":")[0]
    php = [part.replace("/shop", str(ROOT / shop_folder)) for part in SERVICES["shop"]["command"]]
    customer = [sys.executable, "-m", "tests.containers.customer", "http://localhost:8000/"]
    script = SCRIPT.format(
        hosts=hosts,
        sandbox=with_environment(
            command("serve"), tmp_path, image_environment(), SERVICES["sandbox"]["environment"]
        ),
        health=shlex.join([*command("health"), "http://localhost:8080"]),
        shop=with_environment(php, tmp_path, SERVICES["shop"]["environment"]),
        customer=shlex.join(["env", "-C", str(ROOT), *customer]),
    )
    in_network = [*NETWORK, "bash", "-c", script]
    completed = run_command(in_network, tmp_path, 150, HOME=str(tmp_path))
    logs = "".join(file.read_text() for file in tmp_path.glob("*.log"))
    assert completed.returncode == 0, f"{completed.stderr[-2000:]}\n{logs[-3000:]}"
    assert completed.stdout.splitlines()[-3:] == [
        "http://localhost:8080",
        "Order completed",
        "The webhook said: completed",
    ]
    assert "webhook completed to http://shop:8000/webhook.php  answered 204" in logs


def test_the_sandbox_can_write_only_its_state() -> None:
    """The services run without root, capabilities or a writable file system, and listen locally only."""
    for name in ("sandbox", "one", "two"):
        assert (SERVICES[name]["read_only"], SERVICES[name]["cap_drop"]) == (True, ["ALL"])
    assert SERVICES["sandbox"]["volumes"] == ["sandbox-state:/state"]
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert "USER 10001:10001" in CONTAINERFILE
    assert "VOLUME /state" in CONTAINERFILE


def test_every_variable_belongs_to_an_option() -> None:
    """Every variable belongs to an option of ``serve``; a misspelled variable would be ignored."""
    from payment_sandbox.cli.serve import serve

    known = {variable for parameter in serve.params if (variable := parameter.envvar)}
    variables = {
        **image_environment(),
        **SERVICES["sandbox"]["environment"],
        **SERVICES["one"]["environment"],
    }
    assert {name for name in variables if name.startswith("SANDBOX_")} <= known
