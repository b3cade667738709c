"""Code snippets: commands that repeat requests, and bodies."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.control import journal_record


def curl(project: Project, entry: LoggedRequest | None) -> str | None:
    """Build the command to repeat a request; None without a request or a JSON object as its body."""
    body = journal_record(project, entry)["request"] if entry is not None else None
    if entry is None or not isinstance(body, dict | None):
        return None
    path = f"{entry.path}{'?' if entry.query else ''}{entry.query}"
    return command(project, path, body, entry.method)


def command(project: Project, path: str, body: Mapping[str, object] | None, method: str = "POST") -> str:
    """Build a shell command for a request to this server."""
    url = shlex.quote(f"{project.services.public_url}{path}")
    verb = "" if method == ("GET" if body is None else "POST") else f"-X {method} "
    start = f'curl {"-g " if "[" in url else ""}-u "$SANDBOX_API_KEY": {verb}{url}'
    if body is None:
        return start
    letters = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
    quoted = "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in letters)
    return f"{start} \\\n  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"


def format_body(body: Any) -> str:
    """Format a body for display: JSON with line breaks, other text unchanged."""
    if isinstance(body, str):
        try:
            body = json.loads(body) if body.startswith(("{", "[")) else body
        except (ValueError, RecursionError):
            return str(body)
    if body is None or isinstance(body, str):
        return body or ""
    return json.dumps(body, indent=2, ensure_ascii=False)
