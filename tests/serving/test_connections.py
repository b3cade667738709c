"""Clients that never close a connection keep nobody else out."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving import http as http_server
from payment_sandbox.serving.server import Server

LIMIT = 20
HEALTH = b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with room for few connections."""
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", LIMIT)
    with Server() as started:
        yield started


def connected(to: Server, kept: ExitStack) -> socket.socket:
    """A connection that the server has answered on, and that stays open."""
    opened = kept.enter_context(socket.create_connection(("127.0.0.1", to.port), timeout=5))
    opened.sendall(HEALTH + b"\r\n")
    assert status_from(opened) == 200
    return opened


def status_from(connection: socket.socket) -> int:
    """The status of an answer, which is read to its end."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def test_forgotten_connections_make_room(narrow: Server) -> None:
    """Three times as many as there is room for, one after the other, and each is answered."""
    with ExitStack() as kept:
        for _ in range(3 * LIMIT):
            connected(narrow, kept)


def test_what_is_under_way_is_not_cut_off(narrow: Server) -> None:
    """Neither a stream nor a request of which a part has come makes room for others."""
    client = SandboxClient(narrow.url, FIRST_API_KEY)
    with ExitStack() as kept, requests.Session() as watching:
        stream = kept.enter_context(
            watching.get(f"{narrow.url}/control/events/", auth=(FIRST_API_KEY, ""), stream=True, timeout=5)
        )
        half = connected(narrow, kept)
        half.sendall(HEALTH)
        for _ in range(2 * LIMIT):
            connected(narrow, kept)
        half.sendall(b"\r\n")
        assert status_from(half) == 200
        client.change_settings(name="Changed")
        client.clock.freeze()
        assert any(b"clock" in line for line in stream.iter_lines(chunk_size=1))
    client.close()


def test_newcomers_wait_while_all_are_in_use(narrow: Server) -> None:
    """Nobody is turned away, and nobody's request is cut off."""
    with ExitStack() as kept:
        halves: list[socket.socket] = []
        while len(halves) < LIMIT:
            halves.append(connected(narrow, kept))
            halves[-1].sendall(HEALTH)
        newcomer = kept.enter_context(socket.create_connection(("127.0.0.1", narrow.port), timeout=10))
        newcomer.sendall(HEALTH + b"\r\n")
        newcomer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            newcomer.recv(1)
        newcomer.settimeout(10)
        for half in halves:
            half.sendall(b"\r\n")
            assert status_from(half) == 200
        assert status_from(newcomer) == 200


def test_the_limit_is_what_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems grant 256 open files: connections take no half of them, whoever holds the other ends."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64 + 2 * LIMIT, 64 + 2 * LIMIT))
    with Server() as started, ExitStack() as kept:
        for _ in range(2 * LIMIT):
            connected(started, kept)
