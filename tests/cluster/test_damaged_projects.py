"""A project that cannot be read concerns nobody else."""

import json
from pathlib import Path

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox_company.cluster import Cluster
from tests.cluster.conftest import Company
from tests.support.commands import started
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop

LISTS = ("/control/projects/", "/control/projects/review/", "/dashboard/")
DAMAGED_COLUMNS = [
    ("identity", "{}"),
    ("identity", "nonsense"),
    ("chosen", "[]"),
    ("chosen", '{"settings": {}, "scenario": {"name": []}, "faults": {}}'),
    ("chosen", '{"settings": {"mode": "of a newer version"}, "scenario": {"name": "x"}, "faults": {}}'),
    ("counters", "{}"),
    ("counters", "null"),
]
DAMAGED_RECORDS = [
    ("orders", "{}"),
    ("orders", "x"),
    ("agenda", "[1]"),
    ("jobs", "[]"),
    ("of a plugin", "{}"),
]


def expect_lists(server: Server, *listed: Sandbox) -> None:
    """Assert that the server lists all projects, everywhere."""
    for path in LISTS:
        answer = requests.get(server.local_url + path)
        assert answer.status_code == 200, answer.text
        missing = [
            each.project["project_id"] for each in listed if each.project["project_id"] not in answer.text
        ]
        assert not missing or path == LISTS[1]


def test_rules_for_an_order_and_deferred_webhooks_are_no_damage(
    company: Company, first: Sandbox, shop: Shop
) -> None:
    """The list of projects reads none of their records, which settings, faults and counters mention."""
    order = first.place(card())
    rules = {"webhooks": [{"when": {"order_id": order["id"]}, "then": {"duplicate": 2}}]}
    assert first.put("/control/faults/", rules).status_code == 200
    swapped = Sandbox(company.servers[0], webhook_url=shop.url, name="Swapped")
    swapped.put("/control/faults/", {"webhooks": [{"when": {}, "then": {"swap": True}}]})
    swapped.place(by("bank-transfer"))
    swapped.settle()
    for server in (*company.servers, company.start_server()):
        expect_lists(server, first, swapped)
        items = requests.get(f"{server.local_url}/control/projects/").json()["items"]
        assert "problem" not in str(items)
        assert [each["settings"]["name"] for each in items[1:]] == ["", "Swapped"]


def damage(company: Company, project_id: str, column: str, value: str) -> None:
    """Damage a column of a project, or one of its records."""
    if column not in ("identity", "chosen", "counters"):
        company.execute(
            "INSERT INTO sandbox_record (project, kind, id, version, body)"
            f" VALUES ('{project_id}', '{column}', '7', 2, '{value}')"
        )
        column, value = "last", "damaged"
    company.execute(
        f"UPDATE sandbox_project SET {column} = '{value}', version = version + 1 WHERE id = '{project_id}'"
    )


@pytest.mark.prove
def test_damaged_projects_concern_nobody_else(company: Company, first: Sandbox) -> None:
    """They are listed, refuse their own calls, and keep no server from its start and from other projects."""
    damaged = [Sandbox(company.servers[0]) for _ in (*DAMAGED_COLUMNS, *DAMAGED_RECORDS)]
    for sandbox, (column, value) in zip(damaged, (*DAMAGED_COLUMNS, *DAMAGED_RECORDS), strict=True):
        damage(company, sandbox.project["project_id"], column, value)
        assert company.client_at(company.servers[1], sandbox).get("/v1/orders/x/").status_code == 503
    order = first.place(expiration_period="PT1S")
    for server in (*company.servers, company.start_server()):
        expect_lists(server, first, *damaged)
        company.execute("UPDATE sandbox_project SET attend_at = 'epoch'")
        assert isinstance(server.cluster, Cluster)
        server.cluster.adopt_orphans()
    listed = requests.get(f"{first.url}/control/projects/").json()["items"]
    problems = [each.get("problem", "") for each in listed[2:]]
    assert ["damaged" in problem for problem in problems] == [True] * len(DAMAGED_COLUMNS) + [False] * len(
        DAMAGED_RECORDS
    )
    first.advance("PT2S")
    assert first.read(order)["status"] == "expired"
    assert requests.post(f"{first.url}/control/projects/prune/", json={"unused_for": "P1D"}).ok


@pytest.mark.prove
def test_no_project_stops_a_start(company: Company, first: Sandbox, tmp_path: Path) -> None:
    """``serve`` starts even if no project can be read."""
    first.place(card())
    company.execute("UPDATE sandbox_project SET identity = 'x', chosen = 'x', counters = 'x'")
    ready = tmp_path / "ready.json"
    with started("serve", "--port", "0", "--state", company.state, "--ready-file", str(ready)) as process:
        assert process.stdout is not None
        assert "Payment sandbox" in process.stdout.readline()
        while not ready.exists():
            assert process.poll() is None
        url = json.loads(ready.read_text())["listening"]
        assert len(requests.get(f"{url}/control/projects/").json()["items"]) == 2
