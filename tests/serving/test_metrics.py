"""The metrics of a server, and the error if their package is missing."""

import json
import sys

import pytest
import requests

from payment_sandbox.serving.server import Server, openapi_description
from tests.support.described import check_answer
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the error names the command that installs it."""
    monkeypatch.delitem(sys.modules, "payment_sandbox_company.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)  # as if it were not installed
    with make_server() as server:
        answer = requests.get(f"{server.url}/metrics", timeout=60)
    check_answer("GET", "/metrics", answer)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (501, "NotImplemented")
    assert "prometheus_client" in error["value"]
    assert "/sandbox/payment_sandbox_company'" in error["value"]
    responses = described_statuses("/metrics", "get")
    assert {"200", "501"} <= responses


def described_statuses(path: str, method: str) -> set[str]:
    """Return the statuses in the description of an operation."""
    return set(json.loads(openapi_description())["paths"][path][method]["responses"])


def test_calls_are_counted(server: Server, sandbox: Sandbox) -> None:
    """Metrics are in the text format of Prometheus and need no key."""
    sandbox.place(card())
    answer = requests.get(f"{server.url}/metrics", timeout=60)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "# TYPE" in answer.text
