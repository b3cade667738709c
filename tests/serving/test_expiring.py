"""Projects that nobody uses any more end by themselves, if their settings say so."""

from collections.abc import Iterator
from threading import Event

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox
from tests.support.servers import make_server


@pytest.fixture
def alone() -> Iterator[Server]:
    """A server of its own, over HTTP."""
    with make_server() as server:
        yield server


def ids(server: Server) -> list[str]:
    """The projects that there are."""
    listed = requests.get(f"{server.url}/control/projects/", timeout=9).json()["items"]
    return [each["project_id"] for each in listed]


def test_a_project_that_is_not_used_is_deleted(alone: Server) -> None:
    """Three seconds after its last call, and not as long as there are calls; the others stay."""
    kept = Sandbox(alone, owner="the QA team")
    short = Sandbox(alone, expires_after="PT3S", owner="CI job 7")
    pause = Event()
    for _ in range(13):
        assert short.get("/control/clock/").status_code == 200
        pause.wait(0.25)
    while short.project["project_id"] in ids(alone):
        pause.wait(0.05)
    assert short.http.get(f"{short.url}/control/clock/", auth=(short.key, "")).status_code == 401
    assert kept.project["project_id"] in ids(alone)


@pytest.mark.parametrize("wrong", ["1 hour", "PT0S", 60])
def test_a_wrong_duration_is_refused(alone: Server, wrong: object) -> None:
    """Nothing is created."""
    answer = requests.post(f"{alone.url}/control/projects/", json={"expires_after": wrong}, timeout=9)
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"][0]["path"] == "expires_after"


def test_a_very_long_time_never_ends(alone: Server) -> None:
    """It is no error, either."""
    sandbox = Sandbox(alone, expires_after="P9999Y")
    assert sandbox.get("/control/project/").json()["settings"]["expires_after"] == "P9999Y"
    assert sandbox.project["project_id"] in ids(alone)
