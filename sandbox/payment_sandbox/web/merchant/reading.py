"""Reading merchant requests: unknown keys are ignored and named, or refused by project setting."""

from collections.abc import Container, Sequence
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from flask import Response

from payment_sandbox.forms import Form, load, unknown_keys
from payment_sandbox.forms.quick import quickly
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Invalid, Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.carried import exchange
from payment_sandbox.web.errors import masking

IGNORED: Final = "Sandbox-Ignored-Fields"
WARNINGS: Final = "Sandbox-Warnings"
HEADER_LENGTH_MAX: Final = 4000


def read_partly(
    project: Project, form: Form, *, empty_is: Any = None, also_known: Container[str] = ()
) -> tuple[dict[str, Any], list[Violation]]:
    """Read the body; return its valid fields and all violations.

    ``also_known`` are keys that the form does not read but that are allowed.
    """
    body = json_body(empty_is=empty_is)
    valid = quickly(form, body)
    if valid is not None:
        return valid, []
    data, violations = load(form, body)
    others = (found for found in unknown_keys(form, body) if found.path not in also_known)
    unknown = list(islice(others, VIOLATIONS_MAX))
    if project.settings.unknown_fields == "reject":
        violations += [found.violation() for found in unknown]
    else:
        note_ignored(*(found.path for found in unknown))
        if unknown:
            exchange().unknown = tuple((found.path, found.nearest()) for found in unknown)
    return data, violations


def read_body(project: Project, form: Form, *, empty_is: Any = None) -> dict[str, Any]:
    """Read the body, and refuse it if any field is invalid.

    Raises:
        Invalid: lists all violations.
    """
    data, violations = read_partly(project, form, empty_is=empty_is)
    if violations:
        raise Invalid(violations)
    return data


def note_ignored(*paths: str) -> None:
    """Record ignored keys for the header and the journal (SET-12)."""
    if paths:
        exchange().ignored = (*exchange().ignored, *paths)


def warn(sentence: str) -> None:
    """Record a warning for the header (SET-31)."""
    exchange().warnings = (*exchange().warnings, sentence)


def name_ignored(response: Response, ignored: Sequence[str], warnings: Sequence[str]) -> None:
    """Add the headers that name ignored keys and warnings."""
    if ignored:
        response.headers[IGNORED] = _header(quote(path, safe="[]._-~/") for path in masking().record(ignored))
    if warnings:
        response.headers[WARNINGS] = _header(masking().record(warnings))


def _header(items: Any) -> str:
    shown, length = [], 0
    for item in items:
        length += len(item) + 2
        if length > HEADER_LENGTH_MAX:
            shown.append("...")
            break
        shown.append(item)
    return ", ".join(shown)
