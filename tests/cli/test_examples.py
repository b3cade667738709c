"""Every command has help with an example, and the example works."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner, Result

from payment_sandbox.cli.main import commands
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import trigger

START = "Example: payment-sandbox "
NOT_RUN = (
    "serve",
    "listen",
    "watch",
    "mcp",
)  # they run until Ctrl-C or run a suite, and have tests of their own


commands.add_remote_commands()
COMMANDS = commands.commands


@pytest.fixture
def client(client: SandboxClient) -> SandboxClient:
    """A project with orders for the commands that need some."""
    client.change_settings(webhook_url="http://127.0.0.1:9/webhook")
    trigger(client, "paid")
    trigger(client, "new")
    return client


def invoke(client: SandboxClient, *arguments: str, **more: str) -> Result:
    """Run a command against the project."""
    environment = {"SANDBOX_URL": client.base_url, "SANDBOX_API_KEY": client.api_key, **more}
    return CliRunner().invoke(commands, arguments, env=environment, catch_exceptions=False)


def values_for(client: SandboxClient, folder: Path) -> dict[str, str]:
    """Return values for the words in capitals of the examples."""
    (folder / "state.json").write_text(json.dumps(client.snapshot()))
    code = {"amount": 100, "description": "Coffee", "expiration_period": "P1D", "one_off": True}
    return {
        "KEY": client.api_key,
        "QR_ID": client.call("POST", "/v1/bankqr/", code)["id"],
    }


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NOT_RUN])
def test_the_example_works(
    name: str, client: SandboxClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example prints something and exits with code 0; review has findings and exits with code 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "second-try.yaml").write_text("name: second-try\nrules: []\n")
    if name == "wait":
        client.act(client.orders(limit=1)[0]["id"], "customer", "pay")
    example = (COMMANDS[name].epilog or "").removeprefix(START)
    arguments = [
        values_for(client, tmp_path).get(word, word) for word in shlex.split(example.partition(" > ")[0])
    ]
    result = invoke(client, *arguments)
    assert result.exit_code == (1 if name == "review" else 0), result.output
    assert result.output.strip()


def test_programs_get_json(client: SandboxClient) -> None:
    """Every command that prints a response supports ``--json``."""
    for command in (
        "health", "clock", "clock --rate 2", "clock --freeze", "orders", "order", "pay", "trigger paid", "webhooks",
        "redeliver last", "snapshot", "journal", "review", "wait --idle", "scenario", "faults", "settings",
        "projects", "projects create", "reset", "projects delete --yes",
    ):  # fmt: skip
        assert json.loads(invoke(client, *command.split(), "--json").stdout) is not None, command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ordrs", "did you mean 'orders'?"),
        ("projects crate", "'crate' is not one of 'list', 'create', 'delete'"),
        ("projects delete name=Shop", "projects delete takes no settings"),
        ("trigger piad", "did you mean 'paid'?"),
        ("trigger transfer", "payment-sandbox settings mode=live"),
        ("trigger new --order last", "creates a new order"),
        ("trigger paid amount=5 --order last", "fields apply to a new order only"),
        ("trigger paid amount", "'amount' is not name=value. Example: payment-sandbox trigger paid"),
        ("act last dance", "'screening', 'processor'. Example: payment-sandbox act last customer pay"),
        ("order zzz", "no order begins with 'zzz'"),
        ("settings mdoe=live", "did you mean 'mode'?"),
        ("act last customer credit", "action must be one of: visit"),
        ("scenario sceond-try-works", "did you mean 'second-try-works'?"),
        ("scenario no-such.yaml", "scenario file no-such.yaml cannot be read: no such file or directory"),
        ("clock --by PT5M --to 2027-01-01", "give one of: "),
        ("restore no-such.json", "cannot read no-such.json: No such file or directory"),
        ("scan nothing", "404: there is no QR request 'nothing'"),
        ("wait", "must contain a condition: order_id with status, webhook, or idle"),
        ("listen", "Example: payment-sandbox listen --forward-to"),
        ("health --url ftp://shop.test", "is not an address such as"),
        ("health --url http://127.0.0.1:9", "connection refused: no server listens on 127.0.0.1:9"),
        ("orders --url no-such.invalid", "the host name no-such.invalid cannot be resolved"),
        ("clock --key no-such-key --freeze", "no project has this API key"),
        ("health http://127.0.0.1:9", "no sandbox answers at http://127.0.0.1:9"),
        ("listen --key wrong --forward-to http://127.0.0.1:9/", "401: no project has this API key"),
    ],
)
def test_wrong_words_get_one_line_that_helps(
    words: str, expected: str, client: SandboxClient, run_here: Callable[..., CompletedProcess[str]]
) -> None:
    """A wrong command prints one helpful line and exits with code 2; no library's text is printed."""
    result = run_here(*words.split(), SANDBOX_URL=client.base_url, SANDBOX_API_KEY=client.api_key)
    assert (result.returncode, result.stdout) == (2, ""), result.stdout + result.stderr
    assert expected in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_an_order_is_identified_by_a_prefix_of_its_id(client: SandboxClient) -> None:
    """A unique prefix of an order id is accepted."""
    order_id = client.orders()[0]["id"]
    assert f"order {order_id} is new" in invoke(client, "order", order_id[:8]).output
    result = invoke(client, "pay", order_id[:8])
    assert result.output == f"order {order_id} is completed\n"


def test_a_null_clears_any_setting(client: SandboxClient) -> None:
    """Each setting returns to its default, whatever its kind; a part of an object leaves the others."""
    before = client.project()["settings"]
    changed = ("payment_methods=credit-card", "name=Shop", "seed=7", "mode=live", "aliases.a=credit-card")
    assert invoke(client, "settings", *changed, "issuers=SBXANL2A,SBXBNL2A").exit_code == 0
    assert invoke(client, "settings", "aliases.b=wallet-web").exit_code == 0
    settings = client.project()["settings"]
    assert (settings["seed"], settings["payment_methods"]) == (7, ["credit-card"])
    assert settings["aliases"] == {"a": "credit-card", "b": "wallet-web"}
    assert [bank["id"] for bank in settings["issuers"]] == ["SBXANL2A", "SBXBNL2A"]
    cleared = [f"{name}=null" for name in before]
    result = invoke(client, "settings", *cleared)
    assert result.exit_code == 0, result.output
    assert client.project()["settings"] == {**before, "webhook_url": None, "seed": 0}


def test_the_fields_of_a_trigger_keep_their_kind(client: SandboxClient) -> None:
    """A text may consist of digits or be a word of JSON; a dot leads into the customer of the trigger."""
    fields = ("merchant_order_id=1001", "description=true", "amount=1295", "customer.locale=en-GB")
    more = ("customer.phone_numbers=0201234567,112", "customer.postal_code=1011", "extra.colour=red")
    result = invoke(client, "trigger", "screening-declined", *fields, *more, "--json")
    assert result.stderr == "", result.stderr
    order = json.loads(result.stdout)["order"]
    assert (order["merchant_order_id"], order["description"], order["amount"]) == ("1001", "true", 1295)
    customer = order["customer"]
    assert (customer["locale"], customer["phone_numbers"]) == ("en-GB", ["0201234567", "112"])
    assert (customer["last_name"], customer["postal_code"]) == ("Visser", 1011)
    assert order["extra"] == {"colour": "red"}
    unknown = invoke(client, "trigger", "paid", "customer.lcale=nl", "name=Noor", "amount=5")
    assert "ignored unknown order fields: customer.lcale, name" in unknown.stderr
    refused = invoke(client, "trigger", "paid", "customer=Noor", "customer.locale=nl")
    assert "'customer.locale=nl' sets a part of customer, which is not an object" in refused.output


def test_faults_add_up_until_they_are_cleared(client: SandboxClient) -> None:
    """Faults of requests and of webhooks are added until they are cleared."""
    invoke(client, "faults", "method=POST", "path=/v1/orders/", "nth=2", "status=503")
    invoke(client, "faults", "--webhook", "status=completed", "answer=500")
    active = client.call("GET", "/control/faults/")
    assert active["faults"][0]["when"] == {"method": "POST", "path": "/v1/orders/", "nth": 2}
    rule = {"when": {"status": "completed"}, "then": {"answer": 500}, "matches": 0}
    assert active["webhooks"][0] == rule
    order_id = client.orders(limit=1)[0]["id"]
    invoke(client, "faults", "--webhook", f"order_id={order_id}", "delay=PT5M")
    invoke(client, "faults", "nth=1,3", "latency=0.5")
    active = client.active_faults()
    assert active["webhooks"][1]["when"] == {"order_id": order_id}
    assert (active["faults"][1]["when"], active["faults"][1]["then"]) == ({"nth": [1, 3]}, {"latency": 0.5})
    assert invoke(client, "faults", "--clear").output == "no faults\n"


def test_a_deletion_needs_confirmation(client: SandboxClient) -> None:
    """A refused confirmation does not delete the project."""
    environment = {"SANDBOX_URL": client.base_url, "SANDBOX_API_KEY": client.api_key}
    result = CliRunner().invoke(commands, ["projects", "delete"], input="n\n", env=environment)
    assert result.exit_code == 2
    assert client.project()["project_id"]


def test_wait_prints_the_actual_status(client: SandboxClient) -> None:
    """A timeout exits with code 1 and prints the actual status."""
    result = invoke(client, "wait", "--order", "last", "--status", "expired", "--timeout", "0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "status is new" in result.stderr
