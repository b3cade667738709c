"""JSON responses of both APIs; an order is serialized once per version, with its ETag."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from flask import Response

from payment_sandbox.orders.order import Order
from payment_sandbox.projects.edit import IfMatch
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order import order_record
from payment_sandbox.web.bodies import line
from payment_sandbox.web.carried import exchange

JSON = "application/json"
CREATED = 201
ANSWERS_KEPT_MAX: Final = 1000


def json_answer(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(line(data), status=status, mimetype=JSON, headers=headers)


def list_answer(items: Sequence[Any], dropped: int = 0, **more: Any) -> Response:
    """A list; ``dropped`` counts the older entries dropped to make room."""
    return json_answer({"items": list(items), "dropped": dropped, **more})


def order_answer(project: Project, order: Order, status: int = 200) -> Response:
    """An order with its ETag."""
    here = exchange()
    here.order_id = order.id
    if status == CREATED and order.transactions:
        here.transaction_id = order.transactions[-1].id
    etag, body = order_bytes(project, order)
    return Response(body, status=status, mimetype=JSON, headers={"ETag": f'"{etag}"'})


def order_bytes(project: Project, order: Order) -> tuple[str, bytes]:
    """The ETag and the body of an order's current version; those built last are kept."""
    etag = project.epoch.etag(order)
    kept = project.epoch.answers
    found = kept.get(order.id)
    if found is not None and found[0] == etag:
        return found
    answer = kept[order.id] = etag, line(order_record(project, order)).encode()
    if len(kept) > ANSWERS_KEPT_MAX:
        with suppress(KeyError):  # another thread may have emptied it
            kept.popitem(last=False)
    return answer


def if_match() -> IfMatch | None:
    """The check of the request's If-Match header; None without one (SET-33)."""
    request = exchange().request
    return request.if_match.contains if "If-Match" in request.headers else None


def is_known(project: Project, order: Order) -> bool:
    """Whether the client already has this version (SET-34)."""
    request = exchange().request
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return False
    return request.if_none_match.contains_weak(project.epoch.etag(order))
