"""A server that replaces a provider, for shops with a fixed address."""

import json
import signal
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.cli.forks import Fork
from tests.support.commands import run_program
from tests.support.ports import free_port

HOST = "api.provider.example"
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_a_shop_with_the_address_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shop reaches the server over https, trusts its certificate, and gets links with that name."""
    port, ready = free_port(), tmp_path / "ready.json"
    options = ["--stand-in-for", HOST, "--port", str(port), "--ready-file", str(ready), "--quiet"]
    with closing(Fork("serve", *options, XDG_STATE_HOME=str(tmp_path))) as process:
        lines = [process.stdout.readline()]
        facts = json.loads(ready.read_text())
        lookup = socket.getaddrinfo

        def resolve(host: Any, *more: Any, **options: Any) -> Any:
            return lookup("127.0.0.1" if host == HOST else host, *more, **options)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with requests.Session() as shop:
            shop.trust_env = False
            answer = shop.post(
                f"https://{HOST}:{port}/v1/orders/",
                json=ORDER,
                auth=("sandbox-key", ""),
                verify=facts["ca_file"],
            )
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.readlines()
    assert answer.status_code == 201, answer.text
    assert answer.json()["transactions"][0]["payment_url"].startswith(f"{HOST}:{port}/")
    assert facts["url"] == f"https://{HOST}:{port}"
    printed = "".join(lines)
    assert f"echo '127.0.0.1 {HOST}' | sudo tee -a /etc/hosts" in printed
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {HOST}\n127.0.0.1 {HOST}.other\n")
    (undo,) = [line.strip() for line in printed.splitlines() if "sed -i" in line]
    shell = undo.removeprefix("sudo ").replace("/etc/hosts", str(hosts))
    assert run_program(["sh", "-c", shell]).returncode == 0
    assert hosts.read_text() == f"127.0.0.1 localhost\n127.0.0.1 {HOST}.other\n"
