"""Generated requests to both APIs: examples with random changes, and bytes that are not valid HTTP."""

import json
import random  # noqa: TID251 (seeded: every run is the same)
import socket
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests

from tests.attack import Report
from tests.attack.changes import HOSTILE, mutate
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import by

SEED: Final = 7
FAULTS: Final = "/control/faults/"  # random faults would replace the answers
EMPTYING_PATHS: Final = ("/control/reset/", "/control/state/")  # calls that may delete all orders
UNKNOWN_SHARE_MAX: Final = 0.4  # of the answers; without orders, nearly all answers would be 404
SLOW_PATHS: Final = ("/control/wait/", "/control/events/", "/control/clock/advance/")
TYPES: Final = ("application/json", "application/yaml", "text/plain", "application/json; charset=utf-16", "")
RAW: Final[tuple[bytes, ...]] = (
    b"",
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b" " * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX\x00Y: z\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    bytes(range(256)) * 20,
)


def attack(report: Report) -> None:
    """Send generated requests with an HTTP library, then bytes that no library would send."""
    random_source = random.Random(SEED)
    with run_server() as server:
        openapi = requests.get(f"{server.url}/openapi.json", timeout=30).json()
        with probing(server, report, "generated requests"):
            _send_generated(server, report, random_source, openapi)
        with probing(server, report, "hostile heads"):
            _send_hostile_bytes(server, report, random_source)


def _send_generated(
    server: ServerProcess, report: Report, random_source: random.Random, openapi: Any
) -> None:
    calls = [
        (method.upper(), path, operation)
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        if path not in (FAULTS, *SLOW_PATHS) and (method, path) != ("delete", "/control/project/")
    ]
    count = report.size.count(20_000, 600)
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
                continue  # its faults would replace the answers; mutations.py covers scenarios
            answer = _send(project, random_source, method, path, operation, baseline["ids"])
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            exchange = f"{method} {answer.request.url}: {answer.status_code} {answer.text[:300]}"
            report.expect("no request causes an internal error", answer.status_code < 500, exchange)
            if answer.status_code >= 400 and "json" in answer.headers.get("Content-Type", ""):
                report.expect("all errors have the same shape", answer.json().keys() == {"error"}, exchange)
    report.limit("share of answers that are 404", statuses.get(404, 0) / count, UNKNOWN_SHARE_MAX)
    report.note(
        "generated requests, by status", ", ".join(f"{code}: {n}" for code, n in sorted(statuses.items()))
    )


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


def _send_hostile_bytes(server: ServerProcess, report: Report, random_source: random.Random) -> None:
    """Send bytes on separate connections; each must soon get an error or be closed."""
    parts = urlsplit(server.url)
    count = report.size.count(2000, len(RAW))
    for number in range(count):
        raw = bytearray(RAW[number % len(RAW)])
        if number >= len(RAW) and raw:
            for _ in range(random_source.randint(1, 5)):
                raw[random_source.randrange(len(raw))] = random_source.randrange(256)
        with socket.create_connection((parts.hostname, parts.port), timeout=5) as connection:
            answer = b""
            with suppress(OSError):  # a reset counts as closed
                connection.sendall(raw)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(65536)
            is_fine = not answer or (answer.startswith(b"HTTP/1.") and not answer.startswith(b"HTTP/1.1 500"))
            report.expect(
                "hostile bytes get an error or a closed connection", is_fine, (bytes(raw[:80]), answer[:100])
            )
    report.note("connections with hostile bytes", count)
