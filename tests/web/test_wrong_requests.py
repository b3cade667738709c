"""Wrong keys, paths, methods and raw bytes are refused with errors of one shape."""

import base64
import socket
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, refused

WRONG_KEYS = (b"no-colon", b"wrong-key:", b":sandbox-key", b"SANDBOX-KEY:", b"sandbox-key :", b"\xff\xfe:")
WRONG_CREDENTIALS = (
    None,
    "",
    "Basic",
    "Basic !!!!",
    *(f"Basic {base64.b64encode(key).decode()}" for key in WRONG_KEYS),
    "Basic \xff\xff",
    "Bearer sandbox-key",
    "sandbox-key",
)


@pytest.mark.rule("AUTH-01", "AUTH-02", "SET-02", "CTL-30")
@pytest.mark.parametrize("path", ["/v1/orders/x/", "/v1/bank-redirect-nl/issuers/", "/control/project/"])
def test_every_request_needs_the_api_key(sandbox: Sandbox, path: str) -> None:
    """Missing and wrong credentials are refused with 401, the challenge and a JSON error."""
    for header in WRONG_CREDENTIALS:
        headers = {} if header is None else {"Authorization": header}
        answer = requests.get(sandbox.url + path, headers=headers)
        refused(answer, 401, "Unauthorized")
        assert answer.headers["WWW-Authenticate"].startswith("Basic "), header


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/order/", "/v1/orders/"),
        ("/v1/bank-qr", "/v1/bankqr/"),
        ("/v1/orders/x/refund/", "/v1/orders/{order_id}/refunds/"),
        ("/control/clock/advanced/", "/control/clock/advance/"),
        ("/v1/nothing/", None),
        (f"/v1/{'orders/' * 2000}", None),
    ],
)
def test_an_unknown_path_names_the_nearest(sandbox: Sandbox, path: str, meant: str | None) -> None:
    """The path that was probably meant is named without its values; nothing is guessed for a strange path."""
    error = refused(sandbox.get(path), 404, "NotFound")
    expected = "this path does not exist" + (f"; did you mean {meant}?" if meant else "")
    assert error["value"] == expected


@pytest.mark.rule("SET-02", "A02")
def test_the_password_is_ignored(sandbox: Sandbox) -> None:
    """The key is the user name, and the password is ignored."""
    assert sandbox.get("/control/clock/", auth=(sandbox.key, "anything")).status_code == 200


@pytest.mark.rule("SET-01", "A01")
def test_paths_work_with_and_without_a_trailing_slash(sandbox: Sandbox) -> None:
    """Both forms are answered directly, without a redirect."""
    order = sandbox.post("/v1/orders", {"currency": "EUR", "amount": 1}).json()
    control = ("/control/project", "/control/agenda", "/health", "/openapi.json")
    merchant = ("/v1/bank-redirect-nl/issuers", "/v1/merchants/self/projects/self/currencies")
    for path in (f"/v1/orders/{order['id']}", *merchant, *control):
        assert sandbox.get(path).status_code == 200
        assert sandbox.get(f"{path}/").status_code == 200


@pytest.mark.rule("VER-01", "VER-02", "SET-08")
def test_other_paths_do_not_exist(sandbox: Sandbox) -> None:
    """Unknown paths are refused with 404, even with invalid escapes or control characters; ``/v1/`` exists."""
    assert sandbox.get("/v1/bank-redirect-nl/issuers/").status_code == 200
    strange = ("%00", "%ff", "%zz", "%0d%0aX: y", "..%2f..%2fx", "\x7f", "a" * 5000)
    others = ("/orders/", "/v2/orders/", "/V1/orders/", "/v1/", "/x/")
    for path in (*others, *(f"/v1/orders/{each}/" for each in strange)):
        prepared = requests.Request("GET", sandbox.url, auth=(sandbox.key, "")).prepare()
        prepared.url = sandbox.url + path
        refused(sandbox.http.send(prepared, allow_redirects=False), 404, "NotFound")


@pytest.mark.rule("SET-08")
@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ("GET /v1/orders/", "POST"),
        ("PATCH /v1/orders/x/", "DELETE, GET, HEAD, PUT"),
        ("OPTIONS /v1/orders/", "POST"),
        ("PUT /v1/bankqr/", "POST"),
        ("POST /health/", "GET, HEAD"),
    ],
)
@pytest.mark.parametrize("slash", ["/", ""])
def test_a_wrong_method_gets_the_allowed_ones(sandbox: Sandbox, call: str, allowed: str, slash: str) -> None:
    """The Allow header lists the right methods, and there is no reply to a CORS preflight."""
    answer = sandbox.call(*f"{call[:-1]}{slash}".split())
    refused(answer, 405, "MethodNotAllowed")
    assert answer.headers["Allow"] == allowed
    assert not any(name.lower().startswith("access-control") for name in answer.headers)


@pytest.mark.rule("SET-08", "CTL-08")
def test_another_projects_order_is_unknown(project: Any) -> None:
    """Another project's order cannot be read, changed or acted on."""
    sandbox, other = project(), project()
    order = other.authorized()
    path = f"/v1/orders/{order['id']}/"
    for answer in (
        sandbox.get(path),
        sandbox.put(path, {}),
        sandbox.delete(path),
        sandbox.post(f"{path}refunds/", {}),
        sandbox.take(order, "captures"),
        sandbox.act(order, "customer pay"),
    ):
        refused(answer, 404, "NotFound")


@pytest.mark.rule("SET-04", "SET-06", "A04")
def test_types_name_the_rule_and_successes_have_no_error(sandbox: Sandbox) -> None:
    """Each refused rule has its own error type, and no success has a top-level error or a null body."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 1})
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    refused(sandbox.take(order, "captures/orderlines", lines), 409, "CaptureStyleMixed")
    refused(sandbox.take(order, "captures/amount", {"amount": 9999}), 409, "CaptureExceedsRemainder")
    refused(sandbox.delete(f"/v1/orders/{order['id']}/"), 409, "OrderNotCancellable")
    refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    for success in (order, refund, sandbox.take(order, "captures/amount", {"amount": 1}).json()):
        assert "error" not in success
    orders = (f"/v1/orders/{each['id']}/" for each in (order, refund))
    for path in (*orders, "/v1/bank-redirect-nl/issuers/", "/control/agenda/", "/health/"):
        body = sandbox.get(path).json()
        assert body is not None
        assert "error" not in body


CREATION = b"POST /v1/orders/ HTTP/1.1\r\nHost: x\r\n"
MALFORMED = (
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    CREATION + b"Transfer-Encoding: gzip\r\n\r\n",  # RFC 9112, 6.3
    b"NONSENSE\r\n\r\n",
    CREATION + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    b"GET /\r\nbroken header\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: ".ljust(1 << 18, b"y"),
    CREATION + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
)


def exchange(sandbox: Sandbox, raw: bytes) -> tuple[bytes, bytes]:
    """Send raw bytes; return head and body of the response."""
    host, _, port = sandbox.url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(raw)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return head, body


@pytest.mark.rule("SET-03")
@pytest.mark.parametrize("raw", MALFORMED)
def test_malformed_http_is_refused(sandbox: Sandbox, raw: bytes) -> None:
    """The HTTP server refuses malformed requests, and closes the connection."""
    assert exchange(sandbox, raw)[0].startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))


def test_a_post_without_content_length_is_an_empty_body(sandbox: Sandbox) -> None:
    """Bytes that follow the request are not its body."""
    credentials = base64.b64encode(f"{sandbox.key}:".encode())
    request = b"POST /v1/orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request += b"Connection: close\r\nAuthorization: Basic " + credentials + b"\r\n\r\n"
    head, body = exchange(sandbox, request)
    assert head.split()[1] == b"400"
    assert b"empty" in body
