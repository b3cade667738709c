"""Help and checks, and one-line messages for mistakes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from payment_sandbox.cli.main import commands
from payment_sandbox.extensions import NotInstalled
from payment_sandbox.version import __version__
from tests.cli.forks import run
from tests.support.commands import command, run_program
from tests.support.packages import ROOT


def test_without_a_command_there_is_help() -> None:
    """Help and version are printed without starting a server; without a command, the exit code is 2."""
    shown, result = run("--help").stdout, run()
    assert "serve" in shown
    assert (result.returncode, result.stdout, result.stderr) == (2, "", shown)
    assert "..." not in shown.partition("Commands:")[2], "sentences are whole"
    assert __version__ in run("--version").stdout


def test_these_are_all_commands() -> None:
    """Other calls of the control API are made with curl."""
    names = (
        "act check clock docs faults health journal listen mcp order orders pay projects redeliver reset restore "
        "review scan scenario serve settings snapshot trigger wait watch webhooks"
    )
    assert commands.list_commands(click.Context(commands)) == names.split()


def test_check_prints_every_mistake_of_every_file(tmp_path: Path) -> None:
    """Every mistake and every valid file is printed; a rule without effect is only a warning."""
    ready = Path(__file__).parents[2] / "scenarios" / "transfer-late.yaml"
    idle, bad, worse = tmp_path / "x.yaml", tmp_path / "bad.yaml", tmp_path / "worse.json"
    rule = "  - when: {payment_method: wallet-apple}\n    then: {customer: pays}\n"
    idle.write_text(f"name: x\nrules:\n{rule}")
    result = run("check", str(ready), str(idle))
    assert result.returncode == 0
    fine, warning, _ = result.stdout.splitlines()
    assert "transfer-late is fine" in fine
    assert warning.startswith(f"{idle}:3:12: rules[0].when.payment_method warning: is not possible in test")
    bad.write_text("name: bad\nrulez: []\n")
    worse.write_text('{"name": "worse",\n "rules": [{}]}')
    result = run("check", str(ready), str(bad), str(worse))
    assert result.returncode == 1
    fine, *lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{bad}:2:1: rulez")
    assert lines[1].startswith(f"{worse}:2:12: rules[0].then is required")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve", "--clock", "frozen@soon"], "frozen@"),
        (
            ["serve", "--deliver-to", "http://localhost:3000"],
            "--deliver-to: 'http://localhost:3000' is not a",
        ),
        (["serve", "--public-url", "pay.example"], "http://"),
        (["serve", "--port", "65536"], "not a whole number from 0 to 65535"),
        (["serve", "--port", "tcp://10.96.0.1", "--clock", "x"], "--clock: must be"),  # what Kubernetes sets
        (["serve", "--host", "256.0.0.1"], "256.0.0.1"),
        (["serve", "--prot", "1"], "No such option"),
        (["sevre"], "there is no command 'sevre'; did you mean 'serve'?"),
        (["check"], "Missing argument"),
        (["serve", "--allow-host", "http://pay.example"], "--allow-host"),
        (["serve", "--public-url", "http://pay.example:99999"], "--public-url"),
        (["serve", "--webhook-url", "localhost:3000"], "--webhook-url: "),
        (["serve", "--webhook-url", "http://shop.test:99999/"], "http://localhost:3000/webhook"),
        (["serve", "--webhook-ca", "no-such.pem"], "--webhook-ca: there is no file no-such.pem"),
        (["serve", "--stand-in-for", "https://x.example"], "not a host name such as api.provider.example"),
        (["serve", "--stand-in-for", "a b"], "'a b' is not a host name such as api.provider.example"),
    ],
)
def test_a_wrong_option_is_one_clear_line(
    arguments: list[str], expected: str, run_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """A wrong option prints one line and exits with code 2."""
    result = run_here(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("payment-sandbox: ")
    assert expected in line


def test_a_ready_file_that_cannot_be_written_is_one_clear_line() -> None:
    """The line names the option and the file, and the exit code is 2."""
    result = run("serve", "--port", "0", "--ready-file", "/nowhere/ready.json")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "--ready-file: cannot write /nowhere/ready.json" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_one_clear_line() -> None:
    """A full disk prints one line and exits with code 2."""
    result = run_program(["sh", "-c", 'exec "$@" > /dev/full', "sh", *command("docs")])
    assert result.returncode == 2
    assert result.stderr == "payment-sandbox: cannot write: No space left on device\n"


@pytest.mark.parametrize(
    ("prefix", "install"),
    [
        ("/home/me/shop/.venv", "pip install"),  # no such folder: what the PATH has
        ("/home/me/.local/share/pipx/venvs/payment-sandbox", "pipx runpip payment-sandbox install"),
        (f"{ROOT}/.venv", f"{ROOT}/.venv/bin/pip install"),  # not the one on the PATH
    ],
)
def test_a_missing_extra_is_installed_where_the_sandbox_is(
    prefix: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipx environment, plain pip would install the extra elsewhere; it comes from the same clone."""
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    message = str(NotInstalled("--tls", "payment-sandbox[tls]"))
    assert message == f"--tls needs payment-sandbox[tls]: {install} '{ROOT}[tls]'"
