"""Starting ``serve``: webhook address, projects from files, https, and refused options."""

import gc
import json
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.cli.server_process import bound_pauses
from tests.cli.test_serve import url_in
from tests.support.commands import Serve, run
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
    assert process.stdout is not None
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


def test_ignored_options_of_a_restart_are_reported(serve: Serve, tmp_path: Path) -> None:
    """Changed declarations of existing projects are reported, unchanged ones are not."""
    state, file = str(tmp_path / "state.db"), tmp_path / "shops.yaml"
    file.write_text("{api_key: socks, name: Socks, mode: test, webhook_url: 'http://a.test/'}")
    options = ("--state", state, "--project", str(file), "--clock", "frozen")
    for _ in range(2):
        first = start_serve(serve, *options)
        assert "ignored" not in first
        first["process"].kill()
        first["process"].wait()
    file.write_text(
        "{api_key: socks, name: Socks, mode: live, webhook_url: 'http://a.test/', scenario: webhook-twice}"
    )
    restarted = start_serve(
        serve, "--state", state, "--project", str(file), "--webhook-url", "http://b.test/"
    )
    changed = "the commands settings, scenario and clock change them"
    assert restarted["ignored"] == [
        f"project Socks already exists and keeps its mode, scenario; {changed}",
        f"project sandbox already exists and keeps its webhook_url; {changed}",
    ]
    requests.delete(f"{restarted['url']}/control/project/", auth=("socks", ""))
    restarted["process"].kill()
    restarted["process"].wait()
    third = start_serve(serve, "--state", state, "--project", str(file))
    assert third["ignored"] == ["project Socks was deleted, so it is not created again"]


def test_a_killed_server_restarts_with_its_state_file(serve: Serve, tmp_path: Path) -> None:
    """Acknowledged orders are restored, and due entries run."""
    state = ("--state", str(tmp_path / "state.db"))
    killed = start_serve(serve, *state, "--clock", "frozen@2027-01-01T00:00:00Z")
    order_id = requests.post(f"{killed['url']}/v1/orders/", json=ORDER, auth=KEY).json()["id"]
    killed["process"].kill()
    killed["process"].wait()
    url = start_serve(serve, *state)["url"]
    assert requests.get(f"{url}/v1/orders/{order_id}/", auth=KEY).json()["status"] == "new"
    advanced = requests.post(f"{url}/control/clock/advance/", json={"by": "PT30M"}, auth=KEY).json()
    assert advanced["from"].startswith("2027-01-01T00:00:00")
    assert requests.get(f"{url}/v1/orders/{order_id}/", auth=KEY).json()["status"] == "expired"


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


def test_https_with_one_option(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output names the authority; commands on the same machine trust it automatically."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    facts = start_serve(serve, "--tls", "--allow-host", "sandbox")
    assert facts["url"].startswith("https://127.0.0.1:")
    assert requests.get(f"{facts['url']}/health/", verify=facts["ca_file"]).status_code == 200
    assert run("health", "--url", facts["url"]).stdout.startswith("ok")
    assert run("health", "--url", facts["listening"]).stdout.startswith("ok")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert "is not trusted" in run("health", "--url", facts["url"]).stderr
    assert run("health", "--url", facts["url"], "--ca", facts["ca_file"]).stdout.startswith("ok")


def test_the_output_names_the_authority_to_trust(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed curl command includes the authority, and the variables of Python's clients name it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    process, _ = serve("--tls")
    assert process.stdout is not None
    lines = "".join(process.stdout.readline() for _ in range(9))
    file = tmp_path / "payment-sandbox" / "ca.pem"
    assert f"curl --cacert {file} " in lines
    assert f"trust {file}; see https://" in lines
    assert f"SSL_CERT_FILE={file} REQUESTS_CA_BUNDLE={file}\n" in lines  # requests ignores the first one


def test_a_variable_without_a_port_is_ignored(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes sets this variable for a service with the name sandbox."""
    monkeypatch.setenv("SANDBOX_PORT", "tcp://10.96.0.1:8080")
    assert start_serve(serve)["url"].startswith("http://127.0.0.1:")
    result = run("serve", "--port", "tcp://x", "--clock", "tomorrow")
    assert "--clock: must be" in result.stderr


def test_every_option_has_a_variable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options can be set by environment variables, since service containers take no arguments."""
    for name, value in {"CLOCK": "frozen", "WEBHOOK_URL": "http://a.test/", "LOG_FORMAT": "json"}.items():
        monkeypatch.setenv(f"SANDBOX_{name}", value)
    _, first_line = serve()
    project = requests.get(f"{json.loads(first_line)['url']}/control/project/", auth=KEY).json()
    assert (project["clock"]["mode"], project["settings"]["webhook_url"]) == ("frozen", "http://a.test/")


def test_an_option_limits_the_number_of_projects(serve: Serve) -> None:
    """A project beyond the maximum is refused, and the refusal names the option."""
    url = start_serve(serve, "--max-projects", "1")["url"]
    answers = [requests.post(f"{url}/control/projects/", json={}, auth=KEY) for _ in range(2)]
    assert answers[1].status_code == 429, answers[1].text
    assert "--max-projects" in answers[1].json()["error"]["value"]


def test_a_collection_scans_only_what_is_new() -> None:
    """What has survived a full collection of garbage is skipped by the next one."""
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.unfreeze()
    try:
        bound_pauses()
        kept = [[number] for number in range(1000)]
        frozen = gc.get_freeze_count()
        gc.collect()
        assert gc.get_freeze_count() >= frozen + len(kept)
        assert not any(value is kept[0] for value in gc.get_objects())
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
        gc.unfreeze()
