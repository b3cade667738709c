"""Generated requests to both APIs: examples with random changes."""

import json
import random  # noqa: TID251 (seeded: every run is the same)
from typing import Any, Final
from urllib.parse import quote

import pytest
import requests

from tests.attack import limit, note, scaled
from tests.attack.changes import HOSTILE, mutate
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import by

SEED: Final = 7
FAULTS: Final = "/control/faults/"  # random faults would replace the answers
EMPTYING_PATHS: Final = ("/control/reset/", "/control/state/")  # calls that may delete all orders
UNKNOWN_SHARE_MAX: Final = 0.4  # of the answers; without orders, nearly all answers would be 404
SLOW_PATHS: Final = ("/control/wait/", "/control/events/", "/control/clock/advance/")
TYPES: Final = ("application/json", "application/yaml", "text/plain", "application/json; charset=utf-16", "")


@pytest.mark.timeout(3600)
def test_every_generated_request_has_an_answer() -> None:
    """Examples with random changes cause no internal error, and all errors have the same shape."""
    random_source = random.Random(SEED)
    with run_server() as server:
        openapi = requests.get(f"{server.url}/openapi.json", timeout=30).json()
        _send_generated(server, random_source, openapi)


def _send_generated(server: ServerProcess, random_source: random.Random, openapi: Any) -> None:
    calls = [
        (method.upper(), path, operation)
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        if path not in (FAULTS, *SLOW_PATHS) and (method, path) != ("delete", "/control/project/")
    ]
    count = scaled(20_000, 600)
    statuses: dict[int, int] = {}
    is_empty = False
    with server.project(mode="live", clock="frozen") as project:
        baseline = _baseline(project)
        for number in range(count):
            if number % 500 == 0 or is_empty:
                project.call("PUT", "/control/state/", baseline["snapshot"])
            method, path, operation = random_source.choice(calls)
            is_empty = path in EMPTYING_PATHS and method != "GET"
            if path == "/control/scenario/" and method == "PUT":
                continue  # its faults would replace the answers; test_mutations covers scenarios
            answer = _send(project, random_source, method, path, operation, baseline["ids"])
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            exchange = f"{method} {answer.request.url}: {answer.status_code} {answer.text[:300]}"
            assert answer.status_code < 500, exchange
            if answer.status_code >= 400 and "json" in answer.headers.get("Content-Type", ""):
                assert answer.json().keys() == {"error"}, exchange
    limit("share of answers that are 404", statuses.get(404, 0) / count, UNKNOWN_SHARE_MAX)
    note("generated requests, by status", ", ".join(f"{code}: {n}" for code, n in sorted(statuses.items())))


def _baseline(project: Project) -> dict[str, Any]:
    """Return existing identifiers, and a snapshot of the project that contains them."""
    manual = by("credit-card", capture_mode="manual")
    order = project.order(manual)
    project.call("POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"})
    code = project.expect("POST", "/v1/bankqr/", {"amount": 5})
    ids = {
        "order_id": [order["id"]],
        "transaction_id": [order["transactions"][0]["id"]],
        "qr_id": [code["id"]],
        "project_id": [order["project_id"]],
        "method_name": ["bank-redirect-nl"],
        "name": ["quick-start", "webhooks"],
    }
    return {"ids": ids, "snapshot": project.expect("GET", "/control/state/")}


def _send(
    project: Project,
    random_source: random.Random,
    method: str,
    path: str,
    operation: Any,
    ids: dict[str, list[str]],
) -> requests.Response:
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            values = ids.get(parameter["name"], ["x"])
            value = random_source.choice(values) if random_source.random() < 0.8 else _text(random_source)
            path = path.replace(f"{{{parameter['name']}}}", quote(value, safe="", errors="replace"))
    query = {
        parameter["name"]: _text(random_source)
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and random_source.random() < 0.5
    }
    headers = {"If-Match": _text(random_source)} if random_source.random() < 0.05 else {}
    data = None
    if "requestBody" in operation and random_source.random() < 0.95:
        example = operation["requestBody"]["content"]["application/json"].get("example", {})
        data = json.dumps(mutate(example, random_source)).encode()
        if random_source.random() < 0.05:
            data = data[: random_source.randrange(len(data))]
        headers["Content-Type"] = random_source.choice(TYPES) if random_source.random() < 0.1 else TYPES[0]
    headers = {name: value.encode("latin-1", "replace").decode("latin-1") for name, value in headers.items()}
    return project.call(method, path, data=data, params=query, headers=headers, allow_redirects=False)


def _text(random_source: random.Random) -> str:
    text = str(random_source.choice(HOSTILE))[:500].encode(errors="replace").decode()
    return text.replace("\r", "").replace("\n", "").strip() or "x"
