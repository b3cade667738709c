"""Projects that nobody uses any more end by themselves, if their settings say so."""

from collections.abc import Iterator
from threading import Event

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.web.carried import Quotas
from tests.support.driver import Sandbox, card


@pytest.fixture
def alone() -> Iterator[Server]:
    """A server of its own, over HTTP."""
    with Server() as server:
        yield server


def ids(server: Server) -> list[str]:
    """The projects that there are."""
    listed = requests.get(f"{server.url}/control/projects/", timeout=9).json()["items"]
    return [each["project_id"] for each in listed]


def test_a_project_that_is_not_used_is_deleted(alone: Server) -> None:
    """A second after its last call, and not as long as there are calls; the others stay."""
    kept = Sandbox(alone, owner="the QA team")
    short = Sandbox(alone, expires_after="PT1S", owner="CI job 7")
    pause = Event()
    for _ in range(15):
        assert short.get("/control/clock/").status_code == 200
        pause.wait(0.1)
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


def test_quotas() -> None:
    """A project too many is 429, an order too many 507; what there is goes on, and a reset makes room."""
    with Server(quotas=Quotas(projects=2, orders=1)) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        assert sandbox.create(card()).status_code == 507
        assert sandbox.read(order)["id"] == order["id"]
        refused = requests.post(f"{server.url}/control/projects/", timeout=9)
        assert refused.status_code == 429
        assert "--max-projects" in refused.json()["error"]["value"]
        sandbox.post("/control/reset/")
        assert sandbox.create(card()).status_code == 201
        sandbox.delete("/control/project/")
        assert requests.post(f"{server.url}/control/projects/", timeout=9).status_code == 201
