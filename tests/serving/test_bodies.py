"""Limits of request bodies."""

import json
import re
import socket
from contextlib import ExitStack
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest
import requests

from payment_sandbox.serving.gateway import Limits
from payment_sandbox.serving.server import Server
from payment_sandbox.web.bodies import STATE_BYTES_MAX
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.snapshot_bodies import (
    RECORD_VALUES_MAX,
    STATE_VALUES_MAX,
    parse_snapshot,
    refuse_too_large,
)
from tests.support.driver import Sandbox
from tests.support.servers import make_server

AUTHORIZATION = b"Authorization: Basic c2FuZGJveC1rZXk6\r\n"
PIECE = b"x" * (1 << 20)
HEAD = (
    "PUT /control/state/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic c2FuZGJveC1rZXk6\r\n"
    f"Content-Type: application/json\r\nContent-Length: {2 * len(PIECE)}\r\n\r\n"
).encode()


def begin_snapshot(server: Server) -> socket.socket:
    """Open a connection and send the first half of a snapshot."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.sendall(HEAD + PIECE)
    return connection


def finish_snapshot(connection: socket.socket) -> int:
    """Send the second half; return the status of the response."""
    connection.sendall(PIECE)
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def test_snapshots_have_a_limit_together() -> None:
    """Concurrent snapshots share a limit; each counts until it is used or its client disconnects."""
    with make_server(limits=Limits(snapshots_bytes=3 * len(PIECE))) as server:
        with begin_snapshot(server) as first:
            assert finish_snapshot(first) == 400, "the whole body was read, but is not a snapshot"
            with (
                begin_snapshot(server),
                begin_snapshot(server),
                begin_snapshot(server) as last,
            ):  # and all disconnect
                assert finish_snapshot(last) in (400, 503)
        status = 503  # until the server has noticed that the clients are gone
        while status == 503:
            with begin_snapshot(server) as later:
                status = finish_snapshot(later)
        assert status == 400


def test_a_snapshot_beyond_the_limit_is_refused_for_now() -> None:
    """A snapshot beyond the limit is read to its end and answered with 503."""
    with make_server(limits=Limits(snapshots_bytes=len(PIECE))) as server, begin_snapshot(server) as one:
        assert finish_snapshot(one) == 503


def test_no_memory_is_reserved_without_a_key(sandbox: Sandbox) -> None:
    """Announcing a large snapshot takes a project's key, and takes memory from no other project."""
    head = HEAD.replace(str(2 * len(PIECE)).encode(), str(STATE_BYTES_MAX).encode())
    with ExitStack() as stack:
        for authorization in (b"", b"Authorization: Basic eDp4\r\n"):
            for _ in range(8):
                connection = stack.enter_context(
                    socket.create_connection(("127.0.0.1", urlsplit(sandbox.url).port), timeout=60)
                )
                connection.sendall(head.replace(AUTHORIZATION, authorization) + PIECE)
                assert connection.recv(12) == b"HTTP/1.1 401"
        padded = sandbox.get("/control/state/").content + b" " * len(PIECE)
        headers = {"Content-Type": "application/json"}
        restored = requests.put(
            f"{sandbox.url}/control/state/", padded, headers=headers, auth=(sandbox.key, ""), timeout=60
        )
        assert restored.status_code == 200, restored.text


def test_a_project_sends_one_snapshot_at_a_time() -> None:
    """A project cannot use up the memory for the snapshots of all projects."""
    with make_server() as server, begin_snapshot(server) as first, begin_snapshot(server) as second:
        statuses = {finish_snapshot(second), finish_snapshot(first)}
        assert statuses == {400, 503}


TOO_MANY = [
    b'{"orders": [' + b"[]," * (STATE_VALUES_MAX // 2) + b"[]]}",
    b'{"orders": [[' + b"[]," * (RECORD_VALUES_MAX // 2 + (1 << 20)) + b"[]]]}",
]


@pytest.mark.parametrize("body", TOO_MANY, ids=["in all", "in one order"])
def test_the_values_of_a_snapshot_are_counted_before_they_are_parsed(body: bytes) -> None:
    """A snapshot with too many values is refused, without a look at its end."""
    with pytest.raises(RequestRefused) as refused:
        parse_snapshot(body + b"no JSON")
    assert refused.value.status == 413


@pytest.mark.parametrize(
    "pieces",
    [
        [json.dumps([0] * 100)] * (STATE_VALUES_MAX // 100 + 1),
        ["{}", json.dumps([0] * (RECORD_VALUES_MAX + 1))],
        ["x" * (1 << 20)] * ((STATE_BYTES_MAX >> 20) + 1),
    ],
    ids=["values", "values of an order", "bytes"],
)
def test_no_snapshot_is_taken_that_cannot_be_restored(pieces: list[str]) -> None:
    """A project that is too large for a snapshot gets no snapshot."""
    refuse_too_large(pieces[:1])
    with pytest.raises(RequestRefused, match="too large for a snapshot") as refused:
        refuse_too_large(pieces)
    assert refused.value.status == 413


DOCUMENTS = [
    '{"a": [1, {"b": [[]]}, "\u00e9, ]", 2.5e3],\n "c": {"d": null}, "e": -12, "f": [], "g": true}',
    " {} ",
    "12",
    '"text"',
    "[1, 2]",
    json.dumps({"orders": [{"text": "\U0001f600é" * 3000, "n": [10**12] * 99}] * 200, "n": 12}),
    json.dumps({"text": "é" * 3_000_000, "n": 123456}, ensure_ascii=False),
]


@pytest.mark.parametrize("text", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_a_snapshot_is_parsed_like_any_other_body(text: str) -> None:
    """A snapshot that is parsed piece by piece has the values of the whole document."""
    assert parse_snapshot(b"\xef\xbb\xbf" + text.encode()) == json.loads(text)


WRONG = {
    '{"a": [1, 2}': "Expecting ',' delimiter at character 12",
    '{"a": 1 "b": 2}': "Expecting ',' delimiter at character 9",
    '{"a" 1}': "Expecting ':' delimiter at character 6",
    "{1: 2}": "Expecting property name enclosed in double quotes at character 2",
    '{"a": 1} 2': "Extra data at character 10",
    '{"a": [1, ]}': "Expecting value at character 11",
    '{"a": [], "a": 1}': "the key 'a' twice",
    '{"a": "x': "Unterminated string starting at at character 7",
    '{"a": ["\\u0000"]}': "a lone surrogate or a NUL character",
    '{"a": ' + "[" * 100 + "]" * 100 + "}": "nested deeper than 100 levels",
    '{"a": ' + "[" * 100_000: "nested deeper than 100 levels",
}


@pytest.mark.parametrize(("text", "problem"), WRONG.items(), ids=range(len(WRONG)))
def test_a_wrong_snapshot_is_refused_like_any_other_body(text: str, problem: str) -> None:
    """What is not JSON is refused with its place, also far from the beginning."""
    with pytest.raises(RequestRefused, match=re.escape(problem)):
        parse_snapshot(text.encode())
    with pytest.raises(RequestRefused, match="byte 2000007 is invalid"):
        parse_snapshot(b'{"a": "' + b"x" * 2_000_000 + b"\xff" + b'"}')


def test_a_client_that_sends_too_much_reads_why(sandbox: Sandbox) -> None:
    """An oversized body is read to its end and dropped; the connection stays usable."""
    with requests.Session() as http:
        http.auth = (sandbox.key, "")
        for body in (b"[" * (8 << 20), iter([b"[" * (1 << 20)] * 8)):
            answer = http.post(f"{sandbox.url}/v1/orders/", data=body, timeout=60)
            assert answer.status_code == 413
            assert "over 1048576 bytes" in answer.json()["error"]["value"]
        assert http.get(f"{sandbox.url}/v1/orders/nothing/", timeout=60).status_code == 404


def test_a_large_snapshot_is_restored_with_and_without_a_trailing_slash(sandbox: Sandbox) -> None:
    """Snapshots may be larger than other bodies."""
    for _ in range(3):
        sandbox.create(extra={"note": "x" * 900_000})
    snapshot = sandbox.get("/control/state/").content
    assert len(snapshot) > 2 << 20
    for path in ("/control/state/", "/control/state"):
        answer = requests.put(
            f"{sandbox.url}{path}",
            data=snapshot,
            headers={"Content-Type": "application/json"},
            auth=(sandbox.key, ""),
            timeout=60,
        )
        assert answer.status_code == 200, answer.text[:200]
