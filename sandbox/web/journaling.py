"""Writing the requests of the merchant API into their project's journal."""

from flask import Response, g, request

from sandbox.projects.journal import JournalEntry, masked
from sandbox.web.auth import project


def record(response: Response) -> Response:
    """Keep a request with its answer, once it is known whose it is."""
    if "project" in g:
        order_id = g.get("order_id") or (request.view_args or {}).get("order_id")
        project().journal.add(
            JournalEntry(
                at=project().now(),
                method=request.method,
                path=request.path,
                query=request.query_string.decode(errors="replace"),
                status=response.status_code,
                request=masked(request.get_data()) if "body" in g else b"",
                response=response.get_data(),
                ignored=g.get("ignored", ()),
                rule=g.get("rule"),
                order_id=order_id,
            )
        )
    return response
