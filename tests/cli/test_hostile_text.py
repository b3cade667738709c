"""What a merchant has sent controls no terminal, and forges no row."""

import pytest
import requests
from click.testing import CliRunner

from payment_sandbox.cli.main import commands
from payment_sandbox.client.client import SandboxClient

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
    answer = requests.post(f"{client.base_url}/v1/orders/", json=order, auth=(client.api_key, ""), timeout=10)
    assert answer.status_code == 201, answer.text
    client.act(answer.json()["id"], "customer", "fail", reason=HOSTILE)
    requests.get(
        f"{client.base_url}/v1/orders/{answer.json()['id']}/%1b[2J%0aforged",
        auth=(client.api_key, ""),
        timeout=10,
    )
    return client


@pytest.mark.parametrize(
    "command",
    [
        "orders",
        "order",
        "journal",
        "projects",
        "settings",
        "webhooks",
        "agenda",
        "review",
        "scenario",
        "faults",
    ],
)
def test_texts_are_escaped(client: SandboxClient, command: str) -> None:
    """Line feeds, too."""
    environment = {"SANDBOX_URL": client.base_url, "SANDBOX_API_KEY": client.api_key}
    result = CliRunner().invoke(commands, [command], env=environment, catch_exceptions=False)
    assert [letter for letter in result.output if not letter.isprintable() and letter != "\n"] == []
    assert not any(line.lstrip().startswith(("ORDER 7", "forged")) for line in result.output.splitlines())
    if command in ("orders", "projects"):
        assert PRINTED in result.output
