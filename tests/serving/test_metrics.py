"""The figures of a server, and what it says if the package that writes them is missing."""

import json
import sys

import pytest
import requests

from payment_sandbox.serving.server import Server, openapi_description
from tests.support.described import check_answer
from tests.support.driver import Sandbox, card
from tests.support.servers import make_server


def test_calls_are_counted(server: Server, sandbox: Sandbox) -> None:
    """In the text format of Prometheus, without a key."""
    sandbox.place(card())
    answer = requests.get(f"{server.url}/metrics", timeout=9)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "# TYPE" in answer.text


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """And both are described."""
    monkeypatch.delitem(sys.modules, "payment_sandbox_company.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)  # as if it were not installed
    with make_server() as server:
        answer = requests.get(f"{server.url}/metrics", timeout=9)
    check_answer("GET", "/metrics", answer)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (501, "NotImplemented")
    assert "prometheus_client" in error["value"]
    assert "pip install 'payment-sandbox-company'" in error["value"]
    responses = description_of("/metrics", "get")
    assert {"200", "501"} <= responses


def description_of(path: str, method: str) -> set[str]:
    """The statuses that a call is described with."""
    return set(json.loads(openapi_description())["paths"][path][method]["responses"])


@pytest.mark.parametrize(
    ("path", "method"),
    [("/v1/orders/", "post"), ("/control/state/", "put"), ("/control/project/", "patch")],
)
def test_quotas_are_described(path: str, method: str) -> None:
    """Wherever a project may keep more; a project too many has a status of its own."""
    assert "507" in description_of(path, method)
    assert "507" not in description_of("/control/journal/", "get")
    assert "429" in description_of("/control/projects/", "post")
