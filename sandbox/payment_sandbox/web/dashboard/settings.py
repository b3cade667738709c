"""The settings of a project, its snapshot, and its reset."""

import json
from typing import Any, Final

from flask import Response, request

from payment_sandbox.methods import NAMES
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.storage import snapshot
from payment_sandbox.web.answers.responses import streamed_answer
from payment_sandbox.web.bodies import STATE_BYTES_MAX, parse
from payment_sandbox.web.dashboard.frame import POSTED, VIEW, dashboard, enter, go, own_path, show, url
from payment_sandbox.web.errors import RequestRefused
from payment_sandbox.web.routes import route

PROJECT: Final = "/dashboard/<project_id>"
BAD_REQUEST: Final = 400
KEPT: Final = ("seed",)  # changing it would make identifiers jump
DOWNLOAD: Final = {**VIEW, "media_type": "application/json"}


@route(dashboard, "GET", f"{PROJECT}/settings/", **VIEW)
def get_settings_view(project_id: str) -> Response:
    """Show the settings."""
    return _shown(enter(project_id))


@route(dashboard, "POST", f"{PROJECT}/settings/", **POSTED)
def post_settings(project_id: str) -> Response:
    """Change some settings; if one is invalid, nothing changes."""
    project = enter(project_id)
    try:
        project.change_settings(_typed())
    except Invalid as invalid:
        return _shown(project, invalid.violations)
    return go(own_path(request.form.get("back", "")) or url(project, "settings/"))


@route(dashboard, "GET", f"{PROJECT}/state/", answers=None, **{**VIEW, "media_type": "text/plain"})
def get_snapshot(project_id: str) -> Response:
    """Download a snapshot of the whole project."""
    project = enter(project_id)
    response = streamed_answer(snapshot.snapshot_parts(project))
    response.headers["Content-Disposition"] = 'attachment; filename="snapshot.json"'
    return response


@route(dashboard, "POST", f"{PROJECT}/state/", **POSTED)
def post_snapshot(project_id: str) -> Response:
    """Restore a snapshot from a file."""
    project = enter(project_id)
    file = request.files.get("file")
    try:
        data = parse(file.read(STATE_BYTES_MAX)) if file is not None else {}
        snapshot.restore(project, data)
    except RequestRefused as refused:
        return _shown(project, [Violation("file", refused.value)])
    except Invalid as invalid:
        return _shown(project, invalid.violations)
    return go(url(project, "orders/"))


@route(dashboard, "POST", f"{PROJECT}/reset/", **POSTED)
def post_project_reset(project_id: str) -> Response:
    """Reset the project to its initial state."""
    project = enter(project_id)
    project.reset()
    return go(url(project, "orders/"))


def _typed() -> dict[str, Any]:
    """The settings in the form, as the control API takes them."""
    form = SettingsForm()
    given: dict[str, Any] = {}
    for name in form.fields:
        if name in KEPT or f"{name}-sent" not in request.form:
            continue
        values = request.form.getlist(name)
        text = values[0].strip() if values else ""
        if name == "payment_methods":
            given[name] = values
        elif name == "aliases":
            given[name] = _object(text)
        elif name in FLAGS:
            given[name] = bool(values)
        else:
            given[name] = text if text or name != "webhook_url" else None
    return given


FLAGS: Final = (
    "cards_approved",
    "one_click_enabled",
    "recurring_enabled",
    "dynamic_descriptor_enabled",
    "absolute_urls",
    "reduced_customer",
)


def _object(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _shown(project: Any, violations: Any = ()) -> Response:
    form = SettingsForm()
    fields = [
        {
            "name": name,
            "about": field.metadata.get("description", ""),
            "kind": _kind(name),
            "choices": CHOICES.get(name, ()),
            "value": request.form.get(name, value) if violations else value,
        }
        for name, field in form.fields.items()
        if name not in KEPT
        for value in [_value(project, name)]
    ]
    return show(
        "settings",
        project,
        "settings",
        BAD_REQUEST if violations else 200,
        fields=fields,
        methods=NAMES,
        names=[field["name"] for field in fields],
        violations={violation.path: violation.message for violation in violations},
    )


CHOICES: Final = {
    "mode": ("test", "live"),
    "authorized_status": ("completed", "accepted"),
    "unknown_fields": ("drop", "reject"),
    "webhook_timing": ("after_response", "before_response"),
}


def _kind(name: str) -> str:
    if name in FLAGS:
        return "flag"
    if name in CHOICES:
        return "choice"
    return {"payment_methods": "methods"}.get(name, "text")


def _value(project: Any, name: str) -> Any:
    value = project.epoch.state.base_settings.as_mapping()[name]
    if name == "aliases":
        return json.dumps(value) if value else ""
    return "" if value is None else value
