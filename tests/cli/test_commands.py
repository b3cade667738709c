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
from tests.support.commands import command, run, run_program
from tests.support.packages import ROOT


def test_help_and_version() -> None:
    """Help and version are printed without starting a server."""
    assert "serve" in run("--help").stdout
    assert __version__ in run("--version").stdout


def test_these_are_all_commands() -> None:
    """Other calls of the control API are made with curl."""
    names = (
        "act check clock docs faults health journal listen mcp order orders pay projects redeliver reset restore "
        "review scan scenario serve settings snapshot trigger wait watch webhooks"
    )
    assert commands.list_commands(click.Context(commands)) == names.split()


def test_check_warns_about_rules_without_effect(tmp_path: Path) -> None:
    """A warning has line and column; the file is still valid."""
    file = tmp_path / "x.yaml"
    rule = "  - when: {payment_method: wallet-apple}\n    then: {customer: pays}\n"
    file.write_text(f"name: x\nrules:\n{rule}")
    result = run("check", str(file))
    assert result.returncode == 0
    warning, fine = result.stdout.splitlines()
    assert warning.startswith(f"{file}:3:12: rules[0].when.payment_method warning: is not possible in test")
    assert fine == f"{file}: x is fine, rules: 1"


def test_check_prints_every_mistake_of_every_file(tmp_path: Path) -> None:
    """Every mistake and every valid file is printed."""
    ready = Path(__file__).parents[2] / "scenarios" / "transfer-late.yaml"
    bad, worse = tmp_path / "bad.yaml", tmp_path / "worse.json"
    bad.write_text("name: bad\nrulez: []\n")
    worse.write_text('{"name": "worse",\n "rules": [{}]}')
    assert run("check", str(ready)).returncode == 0
    result = run("check", str(ready), str(bad), str(worse))
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert "transfer-late is fine" in lines[0]
    assert lines[1].startswith(f"{bad}:2:1: rulez")
    assert lines[2].startswith(f"{worse}:2:12: rules[0].then is required")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve", "--clock", "stopped"], "frozen@"),
        (["serve", "--clock", "frozen@soon"], "frozen@"),
        (
            ["serve", "--deliver-to", "http://localhost:3000"],
            "--deliver-to: 'http://localhost:3000' is not a",
        ),
        (["serve", "--public-url", "pay.example"], "http://"),
        (["serve", "--port", "x"], "not a whole number from 0 to 65535"),
        (["serve", "--port", "65536"], "65535"),
        (["serve", "--host", "256.0.0.1"], "256.0.0.1"),
        (["serve", "--frozen"], "--frozen"),
        (["serve", "--prot", "1"], "No such option"),
        (["sevre"], "there is no command 'sevre'; did you mean 'serve'?"),
        (["check"], "Missing argument"),
        (["serve", "--log-format", "xml"], "'--log-format'"),
        (["serve", "--allow-host", "http://pay.example"], "--allow-host"),
        (["serve", "--allow-host", "a b"], "--allow-host"),
        (["serve", "--allow-host", ""], "--allow-host"),
        (["serve", "--public-url", "http://pay.example:99999"], "--public-url"),
        (["serve", "--webhook-url", "localhost:3000"], "--webhook-url: "),
        (["serve", "--webhook-url", "ftp://shop.test/"], "http://localhost:3000/webhook"),
        (["serve", "--webhook-url", "http://"], "http://localhost:3000/webhook"),
        (["serve", "--webhook-url", "http://shop.test:99999/"], "http://localhost:3000/webhook"),
        (["serve", "--webhook-ca", "no-such.pem"], "--webhook-ca: there is no file no-such.pem"),
        (["serve", "--stand-in-for", "https://x.example"], "not a host name such as api.provider.example"),
        (["serve", "--stand-in-for", "localhost"], "not a host name such as api.provider.example"),
        (["serve", "--stand-in-for", "a b"], "'a b' is not a host name such as api.provider.example"),
        (["serve", "--stand-in-for", ""], "'' is not a host name such as api.provider.example"),
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


def test_without_a_command_there_is_help() -> None:
    """Without a command, the full help is printed, and the exit code is 2."""
    result = run()
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == run("--help").stdout


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
