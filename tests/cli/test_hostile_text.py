"""Texts from merchants cannot control a terminal or forge lines."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from click import Command
from click.testing import CliRunner

from payment_sandbox.cli.main import commands
from payment_sandbox.cli.remote import COMMANDS
from payment_sandbox.client.client import SandboxClient
from tests.support.shop import Shop

HOSTILE = "x\x1b[2J\x9b31m\u202ecod.exe\nORDER 7 is paid\r\u2028"
PRINTED = r"x\x1b[2J\x9b31m\u202ecod.exe\nORDER 7 is paid\r\u2028"


@pytest.fixture
def client(client: SandboxClient) -> SandboxClient:
    """A project in which every free text is hostile."""
    client.change_settings(webhook_url="http://127.0.0.1:9/webhook", name=HOSTILE)
    order = {
        "currency": "EUR",
        "amount": 1295,
        "merchant_order_id": HOSTILE,
        "description": HOSTILE,
        HOSTILE: 1,
        "customer": {"first_name": HOSTILE},
        "transactions": [{"payment_method": "credit-card"}],
    }
    answer = requests.post(f"{client.base_url}/v1/orders/", json=order, auth=(client.api_key, ""))
    assert answer.status_code == 201, answer.text
    client.act(answer.json()["id"], "customer", "fail", reason=HOSTILE)
    requests.get(
        f"{client.base_url}/v1/orders/{answer.json()['id']}/%1b[2J%0aforged",
        auth=(client.api_key, ""),
    )
    return client


NOT_RUN: Final = {
    "listen": "it runs until it is stopped; it escapes webhooks like events",
    "watch": "it runs until it is stopped",
}
ARGUMENTS: Final[dict[str, list[str]]] = {
    "act": ["last", "customer", "pay"],
    "wait": ["--idle"],
    "trigger": ["paid", f"{HOSTILE}=1"],
}


def run(client: SandboxClient, *arguments: str) -> str:
    """Run a command; return its output on both streams."""
    environment = {"SANDBOX_URL": client.base_url, "SANDBOX_API_KEY": client.api_key}
    result = CliRunner().invoke(commands, arguments, env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    output: str = result.output
    return output


def expect_harmless(output: str) -> None:
    """Assert that the output contains no control characters and no forged line."""
    assert [letter for letter in output if not letter.isprintable() and letter != "\n"] == []
    assert not any(line.lstrip().startswith(("ORDER 7", "forged")) for line in output.splitlines())


def scenario(description: str = HOSTILE) -> dict[str, Any]:
    """Return a scenario with hostile texts."""
    rule = {"when": {"merchant_order_id": HOSTILE}, "then": {"customer": "fails", "reason": HOSTILE}}
    return {"name": "mine", "description": description, "rules": [rule]}


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if each.name not in NOT_RUN], ids=lambda each: each.name
)
def test_texts_are_escaped(client: SandboxClient, command: Command) -> None:
    """Every command for a running server escapes texts, including line feeds."""
    client.call("PUT", "/control/scenario/", scenario())
    output = run(client, str(command.name), *ARGUMENTS.get(str(command.name), []))
    expect_harmless(output)
    if command.name in ("orders", "projects", "scenario"):
        assert PRINTED in output


def test_texts_of_findings_are_escaped(client: SandboxClient) -> None:
    """Findings are escaped in text and in JSON, also the names of their projects."""
    for chosen in ([], ["--json"], ["--all-projects"]):
        expect_harmless(run(client, "review", *chosen))


def test_texts_of_files_are_escaped(client: SandboxClient, tmp_path: Path) -> None:
    """Texts of scenario files are escaped."""
    files = {
        "fine.json": json.dumps(scenario()),
        "wrong.json": json.dumps({**scenario(), HOSTILE: HOSTILE, "name": HOSTILE}),
        "wrong.yaml": f"name: x\nrules:\n- then: {json.dumps({HOSTILE: HOSTILE})}\n",
        "broken.yaml": f"name: [{HOSTILE}",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text)
        for command in ("check", "scenario"):
            expect_harmless(run(client, command, str(path)))


def test_refusals_of_a_server_are_escaped(shop: Shop) -> None:
    """Refusals are escaped, also those of a server that is no sandbox."""
    refusal = {"status": 409, "type": HOSTILE, "value": HOSTILE, "violations": [], "allowed": [HOSTILE]}
    shop.says = json.dumps({"error": refusal}).encode()
    shop.answer = lambda received: (409, {"Content-Type": "application/json"})
    url = shop.url.removesuffix("/webhook")
    for name in ("orders", "scenario"):
        result = CliRunner().invoke(commands, [name], env={"SANDBOX_URL": url, "SANDBOX_API_KEY": "key"})
        expect_harmless(result.output)
        assert result.exit_code == 2
