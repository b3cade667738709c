"""The README's commands, pasted as they are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.orders.cards import CARDS
from sandbox.scenarios.default import DOCUMENT
from sandbox.server import Server

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PASTED = [block for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "curl" in block]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server as ``make run`` starts it, but for its port."""
    with Server() as running:
        yield running


def paste(server: Server, *blocks: str) -> str:
    """Run blocks in one shell, in the checkout."""
    assert shutil.which("curl"), "the README's commands need curl: install your system's package of that name"
    script = "\n".join(blocks).replace("http://127.0.0.1:8080", server.url)
    ran = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return ran.stdout


def test_the_first_payment_works_as_pasted(server: Server) -> None:
    """The order is created, paid and captured a week later, and its webhook attempts can be seen."""
    printed = paste(server, *PASTED[:-1])
    paid, advanced, read, webhooks = (json.loads(answer) for answer in printed.splitlines())
    assert (paid["status"], read["amount_details"]["captured"]) == ("completed", 1295)
    assert advanced["events"][-1]["kind"] == "delayed-capture"
    assert [len(item["attempts"]) for item in webhooks["items"]] == [10, 10]


def test_the_scenario_works_as_pasted(server: Server) -> None:
    """It is taken as it stands in its file."""
    printed = json.loads(paste(server, PASTED[-1]))
    assert (printed["name"], len(printed["rules"])) == ("second-try-works", 2)


def test_every_trigger_value_is_documented() -> None:
    """Customers, amounts and cards that the default scenario knows, and no other."""
    rules = DOCUMENT["rules"]
    customers = {rule["when"].get("customer", {}).get("email_address", "@*")[:-2] for rule in rules} - {""}
    assert set(re.findall(r"`([a-z-]+)@\.\.\.`", README)) == customers
    amounts = {rule["when"]["amount"] for rule in rules if "amount" in rule["when"]}
    assert {int(number) for number in re.findall(r"\b666\d\d\b", README)} == amounts
    assert all(f"`{name}`" in README for name in CARDS)
