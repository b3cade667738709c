"""Downloads of an order: the sequence diagram and the evidence."""

from base64 import b64encode
from typing import Any, Final

from flask import Response

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.history import EVIDENCE_FORMAT, as_mapping, history
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.journal import to_plain_data
from payment_sandbox.projects.project import Project
from payment_sandbox.storage import snapshot
from payment_sandbox.web.answers.history import request_record
from payment_sandbox.web.answers.responses import streamed_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import ORDER_PATH, VIEW_FACTS, dashboard, enter
from payment_sandbox.web.dashboard.orders import due_events
from payment_sandbox.web.pictures import SequenceDiagram, draw_sequence, mermaid, svg
from payment_sandbox.web.routes import route

TEXT_FACTS: Final = {**VIEW_FACTS, "media_type": "text/plain"}


@route(dashboard, "GET", f"{ORDER_PATH}picture.svg", **{**VIEW_FACTS, "media_type": "image/svg+xml"})
def get_picture(call: Call, project_id: str, order_id: str) -> Response:
    """Download the sequence diagram of an order."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    picture = svg(_draw_order(project, order), title=f"Sequence diagram of order {order.id}", is_file=True)
    return _download(picture, "image/svg+xml", f"order-{order.id[:8]}.svg")


@route(dashboard, "GET", f"{ORDER_PATH}picture.mmd", **TEXT_FACTS)
def get_mermaid(call: Call, project_id: str, order_id: str) -> Response:
    """Download the sequence diagram of an order as Mermaid text."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    return _download(mermaid(_draw_order(project, order)), "text/plain", f"order-{order.id[:8]}.mmd")


@route(dashboard, "GET", f"{ORDER_PATH}evidence.json", **TEXT_FACTS)
def get_evidence(call: Call, project_id: str, order_id: str) -> Response:
    """Download the evidence of an order: the snapshot, timeline and journal of its project."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    epoch = project.epoch
    response = streamed_answer(
        {
            "format": EVIDENCE_FORMAT,
            "order_id": order.id,
            "project_id": project.project_id,
            "clock": {"mode": epoch.state.clock.mode, "now": timestamp(project.now())},
            "timeline": map(as_mapping, history(epoch)),
            "journal": (
                {**request_record(project, entry), "raw": b64encode(_truncate_binary(entry.request)).decode()}
                for entry in epoch.journal.entries()
            ),
            "actions": map(to_plain_data, epoch.journal.actions()),
            "choices": map(to_plain_data, epoch.journal.choices()),
            "snapshot": {
                name: _as_json_value(part) for name, part in snapshot.snapshot_parts(project).items()
            },
        }
    )
    name = f"order-{order.id[:8]}-evidence.json"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _draw_order(project: Project, order: Order) -> SequenceDiagram:
    return draw_sequence(history(project.epoch, order.id), due_events(project, order))


def _truncate_binary(body: bytes) -> bytes:
    """Truncate a body at its first invalid bytes, after which secrets could not be masked."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return body[: error.start + 4]
    return body


def _as_json_value(part: Any) -> Any:
    return part if isinstance(part, str | int | float | dict | list | None) else list(part)


def _download(text: str, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, mimetype=media_type, headers=headers)
