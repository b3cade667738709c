"""Starting ``serve``: webhook address, projects from files, https, and refused options."""

import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.cli.conftest import Serve
from tests.cli.forks import run
from tests.cli.test_serve import url_in
from tests.support.shop import Shop

KEY = ("sandbox-key", "")
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def start_serve(serve: Serve, *arguments: str) -> dict[str, Any]:
    """Start serve; return the fields of its first JSON line and its process."""
    process, first_line = serve("--log-format", "json", *arguments)
    facts: dict[str, Any] = {**json.loads(first_line), "process": process}
    return facts


def pay_order(url: str, key: str = "sandbox-key") -> str:
    """Create and pay an order; return its id."""
    auth = (key, "")
    order_id: str = requests.post(f"{url}/v1/orders/", json=ORDER, auth=auth).json()["id"]
    act = {"actor": "customer", "action": "pay"}
    requests.post(f"{url}/control/orders/{order_id}/act/", json=act, auth=auth)
    requests.get(f"{url}/control/wait/?webhook={order_id}", auth=auth)
    return order_id


@pytest.mark.rule("CTL-04")
def test_several_shops_from_a_file(serve: Serve, shop: Shop, tmp_path: Path) -> None:
    """Each project has its own address, scenario, settings and clock; the first project exists, too."""
    file = tmp_path / "shops.yaml"
    file.write_text(
        f"""
projects:
  - {{api_key: socks, name: Socks, webhook_url: "{shop.url}", clock: "frozen@2027-01-01T00:00:00Z"}}
  - {{api_key: shoes, name: Shoes, mode: live, scenario: second-try-works}}
"""
    )
    process, first_line = serve("--project", str(file))
    lines = [process.stdout.readline() for _ in range(8)]
    url = url_in(first_line)
    assert "Projects: Socks, Shoes, sandbox.\n" in lines
    assert f"Webhooks of Socks go to {shop.url}\n" in lines
    assert pay_order(url, "socks") in shop.orders()
    shoes = requests.get(f"{url}/control/project/", auth=("shoes", "")).json()
    assert (shoes["settings"]["mode"], shoes["scenario"]) == ("live", "second-try-works")
    assert requests.get(f"{url}/control/project/", auth=KEY).status_code == 200


def test_a_file_may_declare_the_first_project(serve: Serve, tmp_path: Path) -> None:
    """Options add settings that the file does not declare."""
    file = tmp_path / "shop.yaml"
    file.write_text("{api_key: sandbox-key, mode: live}")
    facts = start_serve(
        serve, "--project", str(file), "--scenario", "second-try-works", "--webhook-url", "http://x.test/"
    )
    project = requests.get(f"{facts['url']}/control/project/", auth=KEY).json()
    assert (project["scenario"], project["settings"]["mode"]) == ("second-try-works", "live")
    assert project["settings"]["webhook_url"] == "http://x.test/"
    assert "ignored" not in facts


def test_a_restart_keeps_what_the_state_file_has(serve: Serve, tmp_path: Path) -> None:
    """After a kill, acknowledged orders are there, due entries run, and changed declarations are reported."""
    state, file = str(tmp_path / "state.db"), tmp_path / "shops.yaml"
    file.write_text("{api_key: socks, name: Socks, mode: test, webhook_url: 'http://a.test/'}")
    options = ("--state", state, "--project", str(file))
    clock = ("--clock", "frozen@2027-01-01T00:00:00Z")
    killed = start_serve(serve, *options, *clock)
    order_id = requests.post(f"{killed['url']}/v1/orders/", json=ORDER, auth=KEY).json()["id"]
    killed["process"].kill()
    unchanged = start_serve(serve, *options, *clock)
    assert "ignored" not in killed.keys() | unchanged.keys()
    order = f"{unchanged['url']}/v1/orders/{order_id}/"
    assert requests.get(order, auth=KEY).json()["status"] == "new"
    advance = f"{unchanged['url']}/control/clock/advance/"
    advanced = requests.post(advance, json={"by": "PT30M"}, auth=KEY).json()
    assert advanced["from"].startswith("2027-01-01T00:00:00")
    assert requests.get(order, auth=KEY).json()["status"] == "expired"
    unchanged["process"].kill()
    file.write_text(
        "{api_key: socks, name: Socks, mode: live, webhook_url: 'http://a.test/', scenario: webhook-twice}"
    )
    restarted = start_serve(serve, *options, "--webhook-url", "http://b.test/")
    changed = "the commands settings, scenario and clock change them"
    assert restarted["ignored"] == [
        f"project Socks already exists and keeps its mode, scenario; {changed}",
        f"project sandbox already exists and keeps its webhook_url; {changed}",
    ]
    requests.delete(f"{restarted['url']}/control/project/", auth=("socks", ""))
    restarted["process"].kill()
    assert start_serve(serve, *options)["ignored"] == [
        "project Socks was deleted, so it is not created again"
    ]


def test_a_taken_port_is_explained(serve: Serve) -> None:
    """The error names the port, the option for another one, and a sandbox that listens there."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        sandbox_port = start_serve(serve)["url"].rpartition(":")[2]
        for port in (str(other.getsockname()[1]), sandbox_port):
            result = run("serve", "--port", port)
            assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
            assert f"port {port} is in use" in result.stderr
            assert "--port 0" in result.stderr
            assert ("a payment sandbox, version " in result.stderr) == (port == sandbox_port)


def test_an_address_of_another_machine_is_explained() -> None:
    """A foreign address and an unknown host name are explained."""
    assert "is not an address of this machine" in run("serve", "--host", "192.0.2.1", "--port", "0").stderr
    assert "cannot be resolved" in run("serve", "--host", "no-such.invalid", "--port", "0").stderr


def test_https_with_one_option(serve: Serve, tmp_path: Path) -> None:
    """The output names the authority to trust; commands of this user trust it, those of another one with ``--ca``."""
    ready, own = tmp_path / "ready.json", {"XDG_STATE_HOME": str(tmp_path)}
    process, _ = serve("--tls", "--allow-host", "sandbox", "--ready-file", str(ready), **own)
    lines = "".join(process.stdout.readline() for _ in range(9))
    file = tmp_path / "payment-sandbox" / "ca.pem"
    assert f"curl --cacert {file} " in lines
    assert f"trust {file}; see https://" in lines
    assert f"SSL_CERT_FILE={file} REQUESTS_CA_BUNDLE={file}\n" in lines  # requests ignores the first one
    facts = json.loads(ready.read_text())
    assert facts["url"].startswith("https://127.0.0.1:")
    assert requests.get(f"{facts['url']}/health/", verify=facts["ca_file"]).status_code == 200
    for url in (facts["url"], facts["listening"]):
        assert run("health", "--url", url, **own).stdout.startswith("ok")
    other = {"XDG_STATE_HOME": str(tmp_path / "other")}
    assert "is not trusted" in run("health", "--url", facts["url"], **other).stderr
    assert run("health", "--url", facts["url"], "--ca", facts["ca_file"], **other).stdout.startswith("ok")


def test_every_option_has_a_variable(serve: Serve) -> None:
    """Options can be set by environment variables, since service containers take no arguments."""
    variables = {
        "SANDBOX_CLOCK": "frozen",
        "SANDBOX_WEBHOOK_URL": "http://a.test/",
        "SANDBOX_LOG_FORMAT": "json",
        "SANDBOX_MAX_PROJECTS": "1",
    }
    _, first_line = serve(**variables)
    url = json.loads(first_line)["url"]
    project = requests.get(f"{url}/control/project/", auth=KEY).json()
    assert (project["clock"]["mode"], project["settings"]["webhook_url"]) == ("frozen", "http://a.test/")
    _, refused = [requests.post(f"{url}/control/projects/", json={}, auth=KEY) for _ in range(2)]
    assert (refused.status_code, "--max-projects" in refused.json()["error"]["value"]) == (429, True)
