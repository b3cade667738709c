"""The commands verify and import-journal, as users run them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.serving.server import Server
from payment_sandbox_verify.comparing import compare, report_data, report_lines
from payment_sandbox_verify.verifying import reference_sandbox, service_at
from tests.support.servers import make_server
from tests.verification.recording import recorded


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run payment-sandbox; what it remembers is in this folder."""
    run = [sys.executable, "-m", "payment_sandbox", *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(cwd)}
    return subprocess.run(
        run, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def open_orders(server: Server) -> list[str]:
    """The statuses of the orders that are neither over nor refunded."""
    orders = SandboxClient(server.url, "sandbox-key").orders(limit=1000)
    over = ("cancelled", "expired", "error")
    return [
        order["status"]
        for order in orders
        if order["status"] not in over and not {"has-refunds", "has-voids", "is-refund"} & set(order["flags"])
    ]


@pytest.mark.prove
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path, number: int) -> None:
    """A signal lets it take back what it made; after a kill, --clean-up does."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with make_server() as server:
        run = [sys.executable, "-m", "payment_sandbox", "verify", "--url", server.url, "--key", "sandbox-key"]
        with subprocess.Popen(run, env=environment, stderr=subprocess.PIPE, text=True) as process:
            client = SandboxClient(server.url, "sandbox-key")
            while len(client.orders(limit=1000)) < 25:
                assert process.poll() is None
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        file = tmp_path / "payment-sandbox" / "verify-made.jsonl"
        if number == signal.SIGKILL:
            assert open_orders(server)
            assert file.exists()
            ran = command("verify", "--url", server.url, "--key", "sandbox-key", "--clean-up", cwd=tmp_path)
            assert ran.returncode == 0, ran.stderr
            assert "orders are cleaned up" in ran.stdout
            left = open_orders(server)  # at most the one that was asked for when the kill came
            assert len(left) <= ("one more may be left" in ran.stdout)
        else:
            assert process.returncode == 2
            assert said.splitlines()[-1].endswith("stopped; no orders remain")
            assert open_orders(server) == []
        assert not file.exists()


@pytest.mark.prove
def test_whoever_cannot_wait_is_told_the_command_that_takes_back_the_rest(tmp_path: Path) -> None:
    """A second Ctrl-C ends it at once; what it made is still known, and the command works as it is told."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with make_server() as server:
        arguments = ["verify", "--url", server.url, "--key", "sandbox-key", "--rate", "25"]
        run = [sys.executable, "-m", "payment_sandbox", *arguments]
        with subprocess.Popen(run, env=environment, stderr=subprocess.PIPE, text=True) as process:
            client = SandboxClient(server.url, "sandbox-key")
            while len(client.orders(limit=1000)) < 25:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            before = len(open_orders(server))
            while len(open_orders(server)) >= before:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 2
        assert open_orders(server)
        told = said.splitlines()[-1].partition("to cancel or refund them: payment-sandbox ")[2]
        assert told.split() == ["verify", "--url", server.url, "--key", "...", "--clean-up"]
        ran = command(*told.replace("...", "sandbox-key").split(), cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert open_orders(server) == []


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that behaves otherwise."""
    file = tmp_path_factory.mktemp("other") / "other.yaml"
    own = {"ORD-03": {"status": 422, "value": "Only euros, please"}}
    project = {"api_key": "sandbox-key", "authorized_status": "accepted", "errors": own}
    live = {"api_key": "live-key", "mode": "live"}
    file.write_text(json.dumps({"projects": [project, live]}), encoding="utf-8")
    with make_server(project_files=[file]) as server:
        yield server


def test_verify_tells_each_rule_and_writes_the_settings(other: Server, tmp_path: Path) -> None:
    """The exit code is 1 if one differs."""
    ran = command(
        *("verify", "--url", other.url, "--key", "sandbox-key", "--differences", "differences.yaml"),
        cwd=tmp_path,
    )
    assert ran.returncode == 1, ran.stderr
    lines = ran.stdout.splitlines()
    assert "agrees          ORD-02   currency: required" in lines
    assert "differs         SET-38   authorized card or pay-later-a: completed, is_capturable" in lines
    assert lines[
        lines.index("differs         SET-38   authorized card or pay-later-a: completed, is_capturable") + 1
    ] == (f"{'':25}status is 'accepted', not 'completed'")
    assert any(line.startswith("could not tell  GPAY-02") for line in lines)
    assert "differences.yaml reproduces 2 of 2: payment-sandbox serve --project differences.yaml" in lines
    assert "rules agree, 2 differ," in ran.stdout
    written = (tmp_path / "differences.yaml").read_text(encoding="utf-8")
    assert "authorized_status: accepted" in written
    assert "value: Only euros, please" in written


@pytest.mark.prove
def test_two_servers_are_compared(other: Server) -> None:
    """With --against, the verdict on the other one stands beside."""
    with requests.Session() as session, reference_sandbox({"authorized_status": "accepted"}) as beside:
        session.trust_env = False
        clock = SandboxClient(other.url, "sandbox-key").clock
        service = service_at(
            other.url,
            "sandbox-key",
            session,
            pause=lambda seconds: clock.advance(timedelta(seconds=seconds)),
        )
        compared = compare(service, live=False, against=beside.service)
    told = {rule["rule"]: rule for rule in report_data(compared)["rules"]}
    assert told["SET-38"]["verdict"] == "differs"
    assert told["SET-38"]["beside"] == {"verdict": "differs", "how": "status is 'accepted', not 'completed'"}
    assert told["SET-08"]["verdict"] == "differs"
    assert told["SET-08"]["beside"] == {"verdict": "agrees", "how": ""}
    shown = list(report_lines(compared.theirs.reports, compared.ours.reports))
    assert any(line.strip() == "the other server agrees" for line in shown)


def test_live_mode_is_left_alone(other: Server, tmp_path: Path) -> None:
    """Unless one says that it may be asked."""
    ran = command("verify", "--url", other.url, "--key", "live-key", cwd=tmp_path)
    assert ran.returncode == 2
    assert "does not create test orders; to continue in live mode, add --yes-live" in ran.stderr


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
        (["--url", "http://127.0.0.1:9", "--against", "ftp://x"], "--against: 'ftp://x' is not an address"),
        (["--url", "http://127.0.0.1:9", "--rate", "0"], "'0' is not a number from 0.1 to 1000"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, options: list[str], words: str) -> None:
    """In one line."""
    ran = command("verify", "--key", "x", *options, cwd=tmp_path)
    assert (ran.returncode, words in ran.stderr, ran.stderr.count("\n")) == (2, True, 1), ran.stderr


def test_a_key_that_is_refused_is_told(other: Server, tmp_path: Path) -> None:
    """So is a file that cannot be written, before anything is asked."""
    ran = command("verify", "--url", other.url, "--key", "wrong", cwd=tmp_path)
    assert (ran.returncode, "refuses the key: 401" in ran.stderr) == (2, True), ran.stderr
    ran = command(
        *("verify", "--url", other.url, "--key", "sandbox-key", "--differences", "nowhere/x.yaml"),
        cwd=tmp_path,
    )
    assert (ran.returncode, "cannot write nowhere/x.yaml" in ran.stderr) == (2, True), ran.stderr


def test_recorded_traffic_is_held_against_the_sandbox(tmp_path: Path) -> None:
    """The same report; without differences the exit code is 0."""
    recorded(tmp_path / "shop.har")
    ran = command("import-journal", "shop.har", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "agrees          END-02   order creation returns 201" in ran.stdout
    assert " 0 differ, " in ran.stdout
    for file, words in (("no.har", "cannot read no.har: No such file"), ("differences.py", "cannot read")):
        ran = command("import-journal", file, cwd=tmp_path)
        assert (ran.returncode, words in ran.stderr) == (2, True), ran.stderr
    (tmp_path / "bad.har").write_text("{", encoding="utf-8")
    ran = command("import-journal", "bad.har", cwd=tmp_path)
    assert "bad.har: line 1, column 2: this is not JSON" in ran.stderr
