"""Unused projects expire if their settings say so."""

from collections.abc import Iterator
from threading import Event

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox
from tests.support.servers import make_server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A separate server for the test, called over HTTP."""
    with make_server() as server:
        yield server


def project_ids(server: Server) -> list[str]:
    """Return the ids of all projects."""
    listed = requests.get(f"{server.url}/control/projects/", timeout=9).json()["items"]
    return [each["project_id"] for each in listed]


def test_a_project_that_is_not_used_is_deleted(own_server: Server) -> None:
    """It is deleted three seconds after its last call; other projects remain."""
    permanent = Sandbox(own_server, owner="the QA team")
    expiring = Sandbox(own_server, expires_after="PT3S", owner="CI job 7")
    pause = Event()
    for _ in range(13):
        assert expiring.get("/control/clock/").status_code == 200
        pause.wait(0.25)
    while expiring.project["project_id"] in project_ids(own_server):
        pause.wait(0.05)
    assert expiring.http.get(f"{expiring.url}/control/clock/", auth=(expiring.key, "")).status_code == 401
    assert permanent.project["project_id"] in project_ids(own_server)


@pytest.mark.parametrize("wrong", ["1 hour", "PT0S", 60])
def test_a_wrong_duration_is_refused(own_server: Server, wrong: object) -> None:
    """A wrong duration is a violation."""
    answer = requests.post(f"{own_server.url}/control/projects/", json={"expires_after": wrong}, timeout=9)
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"][0]["path"] == "expires_after"


def test_a_very_long_time_never_ends(own_server: Server) -> None:
    """A duration beyond the calendar is accepted."""
    sandbox = Sandbox(own_server, expires_after="P9999Y")
    assert sandbox.get("/control/project/").json()["settings"]["expires_after"] == "P9999Y"
    assert sandbox.project["project_id"] in project_ids(own_server)
