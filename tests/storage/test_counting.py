"""Every store counts the bytes of all that it keeps, and gives them back (SET-08)."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import NoServices, Project
from payment_sandbox.projects.quotas import Meter, QuotaReached, Quotas, Usage
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.codec import NotStored, encode
from payment_sandbox.storage.rows import read_identity, resume_project
from payment_sandbox.storage.snapshot import restore, take_checkpoint, undo_move
from tests.storage.conftest import Kept
from tests.support.state_files import snapshot_of

GOLDEN: Final = json.loads((Path(__file__).parent / "golden" / "snapshot-2.json").read_text())
NOON: Final = "frozen@2027-01-01T12:00:00Z"
RECORDS: Final = ("orders", "credentials", "qr_requests", "deliveries")


class Counting(NoServices):
    """Without a server; all projects together may keep a megabyte."""

    def __init__(self) -> None:
        super().__init__(REAL_TIME)
        self.quotas = Quotas(total_bytes=1_000_000)
        self.meter: Meter | None = Meter(self.quotas)

    @property
    def counted(self) -> int:
        """The bytes of all projects."""
        assert self.meter is not None
        return self.meter.total_bytes


@pytest.fixture
def services() -> Counting:
    """Services that count."""
    return Counting()


@pytest.fixture
def registry(kept: Kept, services: Counting) -> Registry:
    """An empty registry whose projects are stored there."""
    catalogue = Catalogue(METHOD_NAMES, check_scenario_settings, default=default_scenario())
    return Registry(services, kept.storages, catalogue, clock=NOON)


@pytest.fixture
def project(registry: Registry) -> Project:
    """A project with every kind of record."""
    made, _ = registry.create({"name": "Sock shop", "seed": 5})
    restore(made, GOLDEN)
    return made


def usage_of(project: Project) -> Usage:
    """What a project keeps, counted anew."""
    snapshot: dict[str, Any] = snapshot_of(project)
    records = [record for kind in RECORDS for record in snapshot[kind]]
    records += [tuple(due.values()) for due in snapshot["agenda"]]
    records.append(encode(project.epoch.state.chosen))
    return Usage(len(snapshot["orders"]), sum(len(json.dumps(record)) for record in records))


def expect_counted(services: Counting, *projects: Project) -> None:
    """The accounts say what is kept."""
    usages = [project.account.usage for project in projects if project.account is not None]
    assert usages == [usage_of(project) for project in projects]
    assert services.counted == sum(usage.bytes for usage in usages)


def describe(project: Project, text: str) -> None:
    """Change the description of the first order."""
    with project.edit() as edit:
        order = edit.order(project.epoch.store.order_ids()[0])
        order.sent = {**order.sent, "description": text}


def test_everything_is_counted(services: Counting, registry: Registry, project: Project) -> None:
    """Records that are added, changed and removed, the agenda, and what a project chose."""
    expect_counted(services, project)
    describe(project, "x" * 3000)
    project.change_settings({"aliases": {"my-button": "credit-card"}})
    project.put_faults({"faults": [{"then": {"status": 503}}]})
    expect_counted(services, project)
    before = take_checkpoint(project, project.epoch)
    advance_clock(project, {"by": "P40D"})
    expect_counted(services, project)
    undo_move(project, project.epoch, before)
    expect_counted(services, project)
    other, _ = registry.create({"seed": 6})
    expect_counted(services, project, other)
    project.reset()
    expect_counted(services, project, other)
    registry.delete(project)
    expect_counted(services, other)


def test_a_project_that_comes_back_counts_the_same(
    kept: Kept, services: Counting, registry: Registry, project: Project
) -> None:
    """Once it is opened: a copy of another server's project counts nothing."""
    if kept.stored is None:
        pytest.skip("nothing outlives the process")
    usage, counted = usage_of(project), services.counted
    (stored,) = kept.stored()
    identity = read_identity(stored.identity)
    again = resume_project(identity, stored, services, kept.storages.storage(identity, REAL_TIME), "test")
    assert again.account is not None
    assert (again.account.usage, services.counted) == (usage, counted)
    again.account.open()
    assert services.counted == counted + usage.bytes
    again.end()
    again.end()
    assert services.counted == counted


def test_a_refused_change_changes_nothing(kept: Kept, services: Counting, project: Project) -> None:
    """In memory, in the store, and in what is counted."""
    before = (snapshot_of(project), kept.stored and kept.stored())
    with pytest.raises(QuotaReached, match="max-megabytes-in-all"):
        describe(project, "x" * 1_000_000)
    assert (snapshot_of(project), kept.stored and kept.stored()) == before
    expect_counted(services, project)


def test_a_commit_that_fails_counts_nothing(kept: Kept, services: Counting, project: Project) -> None:
    """It is as if nobody had tried."""
    if kept.refusing is None:
        pytest.skip("memory refuses nothing")
    with kept.refusing(), pytest.raises(NotStored):
        describe(project, "x" * 100_000)
    expect_counted(services, project)
