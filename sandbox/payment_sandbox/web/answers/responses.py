"""JSON responses of both APIs; an order is serialized once per version, with its ETag."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from flask import Response

from payment_sandbox.orders.order import Order
from payment_sandbox.projects.epoch import IfMatch
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order_tables import order_record
from payment_sandbox.web.bodies import json_line
from payment_sandbox.web.call import Call
from payment_sandbox.web.event_stream import EventStream

JSON = "application/json"
CREATED = 201
CHUNK_LENGTH: Final = 1 << 17
RESPONSES_CACHED_MAX: Final = 1000


def json_answer(data: Any, status: int = 200) -> Response:
    """Build a JSON response."""
    return Response(json_line(data), status=status, mimetype=JSON)


def streamed_answer(data: Mapping[str, Any]) -> Response:
    """Build a response with a JSON object that may be large: its lists are encoded item by item.

    Encoding a large object at once would block other requests and use much memory.
    """
    pieces = _join_chunks(encode_items(data))
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        return Response(first, mimetype=JSON)
    return Response(chain((first, second), pieces), mimetype=JSON)


def stream_answer(call: Call, stream: EventStream) -> Response:
    """Build a response with an event stream, which a server may take over."""
    chunks = iter(()) if call.connection.watch(stream) else stream.chunks()
    return Response(chunks, mimetype="text/event-stream", headers={"Cache-Control": "no-store"})


def encode_items(data: Mapping[str, Any]) -> Iterator[str]:
    """Encode a JSON object, its lists item by item."""
    separator = "{"
    for key, value in data.items():
        yield f"{separator}{json.dumps(key)}: "
        separator = ", "
        if isinstance(value, list | Iterator):
            yield "["
            for number, item in enumerate(value):
                yield f"{', ' if number else ''}{json.dumps(item)}"
            yield "]"
        else:
            yield json.dumps(value)
    yield "}\n"


def _join_chunks(pieces: Iterator[str]) -> Iterator[bytes]:
    """Join pieces into chunks of at least ``CHUNK_LENGTH`` characters."""
    chunk: list[str] = []
    length = 0
    for piece in pieces:
        chunk.append(piece)
        length += len(piece)
        if length >= CHUNK_LENGTH:
            yield "".join(chunk).encode()
            chunk.clear()
            length = 0
    yield "".join(chunk).encode()


def order_answer(call: Call, order: Order, status: int = 200) -> Response:
    """Build a response with an order and its ETag."""
    call.notes.order, call.notes.order_id = order, order.id
    if status == CREATED and order.transactions:
        call.notes.transaction_id = order.transactions[-1].id
    rendered = call.rendered if call.rendered is not None and call.rendered[0] is order else None
    etag, body = serialize_order(call.project, order, rendered[1] if rendered is not None else None)
    response = Response(body, status=status, mimetype=JSON)
    response.headers["ETag"] = f'"{etag}"'
    return response


def unchanged_answer(project: Project, order: Order) -> Response:
    """Build the response to a client that has the current version of an order (SET-34)."""
    response = Response(status=304)
    response.headers.remove("Content-Type")
    response.headers["ETag"] = f'"{project.epoch.etag(order)}"'
    return response


def serialize_order(project: Project, order: Order, body: str | None = None) -> tuple[str, bytes]:
    """Return the ETag and the body of an order's current version; the newest versions are cached."""
    etag = project.epoch.etag(order)
    cache = project.epoch.answer_cache
    cached = cache.get(order.id)
    if cached is not None and cached[0] == etag:
        return cached
    answer = cache[order.id] = etag, (body or json_line(order_record(project, order))).encode()
    if len(cache) > RESPONSES_CACHED_MAX:
        with suppress(KeyError):  # another thread may have emptied the cache
            cache.popitem(last=False)
    return answer


def if_match(call: Call) -> IfMatch | None:
    """Return the check that the request's If-Match header demands; None without a value (SET-33, A66)."""
    request = call.request
    return request.if_match.contains if request.environ.get("HTTP_IF_MATCH", "").strip() else None


def refuse_changed_order(call: Call) -> None:
    """Refuse a call whose If-Match is out of date, before its body is read (A66).

    Raises:
        Unknown: the project has no such order.
        OrderChanged: the order's ETag does not match.
    """
    demanded = if_match(call) if call.facts is not None and call.facts.if_match else None
    if demanded is not None:
        call.project.epoch.check_etag(call.values["order_id"], demanded)


def client_has_version(call: Call, order: Order) -> bool:
    """Whether the client already has this version (SET-34)."""
    request = call.request
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return False
    return request.if_none_match.contains_weak(call.project.epoch.etag(order))
