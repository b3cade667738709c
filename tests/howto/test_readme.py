"""The commands in the README work unchanged."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click import Context

from payment_sandbox.cli.main import commands
from tests.howto.test_projects import OFFLINE
from tests.support.commands import run_program
from tests.support.documentation import BIN, README, ROOT
from tests.support.tools import require, unavailable

BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [block.strip() for block in BLOCKS]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone: the files under version control, and nothing that was installed or built."""
    folder = tmp_path_factory.mktemp("clone") / "payment-sandbox"
    list_files = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, run_program(list_files, ROOT).stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def in_shell(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder without this environment's programs."""
    path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != str(BIN))
    return run_program(["bash", "-euc", script], folder, 600, PATH=path)


def succeed(folder: Path, script: str) -> str:
    """Run a script that must succeed; return what it prints."""
    result = in_shell(folder, script)
    if any(words in result.stderr for words in OFFLINE):
        unavailable(f"the packages of this environment cannot be fetched: {result.stderr[-2000:]}")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


SERVED = """
PIPE=$(mktemp -u) && mkfifo $PIPE
{command} < $PIPE > log &
exec 9> $PIPE
timeout 500 sh -c 'until test -s {ready}; do sleep 0.1; done'
export SANDBOX_URL=$(python3 -c 'import json; print(json.load(open("{ready}"))["url"])')
curl -sf $SANDBOX_URL/ > answer
"""
"""Serve until the script ends; ``--stop-with-stdin`` stops the server then."""


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_every_command_works_in_a_fresh_clone(clone: Path, tmp_path: Path) -> None:
    """Each command runs as written; servers get a free port, and ``make test`` runs the tests of one folder."""
    require("curl", "make", "git")
    make_run, *_, own_server, make_test = COMMANDS
    ready = 'make run PORT=0 ARGS="--ready-file run.json --stop-with-stdin"'
    assert make_run == "make run"
    served = SERVED.format(command=ready, ready="run.json")
    (client_commands,) = (block for block in BLOCKS if "trigger" in block)
    printed = succeed(clone, served + client_commands)
    assert "service  completed" in printed, "order last shows the history of the triggered order"
    succeed(clone, SERVED.format(command=f"{own_server} --stop-with-stdin", ready="ready.json"))
    (install,) = (command for command in COMMANDS if "pip install ." in command)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "test_shop.py").write_text(example)
    environment = f"python3 -m venv {tmp_path}/environment; . {tmp_path}/environment/bin/activate"
    assert "1 passed" in succeed(clone, f"{environment}\n{install}\ncd {tmp_path}\npytest -q test_shop.py")
    assert " passed" in succeed(clone, f"{make_test} WORKERS=1 ARGS=tests/kernel")


def test_inline_commands_and_targets_exist() -> None:
    """The program has each command in the text, and the Makefile has each target."""
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"make ([a-z]+)", README)) - {"sandbox"} <= set(targets)
    subcommands = set(re.findall(r"`payment-sandbox ([a-z-]+)", README))
    assert subcommands <= set(commands.list_commands(Context(commands)))
    assert len(subcommands) > 2


def test_its_links_lead_somewhere() -> None:
    """Links within the project are relative, because it has no address yet; their files exist."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README)
    assert [link for link in links if not (ROOT / link).is_file()] == []
    assert len(links) > 10
    addresses = re.findall(r"https?://[\w.:-]+", README)
    assert set(addresses) <= {"http://127.0.0.1:8080", "http://localhost:3000"}
