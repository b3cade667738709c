"""Servers with a state, and comparison of the state with the server's memory."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.codec import FORMAT
from payment_sandbox.storage.rows import StoredProject
from payment_sandbox.storage.snapshot import capture
from payment_sandbox.storage.sql import SqlStorage, read_state
from payment_sandbox.storage.sqlite import StateFile, read_copy
from tests.support.driver import Sandbox
from tests.support.servers import make_server

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FROM_JOURNAL = ("decisions", "unsent")


def stored_projects(storage: SqlStorage) -> list[StoredProject]:
    """Return the projects in a file, or in a database."""
    state = read_copy(storage.path) if isinstance(storage, StateFile) else read_state(storage.select)
    return [rows.read() for rows in state.projects]


def check_state(storage: SqlStorage, registry: Registry) -> int:
    """Assert that the state equals the memory; return the number of projects."""
    projects = registry.all()
    for project in projects:
        project.settle()
    stored = stored_projects(storage)
    assert [copy.identity["project_id"] for copy in stored] == [project.project_id for project in projects]
    for project, copy in zip(projects, stored, strict=True):
        settings = project.epoch.state.base_settings.stored  # a snapshot has no listener's address
        memory = comparable({**snapshot_of(project), "settings": settings})
        assert comparable(_as_snapshot(project, copy)) == memory, project.project_id
    return len(projects)


def snapshot_of(project: Project) -> dict[str, Any]:
    """Return the project's state as plain data, without what the journal has."""
    parts = {name: part for name, part in capture(project)().items() if name not in FROM_JOURNAL}
    return {name: list(part) if isinstance(part, map) else part for name, part in parts.items()}


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state as parsed JSON, with a sorted agenda and without the time of a running clock."""
    state = json.loads(json.dumps(state))
    if state["clock_mode"] == "running":
        del state["now"]
    state["agenda"].sort(key=lambda due: (due["at"], due["sequence"]))
    state["rule_uses"].sort()
    return state


def _as_snapshot(project: Project, stored: StoredProject) -> dict[str, Any]:
    """Return the stored state; finished entries of the agenda are deleted only with the next change."""
    finished = set(project.epoch.finished_entries)
    agenda = [due for due in stored.state["agenda"] if due["sequence"] not in finished]
    return {"format": FORMAT, **stored.state, "agenda": agenda}


def with_server(path: Path, use: Callable[[Server], Any], **options: Any) -> Any:
    """Run a function with a server on a state file, then compare the file with the memory."""
    with make_server(state=path, **options) as server:
        result = use(server)
        assert server.state is not None
        check_state(server.state, server.registry)
    return result


def reconnect(sandbox: Sandbox, server: Server) -> Sandbox:
    """Return the project on another server."""
    other = object.__new__(Sandbox)
    other.__dict__.update(sandbox.__dict__)
    other.server, other.url = server, server.url
    return other
