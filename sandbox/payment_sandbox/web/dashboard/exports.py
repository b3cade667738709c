"""Downloads of an order: the sequence diagram and the evidence."""

from base64 import b64encode
from typing import Any, Final

from flask import Response

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.history import EVIDENCE_FORMAT, as_mapping, history
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.journal import as_plain
from payment_sandbox.projects.project import Project
from payment_sandbox.storage import snapshot
from payment_sandbox.web.answers.history import request_record
from payment_sandbox.web.answers.responses import streamed_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import ORDER, VIEW, dashboard, enter
from payment_sandbox.web.dashboard.orders import due_events
from payment_sandbox.web.pictures import Sequence, mermaid, sequence, svg
from payment_sandbox.web.routes import route

TEXT: Final = {**VIEW, "media_type": "text/plain"}


@route(dashboard, "GET", f"{ORDER}picture.svg", **{**VIEW, "media_type": "image/svg+xml"})
def get_picture(call: Call, project_id: str, order_id: str) -> Response:
    """Download the sequence diagram of an order."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    drawn = svg(_picture(project, order), title=f"What happened to order {order.id}", is_file=True)
    return _file(drawn, "image/svg+xml", f"order-{order.id[:8]}.svg")


@route(dashboard, "GET", f"{ORDER}picture.mmd", **TEXT)
def get_mermaid(call: Call, project_id: str, order_id: str) -> Response:
    """Download the sequence diagram of an order as Mermaid text."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    return _file(mermaid(_picture(project, order)), "text/plain", f"order-{order.id[:8]}.mmd")


@route(dashboard, "GET", f"{ORDER}evidence.json", **TEXT)
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
            "actions": map(as_plain, epoch.journal.actions()),
            "choices": map(as_plain, epoch.journal.choices()),
            "snapshot": {name: _plain(part) for name, part in snapshot.snapshot_parts(project).items()},
        }
    )
    name = f"order-{order.id[:8]}-evidence.json"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _picture(project: Project, order: Order) -> Sequence:
    return sequence(history(project.epoch, order.id), due_events(project, order))


def _truncate_binary(body: bytes) -> bytes:
    """Truncate a body at its first invalid bytes, after which secrets could not be masked."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return body[: error.start + 4]
    return body


def _plain(part: Any) -> Any:
    return part if isinstance(part, str | int | float | dict | list | None) else list(part)


def _file(text: str, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, mimetype=media_type, headers=headers)
