"""The commands verify and import-journal, as users run them."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.serving.server import Server
from tests.support.commands import command, run_program
from tests.support.servers import make_server


def run_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run payment-sandbox with its state in this folder."""
    return run_program(command(*arguments), cwd, XDG_STATE_HOME=str(cwd))


def statuses_of_open_orders(server: Server) -> list[str]:
    """Return the statuses of the orders that are neither finished, voided nor refunded."""
    orders = SandboxClient(server.url, "sandbox-key").orders(limit=1000)
    finished = ("cancelled", "expired", "error")
    return [
        order["status"]
        for order in orders
        if order["status"] not in finished
        and not {"has-refunds", "has-voids", "is-refund"} & set(order["flags"])
    ]


@pytest.mark.prove
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_cleans_up(tmp_path: Path, signal_number: int) -> None:
    """After SIGTERM or SIGINT, verify cleans up its orders; after SIGKILL, --clean-up does."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with make_server() as server:
        verify = command("verify", "--url", server.url, "--key", "sandbox-key")
        with subprocess.Popen(verify, env=environment, stderr=subprocess.PIPE, text=True) as process:
            client = SandboxClient(server.url, "sandbox-key")
            while len(client.orders(limit=1000)) < 25:
                assert process.poll() is None
            process.send_signal(signal_number)
            _, printed = process.communicate(timeout=60)
        file = tmp_path / "payment-sandbox" / "verify-made.jsonl"
        if signal_number == signal.SIGKILL:
            assert statuses_of_open_orders(server)
            assert file.exists()
            result = run_command(
                "verify", "--url", server.url, "--key", "sandbox-key", "--clean-up", cwd=tmp_path
            )
            assert result.returncode == 0, result.stderr
            assert "orders are cleaned up" in result.stdout
            assert "one more may remain" in " ".join(result.stdout.split())
            assert len(statuses_of_open_orders(server)) <= 1, "the order that was being created at the kill"
        else:
            assert process.returncode == 2
            assert printed.splitlines()[-1].endswith("stopped; no orders remain")
            assert statuses_of_open_orders(server) == []
        assert not file.exists()


@pytest.mark.prove
def test_a_second_interrupt_prints_the_clean_up_command(tmp_path: Path) -> None:
    """A second Ctrl-C stops verify at once; it prints the command that cleans up the remaining orders."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with make_server() as server:
        verify = command("verify", "--url", server.url, "--key", "sandbox-key", "--rate", "25")
        with subprocess.Popen(verify, env=environment, stderr=subprocess.PIPE, text=True) as process:
            client = SandboxClient(server.url, "sandbox-key")
            while len(client.orders(limit=1000)) < 25:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            before = len(statuses_of_open_orders(server))
            while len(statuses_of_open_orders(server)) >= before:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate(timeout=60)
        assert process.returncode == 2
        assert statuses_of_open_orders(server)
        clean_up_command = printed.splitlines()[-1].partition("to cancel or refund them: payment-sandbox ")[2]
        assert clean_up_command.split() == ["verify", "--url", server.url, "--key", "...", "--clean-up"]
        result = run_command(*clean_up_command.replace("...", "sandbox-key").split(), cwd=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert statuses_of_open_orders(server) == []


@pytest.fixture(scope="module")
def deviating_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose settings deviate from the rules."""
    file = tmp_path_factory.mktemp("other") / "other.yaml"
    errors = {"ORD-03": {"status": 422, "value": "Only euros, please"}}
    project = {"api_key": "sandbox-key", "authorized_status": "accepted", "errors": errors}
    live = {"api_key": "live-key", "mode": "live"}
    file.write_text(json.dumps({"projects": [project, live]}), encoding="utf-8")
    with make_server(project_files=[file]) as server:
        yield server


@pytest.mark.prove
def test_verify_reports_and_writes_the_settings(deviating_server: Server, tmp_path: Path) -> None:
    """verify prints its verdict, the differences and the causes of the rest, writes the settings, and exits with 1 if a rule differs."""
    result = run_command(
        *("verify", "--url", deviating_server.url, "--key", "sandbox-key"),
        *("--differences", "differences.yaml"),
        cwd=tmp_path,
    )
    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == f"differs: {deviating_server.url} differs from the sandbox"
    assert "rules agree, 2 differ," in lines[1]
    assert lines[2] == "differences.yaml reproduces 2 of 2: payment-sandbox serve --project differences.yaml"
    reason = next(line for line in lines if line.startswith("SET-38: "))
    assert reason.endswith(": status is 'accepted', expected 'completed'")
    assert "   3 rules: needs a wallet with real cards" in lines
    assert len(lines) < 40
    written = (tmp_path / "differences.yaml").read_text(encoding="utf-8")
    assert "authorized_status: accepted" in written
    assert "value: Only euros, please" in written


Verify = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def verify_here(run_here: Verify, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verify:
    """Run verify in this process, with its state in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(run_here, "verify", XDG_STATE_HOME=str(tmp_path))


def test_live_mode_needs_a_confirmation(deviating_server: Server, tmp_path: Path) -> None:
    """In live mode, verify stops unless --yes-live is given."""
    result = run_command("verify", "--url", deviating_server.url, "--key", "live-key", cwd=tmp_path)
    assert result.returncode == 2
    assert "does not create test orders; to continue in live mode, add --yes-live" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--url", "http://127.0.0.1:9"],
            "was not answered: connection refused: no server listens on 127.0.0.1:9",
        ),
        (["--url", "ftp://x"], "--url: 'ftp://x' is not an address such as https://api.provider.example"),
        (
            ["--url", "http://127.0.0.1:9", "--method", "wallet-qr=a", "--method", "wallet-web=a"],
            "'a' can be the name of only one method",
        ),
        (["--url", "https://127.0.0.1:9", "--ca", "no.pem"], "--ca: "),
        (
            ["--url", "http://127.0.0.1:9", "--key", ""],
            "--key: is empty; it must be the API key of a test account",
        ),
        (["--url", "http://127.0.0.1:9", "--rate", "0"], "'0' is not a number from 0.1 to 1000"),
    ],
)
def test_a_wrong_option_is_explained(verify_here: Verify, options: list[str], words: str) -> None:
    """verify exits with 2 and explains the problem in one line."""
    result = verify_here("--key", "x", *options)
    assert (result.returncode, words in result.stderr, result.stderr.count("\n")) == (2, True, 1), (
        result.stderr
    )


def test_a_refused_key_is_reported(deviating_server: Server, verify_here: Verify) -> None:
    """verify reports a refused key, and a settings file that it cannot write."""
    result = verify_here("--url", deviating_server.url, "--key", "wrong")
    assert (
        result.returncode,
        "401 Unauthorized: the server refuses the key; --key must" in result.stderr,
    ) == (2, True), result.stderr
    result = verify_here(
        "--url", deviating_server.url, "--key", "sandbox-key", "--differences", "nowhere/x.yaml"
    )
    assert (result.returncode, "cannot write nowhere/x.yaml" in result.stderr) == (2, True), result.stderr
