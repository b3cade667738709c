"""How the control API answers."""

from collections.abc import Sequence
from typing import Any

from flask import Response

from payment_sandbox.web.bodies import line


def json_answer(data: Any, status: int = 200) -> Response:
    """An object."""
    return Response(line(data), status=status, mimetype="application/json")


def list_answer(items: Sequence[Any], dropped: int = 0, **more: Any) -> Response:
    """A list; ``dropped`` counts what was let go to make room."""
    return json_answer({"items": list(items), "dropped": dropped, **more})
