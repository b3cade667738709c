"""The calls on a project: its settings, snapshots and reset."""

from flask import Response

from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.storage import snapshot
from payment_sandbox.web.answers.control import project_record
from payment_sandbox.web.answers.later import Later
from payment_sandbox.web.answers.responses import json_answer, streamed_answer
from payment_sandbox.web.auth import project, registry
from payment_sandbox.web.bodies import STATE_BYTES_MAX, json_body
from payment_sandbox.web.control.blueprint import BODY_ERRORS, control
from payment_sandbox.web.control.forms import StateForm
from payment_sandbox.web.routes import route


@route(control, "GET", "/project/", answers=Later("ProjectShape"))
def get_project() -> Response:
    """Get the project."""
    return json_answer(project_record(project()))


@route(
    control,
    "PATCH",
    "/project/",
    reads=SettingsForm,
    answers=Later("ProjectShape"),
    errors=BODY_ERRORS,
    example={"mode": "live"},
)
def patch_project() -> Response:
    """Change some settings (CTL-01, CTL-07)."""
    project().change_settings(json_body())
    return json_answer(project_record(project()))


@route(control, "DELETE", "/project/", answers=Later("DeletedShape"))
def delete_project() -> Response:
    """Delete the project; its API key stops working."""
    registry().delete(project())
    return json_answer({"deleted": project().project_id})


@route(control, "POST", "/reset/", answers=Later("ProjectShape"))
def post_reset() -> Response:
    """Reset the project to its initial state (CTL-09)."""
    project().reset()
    return json_answer(project_record(project()))


@route(control, "GET", "/state/", answers=Later("SnapshotShape"), slow=True)
def get_state() -> Response:
    """Take a snapshot of the whole project (CTL-10)."""
    return streamed_answer(snapshot.snapshot_parts(project()))


@route(
    control,
    "PUT",
    "/state/",
    reads=StateForm,
    answers=Later("ProjectShape"),
    errors=(*BODY_ERRORS, 409),
    slow=True,
)
def put_state() -> Response:
    """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
    snapshot.restore(project(), json_body(bytes_max=STATE_BYTES_MAX))
    return json_answer(project_record(project()))
