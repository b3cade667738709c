"""Refusals in the words of the merchant's real account, where the setting ``errors`` has them."""

from collections.abc import Sequence

from flask import Response, json

from payment_sandbox.projects.own_errors import own_error
from payment_sandbox.projects.project import Project


def reword(response: Response, project: Project | None, rules: Sequence[str]) -> None:
    """Replace the status, type and sentence of a refusal by those that are set for its type or its rules."""
    errors = project.settings.errors if project is not None else {}
    if not errors or response.is_streamed:
        return
    body = response.get_json(silent=True)
    if not isinstance(body, dict) or "error" not in body:
        return
    error = body["error"]
    found = own_error(errors, error["type"], rules)
    if not found:
        return
    error.update(found)
    response.status_code = error["status"]
    response.set_data(f"{json.dumps(body)}\n")
