"""The command ``serve``: its address, its output and its end."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.version import __version__
from tests.cli.conftest import Serve
from tests.cli.forks import run
from tests.support.commands import command, run_program, run_python
from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.servers import make_server
from tests.support.tools import require


def url_in(first_line: str) -> str:
    """Return the address in the first line that serve prints."""
    return next(word.rstrip(",") for word in first_line.split() if word.startswith("http"))


def test_serve_says_where_it_listens_and_what_to_try(serve: Serve) -> None:
    """The printed curl command works."""
    require("curl")
    process, first_line = serve()
    lines = [process.stdout.readline() for _ in range(3)]
    assert "sandbox-key" in first_line
    result = run_program(["bash", "-c", "".join(lines)])
    assert json.loads(result.stdout)["status"] == "new"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_stops_cleanly_within_two_seconds(serve: Serve, number: int) -> None:
    """Open connections and incomplete requests do not delay the end; a slow machine gets more time."""
    serve()  # the first command in a fork waits for the process that forks
    before_seconds = monotonic_seconds()
    process, first_line = serve()
    limit_seconds = max(2.0, 3 * (monotonic_seconds() - before_seconds))
    host, _, port = url_in(first_line).partition("://")[2].partition(":")
    with socket.create_connection((host, int(port))) as idle, requests.Session() as session:
        assert session.get(f"{url_in(first_line)}/health/").status_code == 200
        idle.sendall(b"POST /v1/orders/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n")
        process.send_signal(number)
        assert process.wait(limit_seconds) == 0


def test_serve_stops_with_standard_input() -> None:
    """The server ends with a killed test runner, whose end of the pipe closes."""
    wait_for_exit = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()"
    served = command("serve", "--port", "0", "--stop-with-stdin", "--log-format", "json")
    program = [sys.executable, "-c", wait_for_exit, *served]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        url = json.loads(runner.stdout.readline())["url"]
        assert requests.get(f"{url}/health/").json()["status"] == "ok"
        runner.kill()
        assert runner.stdout.read() == ""  # ends when the server exits, which shares this pipe
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/health/")


def test_a_json_log_and_the_ready_file_are_complete(serve: Serve, tmp_path: Path) -> None:
    """Both have all that the text has: address, process, version, control token; and the clock is as given."""
    ready = tmp_path / "ready.json"
    public = (
        "--host",
        "0.0.0.0",
        "--public-url",
        "http://pay.test:8080/sandbox/",
        "--ready-file",
        str(ready),
    )
    clock = ("--clock", "frozen@2027-01-01T00:00:00Z", "--seed", "3")
    process, first_line = serve("--log-format", "json", *public, *clock)
    start = json.loads(first_line)
    while not ready.exists():
        assert process.poll() is None
    shown = json.loads(ready.read_text())
    assert (shown["pid"], shown["version"], shown["listening"]) == (
        process.pid,
        __version__,
        start["listening"],
    )
    assert start["url"] == shown["url"] == "http://pay.test:8080/sandbox"
    assert list(tmp_path.iterdir()) == [ready], "no temporary file is left over"
    url = f"http://127.0.0.1:{start['listening'].rpartition(':')[2]}/control"
    clock_shown = requests.get(f"{url}/clock/", auth=(start["api_key"], "")).json()
    assert clock_shown == {"now": "2027-01-01T00:00:00.000000+00:00", "mode": "frozen", "rate": 1.0}
    headers = {"Authorization": f"Bearer {start['control_token']}"}
    created = requests.post(f"{url}/projects/", headers=headers)
    assert (created.status_code, created.json()["clock"]["mode"]) == (201, "frozen")


@pytest.mark.rule("CTL-05")
def test_a_control_token_guards_the_making_of_projects(serve: Serve) -> None:
    """A creation without the token gets 401; the health check needs no token."""
    _, first_line = serve("--control-token", "let-me-in")
    assert requests.get(f"{url_in(first_line)}/health/").status_code == 200
    path = f"{url_in(first_line)}/control/projects/"
    assert requests.post(path).status_code == 401
    wrong = requests.get(path, headers={"Authorization": "Bearer guess"})
    assert (wrong.status_code, wrong.headers["WWW-Authenticate"][:6]) == (401, "Bearer")
    for scheme in ("Bearer", "bearer", "BEARER"):
        right = requests.post(path, headers={"Authorization": f"{scheme} let-me-in"})
        assert right.status_code == 201


def test_an_address_that_is_not_loopback_has_a_control_token(serve: Serve) -> None:
    """A token is generated and printed at startup."""
    process, first_line = serve("--host", "0.0.0.0")
    lines: list[str] = []
    while not lines or not lines[-1].startswith("  control token"):
        lines.append(process.stdout.readline())
    token = lines[-1].split()[-1]
    assert any("Other devices in your network reach the sandbox" in line for line in lines)
    assert any("needs in front" in line and line.endswith("/docs/security/\n") for line in lines)
    assert "0.0.0.0" not in first_line, "other devices cannot open this address"
    path = f"http://127.0.0.1:{url_in(first_line).rpartition(':')[2]}/control/projects/"
    assert requests.post(path).status_code == 401
    assert requests.post(path, headers={"Authorization": f"Bearer {token}"}).status_code == 201


def test_starting_imports_only_needed_modules() -> None:
    """Modules that are needed only later are not imported at startup."""
    libraries = (
        "aiohttp.client requests segno ruamel.yaml babel hypothesis sqlite3 uvloop websockets markdown_it"
    )
    ours = (
        "cli.remote cli.mcp client.client storage.sql storage.snapshot testing ui.pages.language web.openapi"
    )
    late_modules = {*libraries.split(), *(f"payment_sandbox.{name}" for name in ours.split())}
    script = "import sys; import payment_sandbox.cli.main; from payment_sandbox.cli.server_process import ServerConfig, build, load_aiohttp; load_aiohttp(); build(ServerConfig()); print(*sys.modules)"
    loaded = run_python(script).stdout.split()
    assert "aiohttp.web" in loaded
    assert late_modules.intersection(loaded) == set()


def test_scenarios_of_a_folder_are_served(serve: Serve, tmp_path: Path) -> None:
    """The first project starts with the named scenario."""
    (tmp_path / "mine.yaml").write_text("name: mine\nrules:\n  - then: {customer: pays}\n")
    _, first_line = serve("--scenarios", str(tmp_path), "--scenario", "mine", "--log-format", "json")
    url = json.loads(first_line)["url"]
    shown = requests.get(f"{url}/control/scenario/", auth=("sandbox-key", "")).json()
    assert shown["name"] == "mine"


def test_a_wrong_scenario_stops_serve(tmp_path: Path) -> None:
    """Each mistake is printed with file, line and column."""
    (tmp_path / "bad.yaml").write_text("name: bad\nrulez: []\nrules: 5\n")
    result = run("serve", "--port", "0", "--scenarios", str(tmp_path))
    assert result.returncode == 2
    assert "bad.yaml:2:1: rulez is not a known key; did you mean 'rules'?" in result.stderr
    assert "bad.yaml:3:1: rules must be a list" in result.stderr
    unknown = run("serve", "--port", "0", "--scenario", "no-such")
    assert (unknown.returncode, "'no-such' is not a known scenario" in unknown.stderr) == (2, True)


def test_a_state_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    """The exit code is 2; a wrong file is not changed, and of a database neither user nor password is printed."""
    state = tmp_path / "state.db"
    state.write_text("not one")
    result = run("serve", "--port", "0", "--state", str(state))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"payment-sandbox: {state} is not a state file of this sandbox\n"
    assert state.read_text() == "not one"
    port = free_port()
    for scheme in ("postgresql", "postgres"):
        address = f"{scheme}://sandbox:secret@127.0.0.1:{port}/sandbox"
        result = run("serve", "--port", "0", "--state", address)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        assert result.stderr.startswith(
            f"payment-sandbox: {scheme}://127.0.0.1:{port}/sandbox cannot be used: "
        )
        assert "secret" not in result.stderr


def test_the_missing_driver_of_a_database_is_one_clear_line() -> None:
    """Without psycopg, the line names the extra to install."""
    serve = "['payment-sandbox', 'serve', '--port', '0', '--state', 'postgresql://127.0.0.1/sandbox']"
    code = f"import sys; sys.modules['psycopg'] = None; sys.argv = {serve}"
    result = run_python(f"{code}\nfrom payment_sandbox.__main__ import main; main()")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "a state in PostgreSQL needs payment-sandbox[postgresql]: " in result.stderr


def test_a_standby_says_so_and_is_ready_once_it_has_taken_over(
    serve: Serve, postgres: Postgres, tmp_path: Path
) -> None:
    """One line, no ready file, and ``health`` with exit code 1; then the ready lines and file."""
    database, ready, port = postgres.new_database(), tmp_path / "ready.json", free_port()
    with make_server(state=database):
        options = ("--state", database, "--ready-file", str(ready), "--port", str(port))
        process, line = serve(*options)
        assert line.startswith(f"Standby on http://127.0.0.1:{port}: another server has the state")
        assert not ready.exists()
        checked = run("health", f"http://127.0.0.1:{port}")
        assert (checked.returncode, checked.stdout) == (1, "standby\n")
    assert process.stdout.readline().startswith("Payment sandbox ")
    assert json.loads(ready.read_text())["listening"] == f"http://127.0.0.1:{port}"
    assert run("health", f"http://127.0.0.1:{port}").returncode == 0
