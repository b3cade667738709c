"""Refusals of form: one shape, the right status, and never a 500."""

import base64
import json
import socket
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, card, refused

JSON = {"Content-Type": "application/json"}
GOOD = b'{"currency": "EUR", "amount": 1000}'


def send(sandbox: Sandbox, body: bytes, **headers: str) -> requests.Response:
    """POST raw bytes as an order."""
    return sandbox.post("/v1/orders/", data=body, headers={**JSON, **headers})


def count(sandbox: Sandbox) -> int:
    """How many requests for orders were answered with 201."""
    found: int = sandbox.get("/control/journal/?count=1&status=201").json()["count"]
    return found


@pytest.mark.rule("SET-08", "SET-03")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"   ", "empty"),
        (b"{", "not JSON"),
        (b"{'currency': 'EUR'}", "not JSON"),
        (GOOD + b"x", "not JSON"),
        (b"\xef\xbb\xbf" + GOOD, "not JSON"),
        (b'{"amount": NaN}', "NaN"),
        (b'{"amount": Infinity}', "Infinity"),
        (b'{"amount": -Infinity}', "Infinity"),
        (b'{"amount": 1e999}', "too large"),
        (b'{"amount": ' + b"9" * 5000 + b"}", "a number of too many digits"),
        (b'{"amount": 1, "amount": 2}', "twice"),
        (b'{"extra": {"a": 1, "a": 1}}', "twice"),
        (b"[" * 10_000 + b"]" * 10_000, "nested"),
        (b'{"extra":' * 10_000 + b"1" + b"}" * 10_000, "nested"),
        (b'{"extra": ' + b"[" * 101 + b"]" * 101 + b"}", "nested"),
        (b'{"description": "\\ud800"}', "surrogate"),
        (b'{"description": "a\\u0000b"}', "NUL"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'{"description": "a\x00b"}', "not JSON"),
        (b'{"description": "\xff\xfe"}', "UTF-8"),
        (b'{"description": "\xed\xa0\x80"}', "UTF-8"),
        ("{}".encode("utf-16"), "UTF-8"),
    ],
)
def test_malformed_json_is_a_bad_request(sandbox: Sandbox, body: bytes, says: str) -> None:
    """A sentence says what is wrong; nothing is created."""
    error = refused(send(sandbox, body), 400, "BadRequest")
    assert says in error["value"]
    assert error["violations"] == []
    assert count(sandbox) == 0


def test_a_400_digit_amount_is_a_violation(sandbox: Sandbox) -> None:
    """It is a number, and far too large a one."""
    answer = send(sandbox, b'{"currency": "EUR", "amount": ' + b"9" * 400 + b"}")
    assert refused(answer, 400, "ValidationError")["violations"][0]["path"] == "amount"


def test_a_surrogate_pair_is_a_character(sandbox: Sandbox) -> None:
    """Only lone halves are refused."""
    answer = send(sandbox, b'{"currency": "EUR", "amount": 1, "description": "\\ud83d\\ude00"}')
    assert answer.json()["description"] == "\N{GRINNING FACE}"


@pytest.mark.parametrize("body", ["[]", "null", '"EUR"', "1295", "true"])
def test_a_body_that_is_no_object_is_refused(sandbox: Sandbox, body: str) -> None:
    """Whatever else it is."""
    refused(send(sandbox, body.encode()), 400, "ValidationError")


WRONG: dict[str, Any] = {
    "currency": 1,
    "amount": "1",
    "description": 1,
    "merchant_order_id": 1,
    "return_url": 1,
    "webhook_url": [],
    "expiration_period": 1,
    "payment_methods": "credit-card",
    "customer": "Jan",
    "order_lines": {},
    "transactions": {},
    "client": [],
    "extra": [],
}


@pytest.mark.rule("SET-05", "SET-03")
def test_all_violations_come_at_once(sandbox: Sandbox) -> None:
    """Each with its path, and with what would have been allowed where that is a list."""
    error = refused(sandbox.post("/v1/orders/", WRONG), 400, "ValidationError")
    assert {found["path"] for found in error["violations"]} == set(WRONG)
    assert {"path": "currency", "message": "must be a text"} in error["violations"]
    error = refused(sandbox.create({"payment_method": "cash"}, currency="USD"), 400, "ValidationError")
    allowed = {found["path"]: found["allowed"] for found in error["violations"]}
    assert allowed["currency"] == ["EUR"]
    assert "credit-card" in allowed["transactions[0].payment_method"]
    assert "currency" in error["value"]


@pytest.mark.parametrize("path", list(WRONG))
@pytest.mark.parametrize("value", [None, True, 1.5, "", [[]], {"": {}}, [None], -1])
def test_no_wrong_type_breaks_anything(sandbox: Sandbox, path: str, value: Any) -> None:
    """Either it fits, or it is a violation at its path."""
    answer = sandbox.create(**{path: value})
    if answer.status_code != 201:
        error = refused(answer, 400, "ValidationError")
        assert all(found["path"].startswith(path) for found in error["violations"])


@pytest.mark.rule("SET-09")
def test_a_body_over_one_mebibyte_is_refused(sandbox: Sandbox) -> None:
    """One byte more is too much; exactly one mebibyte is not."""
    filler = b" " * ((1 << 20) - len(GOOD))
    assert send(sandbox, GOOD + filler).status_code == 201
    error = refused(send(sandbox, GOOD + filler + b" "), 413, "RequestEntityTooLarge")
    assert "1 MiB" in error["value"]
    chunks = (GOOD if part == 0 else b" " * 65536 for part in range(18))
    answer = sandbox.post("/v1/orders/", data=chunks, headers=JSON)
    refused(answer, 413, "RequestEntityTooLarge")


@pytest.mark.rule("SET-09", "END-01")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
def test_a_body_that_is_not_json_by_its_type_is_refused(sandbox: Sandbox, kind: str) -> None:
    """The sentence names what was sent."""
    error = refused(
        sandbox.post("/v1/orders/", data=GOOD, headers={"Content-Type": kind}), 415, "UnsupportedMediaType"
    )
    assert (kind or "nothing") in error["value"]


@pytest.mark.rule("END-01")
def test_answers_are_json(sandbox: Sandbox) -> None:
    """Success and refusal alike."""
    for answer in (sandbox.create(), sandbox.create(amount=0), sandbox.get("/nowhere")):
        assert answer.headers["Content-Type"] == "application/json"
    assert sandbox.post(
        "/v1/orders/", data=GOOD, headers={"Content-Type": "application/json; charset=utf-8"}
    ).status_code == 201  # fmt: skip


@pytest.mark.rule("AUTH-01", "AUTH-02", "SET-02", "CTL-30")
@pytest.mark.parametrize(
    "path", ["/v1/orders/x/", "/v1/bank-redirect-nl/issuers/", "/control/project/", "/control/clock/"]
)
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic !!!!",
        "Basic " + base64.b64encode(b"no-colon").decode(),
        "Basic " + base64.b64encode(b"wrong-key:").decode(),
        "Basic " + base64.b64encode(b":sandbox-key").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:").decode(),
        "Basic \xff\xff",
        "Bearer sandbox-key",
        "sandbox-key",
    ],
)
def test_every_request_needs_the_api_key(sandbox: Sandbox, path: str, header: str | None) -> None:
    """401 with the challenge and the JSON error, for every way to get it wrong."""
    headers = {} if header is None else {"Authorization": header}
    answer = requests.get(sandbox.url + path, headers=headers, timeout=5)
    refused(answer, 401, "Unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.rule("SET-02")
@pytest.mark.parametrize("password", ["", "anything"])
def test_the_password_is_not_looked_at(sandbox: Sandbox, password: str) -> None:
    """The key is the user name."""
    assert sandbox.get("/control/clock/", auth=(sandbox.key, password)).status_code == 200


@pytest.mark.rule("SET-01")
def test_paths_work_with_and_without_final_slash(sandbox: Sandbox) -> None:
    """Answered directly, never by a redirect."""
    order = sandbox.post("/v1/orders", {"currency": "EUR", "amount": 1}).json()
    for path in (
        f"/v1/orders/{order['id']}",
        "/v1/bank-redirect-nl/issuers",
        "/v1/merchants/self/projects/self/currencies",
        "/control/project",
        "/control/agenda",
        "/health",
        "/openapi.json",
    ):
        assert sandbox.get(path).status_code == 200
        assert sandbox.get(f"{path}/").status_code == 200


@pytest.mark.rule("VER-01", "VER-02", "SET-08")
@pytest.mark.parametrize(
    "path",
    ["/orders/", "/v2/orders/", "/V1/orders/", "/v1/", "/v1/order/", "/v1//orders/", "/",
     "/v1/orders/%00/", "/v1/orders/%ff/", "/v1/orders/%zz/", "/v1/orders/%0d%0aX: y/", "/v1/orders/..%2f..%2fx/",
     "/v1/orders/\x7f/", "/v1/orders/" + "a" * 5000 + "/"],
)  # fmt: skip
def test_other_paths_do_not_exist(sandbox: Sandbox, path: str) -> None:
    """Bad escapes and control characters included."""
    prepared = requests.Request("GET", sandbox.url, auth=(sandbox.key, "")).prepare()
    prepared.url = sandbox.url + path
    refused(sandbox.http.send(prepared, allow_redirects=False), 404, "NotFound")


@pytest.mark.rule("SET-08")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/orders/"),
        ("PATCH", "/v1/orders/x/"),
        ("OPTIONS", "/v1/orders/"),
        ("PUT", "/v1/bankqr/"),
        ("POST", "/health/"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(sandbox: Sandbox, method: str, path: str) -> None:
    """In the Allow header; and nothing answers to a browser's preflight."""
    answer = sandbox.call(method, path)
    refused(answer, 405, "MethodNotAllowed")
    assert answer.headers["Allow"]
    assert not any(name.lower().startswith("access-control") for name in answer.headers)


@pytest.mark.rule("SET-08", "CTL-08")
def test_another_projects_order_is_unknown(project: Any) -> None:
    """To read, to change, to act on: it does not exist."""
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


@pytest.mark.rule("SET-04", "SET-06")
def test_types_name_the_rule_and_successes_have_no_error(sandbox: Sandbox) -> None:
    """One type per refused rule; no success has a top-level error, and none is a bare null."""
    order = sandbox.authorized()
    sandbox.take(order, "captures/amount", {"amount": 1})
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    kinds = {
        sandbox.take(order, "captures/orderlines", lines).json()["error"]["type"],
        sandbox.take(order, "captures/amount", {"amount": 9999}).json()["error"]["type"],
        sandbox.delete(f"/v1/orders/{order['id']}/").json()["error"]["type"],
        sandbox.act(order, "customer pay").json()["error"]["type"],
    }
    assert kinds == {
        "CaptureStyleMixed",
        "CaptureExceedsRemainder",
        "OrderNotCancellable",
        "ActionNotPossible",
    }
    for path in (
        f"/v1/orders/{order['id']}/",
        "/v1/bank-redirect-nl/issuers/",
        "/control/agenda/",
        "/health/",
    ):
        body = sandbox.get(path).json()
        assert body is not None
        assert "error" not in body


RAW = [
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST /v1/orders/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    (b"NONSENSE\r\n\r\n", 400),
    (b"GET /\r\nbroken header\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: ".ljust(1 << 18, b"y"), 431),
    (b"POST /v1/orders/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /v1/orders/ HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n", 413),
]


@pytest.mark.rule("SET-03")
@pytest.mark.parametrize(("raw", "status"), RAW)
def test_what_is_no_http_is_answered_in_the_same_shape(sandbox: Sandbox, raw: bytes, status: int) -> None:
    """By the server below the application, too; then the connection is closed."""
    host, _, port = sandbox.url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(raw)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.")
    assert int(head.split()[1]) == status
    error = json.loads(body)["error"]
    assert error["status"] == status
    assert error["value"]


def test_a_post_without_content_length_is_an_empty_body(sandbox: Sandbox) -> None:
    """What follows it is no part of it."""
    host, _, port = sandbox.url.partition("://")[2].partition(":")
    credentials = base64.b64encode(f"{sandbox.key}:".encode())
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(
            b"POST /v1/orders/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Authorization: Basic " + credentials + b"\r\n\r\n"
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split()[1] == b"400"
    assert b"empty" in answer


def test_refused_calls_change_nothing(sandbox: Sandbox) -> None:
    """Orders, agenda and clock are as before."""
    order = sandbox.place(card(capture_mode="manual"))
    before = (sandbox.read(order), sandbox.agenda(), sandbox.now())
    sandbox.create(card(), card())
    sandbox.take(order, "captures")
    sandbox.put(f"/v1/orders/{order['id']}/", {"description": "x", "amount": 0})
    sandbox.act(order, "bank credit")
    assert (sandbox.read(order), sandbox.agenda(), sandbox.now()) == before
