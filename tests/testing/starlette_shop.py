"""A shop with an ASGI application."""

from contextvars import ContextVar
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Seen = list[Any]
USER: Final[ContextVar[str]] = ContextVar("user", default="nobody")
"""A context variable that a test sets and its handler reads."""


def starlette(handle: Any) -> Starlette:
    """Return a shop whose handler gets the order's id; it answers 204 or the response of the handler."""

    async def webhook(request: Request) -> Response:
        answer = await handle((await request.json())["order_id"])
        return answer if isinstance(answer, Response) else Response(status_code=204)

    return Starlette(routes=[Route("/webhook", webhook, methods=["POST"])])
