"""Projects: their settings, snapshots and resets."""

import json
from functools import partial
from typing import Annotated, Any, cast

from payment_sandbox.forms import Form
from payment_sandbox.judge import review
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import NewProjectForm, SettingsForm
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import project_record
from payment_sandbox.web.auth import find_damaged
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.declaring import Body, Document, Listed, command
from payment_sandbox.web.error_answers import GENERATED_KEY, find_known_keys
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.snapshot_bodies import restore_text, snapshot_answer, snapshot_text


class StateForm(Form):
    """A snapshot, as returned by ``GET /control/state/``."""


@command(
    "projects",
    "POST",
    "/projects/",
    status=201,
    needs_body=False,
    errors=(429,),
    example={"mode": "live", "seed": 7},
)
def new_project(
    call: Call, settings: Annotated[Document, Body(NewProjectForm, partial(json_body, empty_is={}))]
) -> records.ProjectWithKey:
    """Create a project; only this response contains its API key (CTL-06)."""
    project, api_key = create_project(call, settings)
    return {"api_key": api_key, **project_record(project)}


def create_project(call: Call, settings: Any) -> tuple[Project, str]:
    """Create a project, and return it with its API key.

    Raises:
        RequestRefused: 429 beyond the server's maximum, 400 for settings with another project's key.
        Invalid: lists every invalid setting.
    """
    registry = call.site.registry
    projects_max = registry.services.projects_max
    if projects_max is not None and registry.count() >= projects_max:
        value = f"this server has the maximum of {projects_max} projects (--max-projects); delete one first"
        raise RequestRefused(429, value)
    if any(GENERATED_KEY.fullmatch(key) for key in find_known_keys(registry, json.dumps(settings))):
        value = "the settings must not contain an API key, because they are stored and shown unmasked"
        raise RequestRefused(400, value)
    return registry.create(settings)


@command("projects", "GET", "/projects/", errors=(429,))
def projects(call: Call) -> Listed[records.Project]:
    """List the projects, without their API keys; ``damaged`` names those that cannot be read, if any."""
    registry = call.site.registry
    damaged = [{"project_id": each.project_id, "problem": each.problem} for each in registry.damaged]
    return Listed(map(project_record, registry.all()), more={"damaged": damaged} if damaged else {})


@command("projects", "GET", "/projects/review/", errors=(429,))
def all_findings(call: Call) -> Listed[records.ProjectFindings]:
    """List the mistakes in all projects; projects without findings are omitted."""
    return Listed(
        {
            "project_id": each.project_id,
            "name": each.settings.name,
            "findings": [finding._asdict() for finding in findings],
        }
        for each in call.site.registry.all()
        if (findings := review(each.epoch))
    )


@command("control", "GET", "/project/")
def project(project: Project) -> records.Project:
    """Get the project."""
    return project_record(project)


@command("control", "PATCH", "/project/", example={"mode": "live"})
def patch_project(project: Project, settings: Annotated[Document, Body(SettingsForm)]) -> records.Project:
    """Change some settings (CTL-01, CTL-07)."""
    project.change_settings(settings)
    return project_record(project)


@command("control", "DELETE", "/project/", unwraps="deleted")
def delete_project(call: Call) -> records.DeletedProject:
    """Delete the project; its API key stops working. A damaged project can only be deleted."""
    registry, damaged = call.site.registry, find_damaged(call)
    if damaged is not None:
        registry.delete_damaged(damaged)
        return {"deleted": damaged.project_id}
    registry.delete(call.project)
    return {"deleted": call.project.project_id}


@command("control", "POST", "/reset/", errors=(400,))
def reset(call: Call) -> records.Project:
    """Reset the project to its initial state (CTL-09)."""
    call.site.registry.reset(call.project)
    return project_record(call.project)


@command("control", "GET", "/state/", answers=records.SnapshotShape, errors=(413,))
def snapshot(project: Project) -> records.Snapshot:
    """Take a snapshot of the whole project (CTL-10)."""
    return cast(records.Snapshot, snapshot_answer(project))


@command("control", "PUT", "/state/", errors=(409,))
def restore(project: Project, state: Annotated[Document, Body(StateForm, snapshot_text)]) -> records.Project:
    """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
    restore_text(project, state)
    return project_record(project)
