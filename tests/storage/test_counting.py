"""Every store counts the bytes of its records, and releases them (SET-08)."""

import json
from typing import Any, Final

import pytest

from payment_sandbox.operations.move_clock import advance_clock
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.quotas import Meter, Quotas, Usage
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.codec import NotStored, encode
from payment_sandbox.storage.rows import read_identity, resume_project
from tests.storage.conftest import Backend, golden_project
from tests.support.state_files import snapshot_of

RECORDS: Final = ("orders", "credentials", "qr_requests", "deliveries", "answers")


class CountingServices(Services):
    """Services without a server; all projects together may store a megabyte."""

    def __init__(self) -> None:
        super().__init__(REAL_TIME)
        self.quotas = Quotas(total_bytes=1_000_000)
        self.meter: Meter | None = Meter(self.quotas)

    @property
    def total_bytes(self) -> int:
        """The bytes of all projects."""
        assert self.meter is not None
        return self.meter.total_bytes


@pytest.fixture
def services() -> CountingServices:
    """Services with a meter."""
    return CountingServices()


@pytest.fixture
def project(registry: Registry) -> Project:
    """A project with every kind of record."""
    return golden_project(registry)


def usage_of(project: Project) -> Usage:
    """Recount the usage of a project."""
    snapshot: dict[str, Any] = snapshot_of(project)
    records = [record for kind in RECORDS for record in snapshot[kind]]
    records += [tuple(due.values()) for due in snapshot["agenda"]]
    records.append(encode(project.epoch.state.chosen))
    return Usage(len(snapshot["orders"]), sum(len(json.dumps(record)) for record in records))


def expect_counted(services: CountingServices, *projects: Project) -> None:
    """Assert that the accounts equal the recounted usage."""
    usages = [project.account.usage for project in projects if project.account is not None]
    assert usages == [usage_of(project) for project in projects]
    assert services.total_bytes == sum(usage.bytes for usage in usages)


def describe(project: Project, text: str) -> None:
    """Change the description of the first order."""
    with project.edit() as edit:
        order = edit.order(project.epoch.store.order_ids()[0])
        order.sent = {**order.sent, "description": text}


def test_everything_is_counted(services: CountingServices, registry: Registry, project: Project) -> None:
    """Added, changed and removed records, the agenda and the chosen settings are counted."""
    expect_counted(services, project)
    describe(project, "x" * 3000)
    project.change_settings({"aliases": {"my-button": "credit-card"}})
    project.put_faults({"faults": [{"then": {"status": 503}}]})
    expect_counted(services, project)
    advance_clock(project, {"by": "P40D"})
    expect_counted(services, project)
    other, _ = registry.create({"seed": 6})
    expect_counted(services, project, other)
    project.reset(default_scenario())
    expect_counted(services, project, other)
    registry.delete(project)
    expect_counted(services, other)


def test_a_resumed_project_counts_the_same(
    durable: Backend, services: CountingServices, registry: Registry, project: Project
) -> None:
    """A resumed project counts when it is opened; a copy of another server's project counts nothing."""
    usage, total_bytes = usage_of(project), services.total_bytes
    (stored,) = durable.stored()
    identity = read_identity(stored.identity)
    resumed = resume_project(
        identity, stored, services, durable.storages.storage(identity.project_id), "test"
    )
    assert resumed.account is not None
    assert (resumed.account.usage, services.total_bytes) == (usage, total_bytes)
    resumed.account.open()
    assert services.total_bytes == total_bytes + usage.bytes
    resumed.end()
    resumed.end()
    assert services.total_bytes == total_bytes


def test_a_commit_that_fails_counts_nothing(
    durable: Backend, services: CountingServices, project: Project
) -> None:
    """A failed commit leaves the usage unchanged."""
    with durable.refuse_commits(), pytest.raises(NotStored):
        describe(project, "x" * 100_000)
    expect_counted(services, project)
