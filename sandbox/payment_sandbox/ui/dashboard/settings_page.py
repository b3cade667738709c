"""The settings, snapshots and reset of a project."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from flask import Response

from payment_sandbox.forms import Choice, Flag, Items
from payment_sandbox.forms.fields import Anything, Number
from payment_sandbox.forms.merchant_urls import url_problem
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.project import ADDRESS_SETTINGS, Project
from payment_sandbox.projects.settings import SETTINGS
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    form_page,
    show,
    url,
)
from payment_sandbox.ui.dashboard.notices import Notice, with_notice
from payment_sandbox.web.bodies import parse
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.routes import stated
from payment_sandbox.web.snapshot_bodies import restore_text, snapshot_answer

BAD_REQUEST: Final = 400
FLAG: Final = "flag"
CHOICE: Final = "choice"
METHODS: Final = "methods"
OBJECT: Final = "object"
LABELS: Final = {
    name: name.capitalize().replace("_", " ").replace("url", "URL") for name in SETTINGS if name != "seed"
}
"""The editable settings; not the seed, which changes all later ids."""


@stated(**VIEW_FACTS)
def get_settings_view(call: Call, project_id: str) -> Response:
    """Show the settings."""
    return _settings_page(call, enter(call, project_id))


@stated(**FORM_FACTS)
def post_settings(call: Call, project_id: str) -> Response:
    """Change settings; one invalid value prevents all changes."""
    project = enter(call, project_id)
    try:
        project.change_settings(
            {
                name: _read_value(call, name, _field_kind(SETTINGS[name].field))
                for name in LABELS
                if f"{name}-sent" in call.request.form
            }
        )
    except Invalid as invalid:
        return _settings_page(call, project, "These settings were not saved", invalid.violations)
    back = form_page(call) or url(project, "settings/")
    return redirect(with_notice(project, back, Notice("Saved.")))


@stated(answers=None, **{**VIEW_FACTS, "media_type": "text/plain"})
def get_snapshot(call: Call, project_id: str) -> Response:
    """Download a snapshot of the project."""
    project = enter(call, project_id)
    response = snapshot_answer(project)
    response.headers["Content-Disposition"] = 'attachment; filename="snapshot.json"'
    return response


@stated(**FORM_FACTS)
def post_snapshot(call: Call, project_id: str) -> Response:
    """Restore a snapshot from a file."""
    project = enter(call, project_id)
    file = call.request.files.get("file")
    try:
        restore_text(project, file.read() if file is not None else b"{}")
    except (RequestRefused, Invalid) as refused:
        unread = [Violation("file", str(refused))]
        violations = refused.violations if isinstance(refused, Invalid) else unread
        return _settings_page(call, project, "This file cannot be loaded", violations)
    return redirect(url(project, "orders/"))


@stated(**FORM_FACTS)
def post_project_reset(call: Call, project_id: str) -> Response:
    """Reset the project to its initial state."""
    project = enter(call, project_id)
    try:
        call.site.registry.reset(project)
    except Invalid as invalid:
        return _settings_page(call, project, "The project was not reset", invalid.violations)
    return redirect(url(project, "orders/"))


def _read_value(call: Call, name: str, kind: str) -> Any:
    values = call.request.form.getlist(name)
    if kind == METHODS:
        return values
    if kind == FLAG:
        return bool(values)
    text = values[0].strip() if values else ""
    if kind == OBJECT or isinstance(SETTINGS[name].field, Number):
        try:
            return parse((text or "{}").encode())
        except RequestRefused:
            return text
    return text or (None if SETTINGS[name].field.allow_none else "")


def _settings_page(
    call: Call, project: Project, failure: str = "", violations: Sequence[Violation] = ()
) -> Response:
    """Show the settings; after a failure, with a summary that names each wrong value."""
    groups: dict[str, list[dict[str, object]]] = {}
    heading = ""
    for name, label in LABELS.items():
        heading = SETTINGS[name].heading or heading
        field = _form_field(call, project, name, label, is_typed=bool(violations))
        groups.setdefault(heading, []).append(field)
    return show(
        call,
        "settings",
        project,
        "settings",
        BAD_REQUEST if violations else 200,
        groups=groups,
        methods=METHOD_NAMES,
        labels=LABELS,
        failure=failure,
        violations=dict(map(_field_problem, map(project.masking.mask_record, violations))),
    )


def _field_problem(violation: Violation) -> tuple[str, str]:
    """Return the field of a violation, which may be in one of its values, and the message."""
    field = re.split(r"[.\[]", violation.path)[0]
    return field, violation.message if field == violation.path else f"{violation.path} {violation.message}"


def _form_field(call: Call, project: Project, name: str, label: str, *, is_typed: bool) -> dict[str, object]:
    field, example, _ = SETTINGS[name]
    kind = _field_kind(field)
    value: Any = project.epoch.state.base_settings.document[name]
    if kind == OBJECT:
        value = json.dumps(value) if value else ""
    if is_typed and f"{name}-sent" in call.request.form:
        value = call.request.form.getlist(name) if kind == METHODS else call.request.form.get(name, "")
        if name not in ADDRESS_SETTINGS or url_problem(value) is not None:
            value = project.masking.mask_record(value)
    return {
        "name": name,
        "label": label,
        "about": field.metadata.get("description", "").replace("null means", "empty means"),
        "example": json.dumps(example) if kind == OBJECT else example,
        "kind": kind,
        "choices": getattr(field, "choices", ()),
        "value": "" if value is None else value,
    }


def _field_kind(field: Any) -> str:
    if isinstance(field, Items) and not isinstance(field.inner, Choice):
        return OBJECT
    kinds = {Flag: FLAG, Choice: CHOICE, Items: METHODS, Anything: OBJECT}
    return kinds.get(type(field), "text")
