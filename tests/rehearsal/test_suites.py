"""A suite in any language is rehearsed by its exit code, against its own server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.running import assert_reproduced
from tests.support.commands import command, run_program

SUITE = """
import json
import os
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

URL, paid = os.environ["SANDBOX_URL"], []


def call(method, path, body=None, key=None):
    sent = json.dumps(body).encode() if body is not None else None
    request = Request(URL + path, sent, method=method)
    key = os.environ["SANDBOX_API_KEY"] if key is None else key
    request.add_header("Authorization", "Basic " + b64encode(f"{key}:".encode()).decode())
    request.add_header("Content-Type", "application/json")
    with urlopen(request, timeout=5) as answer:
        return json.load(answer)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        order_id = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order_id"]
        status = call("GET", f"/v1/orders/{order_id}/", key=project)["status"]
        if status == "completed" and (order_id not in paid or CARELESS):
            paid.append(order_id)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *text):
        pass


CARELESS = %r
shop = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=shop.serve_forever, daemon=True).start()
hook = f"http://127.0.0.1:{shop.server_port}/webhook"
project = call("POST", "/control/projects/", {"clock": "frozen", "webhook_url": hook}, key="")["api_key"]
order = {"currency": "EUR", "amount": 5, "transactions": [{"payment_method": "wallet-web"}]}
created = call("POST", "/v1/orders/", order, key=project)
for action in ("visit", "pay"):
    path = f"/control/orders/{created['id']}/act/"
    call("POST", path, {"actor": "customer", "action": action}, key=project)
    call("GET", "/control/wait/?idle=1", key=project)
assert paid == [created["id"]], paid
"""


def rehearse(folder: Path, *options: str, suite: str = SUITE % False) -> subprocess.CompletedProcess[str]:
    """Rehearse a suite that is a plain program."""
    (folder / "suite.py").write_text(suite)
    return run_program(command("rehearse", *options, "--", sys.executable, "suite.py"), folder, 280)


def test_a_correct_suite_passes(tmp_path: Path) -> None:
    """A correct suite has no findings within the budget."""
    result = rehearse(tmp_path, "--budget", "4s")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 test rehearsed in" in result.stdout
    assert "no findings" in result.stdout


def test_a_finding_can_be_reproduced(tmp_path: Path) -> None:
    """A finding has the output of the suite, a report, and a command that reproduces it."""
    result = rehearse(
        tmp_path, "--only", "webhook:2:twice", "--report", "out.json", "--json", suite=SUITE % True
    )
    assert result.returncode == 1, result.stdout + result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    (finding,) = report["tests"][0]["findings"]
    assert finding["sentence"] == "the webhook of 'completed' arrived twice: the suite fails: exit code 1"
    assert "AssertionError" in finding["timeline"]
    assert 'rehearse --only "webhook:2:twice" -- ' in finding["again"]
    assert_reproduced([finding], tmp_path)
    assert json.loads((tmp_path / "out.json").read_text()) == report
    result = rehearse(tmp_path, "--only", "webhook:2:twice")
    assert result.returncode == 0, result.stdout + result.stderr


def test_faults_reach_a_client_over_a_socket(tmp_path: Path) -> None:
    """A client over a socket gets the faults, and its suite may fail because of them."""
    changes = ("unavailable", "answer-lost", "early", "silent")
    result = rehearse(tmp_path, *(word for change in changes for word in ("--only", f"create:1:{change}")))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 test rehearsed in 4 variations: no findings" in result.stdout


@pytest.mark.parametrize(
    ("options", "suite", "words"),
    [
        (["--budget", "soon"], "", "--budget takes a duration above zero such as 60s or 10m, not 'soon'"),
        (["--only", "webhook:twice"], "", "has no number: use webhook:1:twice for the first webhook"),
        (["--only", "webhook:99:twice"], SUITE % False, "no step for webhook:99:twice: --only webhook:99"),
        ([], "raise SystemExit('no luck')", "the unchanged suite fails: exit code 1"),
        ([], "print('nothing')", "the suite made no call to SANDBOX_URL"),
    ],
)
def test_a_wrong_option_is_explained(tmp_path: Path, options: list[str], suite: str, words: str) -> None:
    """An invalid option or suite ends the command with 2 and an explanation."""
    result = rehearse(tmp_path, *options, suite=suite)
    assert (result.returncode, words in result.stderr) == (2, True), result.stderr


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    """The error names the program that cannot be run."""
    result = run_program(command("rehearse", "--", "no-such-program"), tmp_path, 280)
    assert (result.returncode, "cannot run 'no-such-program'" in result.stderr) == (2, True), result.stderr
