"""A suite in any language is rehearsed by its exit code, against a server of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUITE = """
import json
import os
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

URL, told = os.environ["SANDBOX_URL"], []


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
        if status == "completed" and (order_id not in told or CARELESS):
            told.append(order_id)
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
made = call("POST", "/v1/orders/", order, key=project)
for action in ("visit", "pay"):
    call("POST", f"/control/orders/{made['id']}/act/", {"actor": "customer", "action": action}, key=project)
    call("GET", "/control/wait/?idle=1", key=project)
assert told == [made["id"]], told
"""


def rehearse(folder: Path, *options: str, suite: str = SUITE % False) -> subprocess.CompletedProcess[str]:
    """Rehearse a suite; it is a plain program."""
    (folder / "suite.py").write_text(suite)
    command = [
        sys.executable,
        "-m",
        "payment_sandbox",
        "rehearse",
        *options,
        "--",
        sys.executable,
        "suite.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_right_suite_passes(tmp_path: Path) -> None:
    """As far as the budget goes."""
    ran = rehearse(tmp_path, "--budget", "4s")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 suite rehearsed in" in ran.stdout
    assert "no findings" in ran.stdout


def test_a_finding_is_told_and_can_be_played_again(tmp_path: Path) -> None:
    """With what the suite printed, and a report for programs."""
    ran = rehearse(
        tmp_path, "--only", "webhook:2:twice", "--report", "out.json", "--json", suite=SUITE % True
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    (finding,) = told["findings"]
    assert finding["sentence"] == "the webhook of 'completed' arrived twice: the suite fails: exit code 1"
    assert "AssertionError" in finding["timeline"]
    assert 'rehearse --only "webhook:2:twice" -- ' in finding["again"]
    assert json.loads((tmp_path / "out.json").read_text())["tests"] == [told]
    ran = rehearse(tmp_path, "--only", "webhook:2:twice")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_faults_reach_a_client_over_a_socket(tmp_path: Path) -> None:
    """Its program may end as it likes, because the end has changed."""
    for way in ("unavailable", "answer-lost", "early", "silent"):
        ran = rehearse(tmp_path, "--only", f"create:1:{way}")
        assert ran.returncode == 0, f"{way}: {ran.stdout}{ran.stderr}"
        assert "the test has no step" not in ran.stdout


@pytest.mark.parametrize(
    ("options", "suite", "words"),
    [
        (["--budget", "soon"], "", "--budget takes a duration above zero such as 60s or 10m, not 'soon'"),
        (["--report", "report.txt"], "", "--report takes an .html or a .json file"),
        (["--only", "webhook:2:thrice"], "", "one of after-payment, late, lost, refused"),
        (["--only", "webhook:twice"], "", "has no number: use webhook:1:twice for the first webhook"),
        (["--only", "webhook:99:twice"], SUITE % False, "no step for webhook:99:twice: --only webhook:99"),
        ([], "raise SystemExit('no luck')", "the unchanged suite fails: exit code 1"),
        ([], "print('nothing')", "the suite made no call to SANDBOX_URL"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, options: list[str], suite: str, words: str) -> None:
    """In a line, with exit code 2."""
    ran = rehearse(tmp_path, *options, suite=suite)
    assert (ran.returncode, words in ran.stderr) == (2, True), ran.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    """Is named."""
    command = [sys.executable, "-m", "payment_sandbox", "rehearse", "--", "no-such-program"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, "cannot run 'no-such-program'" in ran.stderr) == (2, True), ran.stderr
