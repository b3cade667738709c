"""Projects that nobody uses any more end by themselves, if their settings say so."""

from collections.abc import Iterator
from threading import Event

import pytest
import requests

from payment_sandbox.projects.quotas import Quotas
from payment_sandbox.serving.server import Server
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


def test_quotas_of_bytes() -> None:
    """What a project or a server keeps is limited, in whichever way it comes; a reset makes room."""
    with Server(quotas=Quotas(bytes=20_000, bytes_in_all=45_000)) as server:
        first, second, third = Sandbox(server), Sandbox(server), Sandbox(server)
        assert fill(first) == ["--max-megabytes"]
        assert fill(second) == ["--max-megabytes"]
        assert fill(third) == ["--max-megabytes-in-all"]
        second.delete("/control/project/")
        assert fill(third) == ["--max-megabytes"]
        assert first.create(card()).status_code == 507
        first.post("/control/reset/")
        assert first.create(card()).status_code == 201


def fill(sandbox: Sandbox) -> list[str]:
    """Create orders until that is refused; the quota that is named, of all that creates."""
    order = sandbox.place(card())
    sandbox.post(f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"})
    for _ in range(20):
        refused = sandbox.create(card(), description="x" * 500)
        if refused.status_code == 507:
            break
    body = {"amount": 100, "description": "Coffee"}
    others = [
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}),
        sandbox.post("/v1/bankqr/", body),
    ]
    values = [answer.json()["error"]["value"] for answer in (refused, *others) if answer.status_code == 507]
    assert len(values) == 3
    assert sandbox.read(order)["status"] == "completed"
    return sorted({value.split("(")[1].split(")")[0] for value in values})
