"""Behaviour that all stores share: in memory, in an SQLite file and in PostgreSQL."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from payment_sandbox.operations.advance import advance_clock
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.journal import (
    AgendaEvent,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
    ReceivedRequest,
    RecordedDecision,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY, Registry
from payment_sandbox.projects.store import JournalRow, NotStored
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.scenarios.model import ScenarioDecision, Subject
from payment_sandbox.storage.codec import encode
from payment_sandbox.storage.journal_rows import RECORDS_MAX, save_new_records
from payment_sandbox.storage.rows import KINDS, read_identity, resume_project
from payment_sandbox.storage.snapshot import restore
from tests.storage.conftest import ANSWER, GOLDEN, SERVICES, Backend, golden_project
from tests.support.state_files import snapshot_of

DECISION = ScenarioDecision(
    default_scenario(), Subject(frozenset({"credit-card"}), 1000, {}, None, 1, False, frozenset()), 3
)


@pytest.fixture
def project(registry: Registry) -> Project:
    """A project with every kind of record."""
    return golden_project(registry)


def state(project: Project) -> dict[str, Any]:
    """Return the project's state as plain data."""
    plain: dict[str, Any] = json.loads(json.dumps(snapshot_of(project)))
    return plain


def rename_first_order(project: Project, name: str) -> None:
    """Change the project's first order."""
    with project.edit() as edit:
        order = edit.order(project.epoch.store.order_ids()[0])
        order.sent = {**order.sent, "merchant_order_id": name}


def expect_stored(backend: Backend, *projects: Project) -> None:
    """Assert that the backend stores exactly the state in memory, and that the projects can be resumed."""
    if backend.name == "memory":
        return
    stored = backend.stored()
    assert [each.identity["project_id"] for each in stored] == [each.project_id for each in projects]
    for project, copy in zip(projects, stored, strict=True):
        expected = state(project)
        assert {kind: copy.state[kind] for kind in KINDS} == {kind: expected[kind] for kind in KINDS}
        assert copy.state == {name: value for name, value in expected.items() if name != "format"}
        identity = read_identity(copy.identity)
        assert identity == project.identity
        resumed = resume_project(identity, copy, SERVICES, backend.storages.create_store, "test")
        assert state(resumed) == expected


def test_a_reset_is_one_step(backend: Backend, project: Project) -> None:
    """A reset removes all records."""
    project.reset(default_scenario())
    assert not any(state(project)[kind] for kind in KINDS)
    expect_stored(backend, project)


CHANGES: dict[str, Callable[[Project], object]] = {
    "edit": lambda project: rename_first_order(project, "lost" * 9000),
    "restore": lambda project: restore(project, GOLDEN | {"answers": [ANSWER | {"body": "lost" * 9000}]}),
    "advance": lambda project: advance_clock(project, {"by": "P40D"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_stored_as_in_memory(backend: Backend, project: Project, change: str) -> None:
    """Records keep their order, also after a snapshot of the same ids, and ended entries of the agenda are deleted."""
    before = state(project)
    assert all(before[kind] for kind in KINDS if kind != "credentials")
    CHANGES[change](project)
    rename_first_order(project, "later")  # deletes the entries that have ended
    assert bool(state(project)["agenda"]) == (change != "advance")
    assert project.epoch.store.order_ids() == [order["id"] for order in before["orders"]]
    expect_stored(backend, project)


@pytest.mark.parametrize("change", ["edit", "restore"])
def test_a_commit_that_fails_leaves_no_trace(durable: Backend, project: Project, change: str) -> None:
    """A failed commit changes neither memory nor the backend; the next commit succeeds."""
    before = state(project)
    with durable.refuse_commits(), pytest.raises(NotStored):
        CHANGES[change](project)
    assert state(project) == before
    expect_stored(durable, project)
    rename_first_order(project, "kept")
    expect_stored(durable, project)


def test_large_records_and_many_of_them(backend: Backend, project: Project) -> None:
    """One order of a megabyte and a thousand other orders fit in one change."""
    first = project.epoch.find_order(project.epoch.store.order_ids()[0])
    with project.edit() as edit:
        order = edit.order(first.id)
        order.sent = {**order.sent, "merchant_order_id": "é\u2028\U0001f9e6" * 300_000}
        for number in range(1000):
            copy = first.copy()
            copy.id = f"00000000-0000-4000-8000-{number:012d}"
            copy.transactions = ()
            copy.refunds = ()
            edit.orders[copy.id] = copy
    if backend.name != "memory":
        (stored,) = backend.stored()
        assert [order["id"] for order in stored.state["orders"]] == project.epoch.store.order_ids()
        assert stored.state["orders"][0] == json.loads(json.dumps(encode(project.find_order(first.id))))


def test_projects_at_the_same_time(backend: Backend, registry: Registry) -> None:
    """Concurrent commits of several projects are atomic and isolated."""
    projects = [registry.create({"name": f"shop {number}"})[0] for number in range(6)]

    def work(project: Project) -> None:
        for number in range(40):
            project.change_settings({"name": f"{project.project_id} {number}"})
            with project.edit() as edit:
                edit.now = edit.now + timedelta(seconds=1)

    with ThreadPoolExecutor(len(projects)) as pool:
        list(pool.map(work, projects))
    assert [project.settings.name for project in projects] == [f"{one.project_id} 39" for one in projects]
    expect_stored(backend, *projects)


@pytest.mark.rule("A43")
def test_the_journal_is_restored(durable: Backend, project: Project) -> None:
    """The journal is restored: requests, faults, actions, statuses, agenda events, failures; no secrets."""
    noon, journal = project.now(), project.epoch.journal
    request = LoggedRequest(
        journal.next_id("request"),
        noon,
        "POST",
        "/v1/orders/",
        "a=1",
        201,
        b'{"card": "4111 1111 1111 1111", "odd": "\xff"}',
        b"{}",
        ignored=("amout",),
        fault=Fault.from_data({"status": 503, "latency": 0.5, "phase": "after"}),
        real_at=noon,
        answered_at=noon,
        request_headers=(("Content-Type", "application/json"),),
        unknown=(("amout", "amount"),),
    )
    journal.add([ReceivedRequest(request.id, None, lambda: request.mask(project.masking))])
    journal.add(
        [PerformedAction("action-2", noon, noon, "customer", "pay", "page", "o", None, {"card": "x"})]
    )
    journal.add([ReachedStatus("status-3", "o", None, None, "completed", noon, noon, "action-2")])
    journal.add([AgendaEvent("event-4", "o", "expiry", "expiry of o", noon, noon)])
    journal.add([LoggedFailure("failure-5", "o", "expiry", "expiry of o", "it broke", noon, noon)])
    assert [journal.next_id("of the records above") for _ in range(4)]
    journal.add([RecordedDecision(journal.next_id("decision"), "t-6", journal.explain(DECISION))])
    save_new_records(project)
    resumed = resume(durable, project)
    assert list(resumed.epoch.journal.entries()) == list(journal.entries())
    assert list(resumed.epoch.journal.actions()) == list(journal.actions())
    assert resumed.epoch.journal.of(ReachedStatus) == journal.of(ReachedStatus)
    assert resumed.epoch.journal.of(AgendaEvent) == journal.of(AgendaEvent)
    assert resumed.epoch.journal.of(LoggedFailure) == journal.of(LoggedFailure)
    assert resumed.epoch.journal.next_id("request") == "request-7"
    explanation = resumed.epoch.journal.explanation("t-6")
    assert [explanation, journal.explanation("t-6")] == [{"scenario": "default", "rule": 3}] * 2
    assert "4111 1111" not in str(stored_journal(project))
    project.reset(default_scenario())
    assert not stored_journal(project)


def stored_journal(project: Project) -> Sequence[JournalRow]:
    """Return the stored records of the journal."""
    return project.epoch.store.journal_rows(10 * RECORDS_MAX)


def resume(backend: Backend, project: Project) -> Project:
    """Resume the project as the next server would."""
    (stored,) = backend.stored()
    return resume_project(project.identity, stored, SERVICES, backend.storages.create_store, "test")


def test_settings_of_a_newer_server_are_kept_and_ignored(durable: Backend, project: Project) -> None:
    """A server of an older version can use the project, and preserves unknown settings."""
    (copy,) = durable.stored()
    copy.state["settings"]["made_later"] = {"a": 1}
    resumed = resume_project(project.identity, copy, SERVICES, durable.storages.create_store, "test")
    resumed.epoch.state = resumed.epoch.state.with_settings({"name": "Shoe shop"})
    assert resumed.epoch.state.chosen.settings["made_later"] == {"a": 1}
    assert resumed.epoch.state.chosen.settings["name"] == "Shoe shop"
    assert "made_later" not in state(resumed)["settings"]


def test_nothing_that_is_stored_gives_a_key_away(backend: Backend, registry: Registry) -> None:
    """The stored generator of ids does not reproduce keys, unless the registry has a seed."""
    ids = registry._contents.ids.copy()
    drawn = {ids.token("key") for _ in range(9)}
    keys = {registry.create({})[1] for _ in range(3)}
    assert not keys & drawn


def test_deleted_projects(backend: Backend, registry: Registry) -> None:
    """After deletion, only the digest of a key that a user had chosen is stored."""
    chosen, _ = registry.create({}, api_key=FIRST_API_KEY)
    generated, key = registry.create({})
    remaining, _ = registry.create({})
    registry.delete(chosen)
    registry.delete(generated)
    assert registry.is_known(FIRST_API_KEY)
    assert not registry.is_known(key)
    assert registry.find_by_id(chosen.project_id) is None
    expect_stored(backend, remaining)
