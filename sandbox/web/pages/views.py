"""The payers' routes."""

from flask import Blueprint, Response, g

from sandbox.operations.bank_qr import find_qr_request
from sandbox.orders.refusals import Unknown
from sandbox.projects.project import Project
from sandbox.web.addresses import qr_page_url
from sandbox.web.auth import registry
from sandbox.web.pages.qr_image import qr_png

pages = Blueprint("pages", __name__)


@pages.get("/qr/<project_id>/<qr_id>.png")
def get_qr_image(project_id: str, qr_id: str) -> Response:
    """The image of a QR request (QR-26)."""
    project = _project(project_id)
    request = find_qr_request(project, qr_id)
    return Response(qr_png(qr_page_url(project, request), request.size_pixels), mimetype="image/png")


def _project(project_id: str) -> Project:
    found = registry().find_by_id(project_id)
    if found is None:
        raise Unknown("there is nothing at this address")
    g.page_project = found
    return found
