"""Runs a server from a state file, and compares the file with the server's memory."""

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
from payment_sandbox.storage.snapshot import snapshot_parts
from payment_sandbox.storage.sqlite import StateFile, read_copy
from tests.support.driver import Sandbox
from tests.support.servers import make_server

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def check_file(file: StateFile, registry: Registry) -> int:
    """Fail if the file differs from memory in any way; returns the number of projects."""
    projects = registry.all()
    for project in projects:
        project.settle()
    _, kept = read_copy(file.path)
    assert [found.identity["project_id"] for found in kept] == [project.project_id for project in projects]
    for project, found in zip(projects, kept, strict=True):
        memory, written = comparable(snapshot_of(project)), comparable(_as_snapshot(project, found))
        assert written == memory, project.project_id
    return len(projects)


def snapshot_of(project: Project) -> dict[str, Any]:
    """The project's state as plain data, without the decisions of scenarios, which its journal knows."""
    parts = {name: part for name, part in snapshot_parts(project).items() if name != "decisions"}
    return {name: list(part) if isinstance(part, map) else part for name, part in parts.items()}


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    """The state as JSON would have it: without the running clock's time, and with the agenda sorted."""
    state = json.loads(json.dumps(state))
    if state["clock_mode"] == "running":
        del state["now"]
    state["agenda"].sort(key=lambda due: (due["at"], due["sequence"]))
    state["rule_uses"].sort()
    return state


def _as_snapshot(project: Project, found: StoredProject) -> dict[str, Any]:
    """The file as a snapshot; entries that are over in memory leave the file only with the next change."""
    over = set(project.epoch.finished_entries)
    agenda = [due for due in found.state["agenda"] if due["sequence"] not in over]
    return {"format": FORMAT, **found.state, "agenda": agenda}


def with_server(path: Path, do: Callable[[Server], Any], **options: Any) -> Any:
    """Run a server from a state file, do something, stop it, and compare the file with the server."""
    with make_server(state=path, **options) as server:
        done = do(server)
        assert isinstance(server.state, StateFile)
        check_file(server.state, server.registry)
    return done


def again(sandbox: Sandbox, server: Server) -> Sandbox:
    """The same project on another server."""
    other = object.__new__(Sandbox)
    other.__dict__.update(sandbox.__dict__)
    other.server, other.url = server, server.url
    return other
