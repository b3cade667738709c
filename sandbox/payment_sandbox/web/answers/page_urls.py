"""URLs of pages; those of customers' pages contain the project id, because customers have no API key."""

from typing import Final
from urllib.parse import urlsplit

from payment_sandbox.methods.common import PAYMENT_PAGE
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.project import Project


def base_path(project: Project) -> str:
    """Return the path prefix of the public URL, for a server behind a proxy; usually empty."""
    return urlsplit(project.services.public_url).path


def _with_configured_scheme(project: Project, path: str) -> str:
    """Build a URL with or without a scheme, as set in the project (SET-23)."""
    address = f"{project.services.public_url}{path}"
    return address if project.epoch.state.settings.absolute_urls else address.partition("://")[2]


def order_url(project: Project, order: Order) -> str:
    """Build the URL of an order's hosted payment page."""
    return _with_configured_scheme(project, f"/pay/{project.project_id}/{order.id}/")


def payment_url(project: Project, order: Order, transaction: Transaction) -> str:
    """Build the URL of an attempt's payment page."""
    return _with_configured_scheme(project, f"/pay/{project.project_id}/{order.id}/{transaction.id}/")


def _payment_path(project: Project, order: Order, transaction: Transaction) -> str:
    return f"/pay/{project.project_id}/{order.id}/{transaction.id}/"


def scan_url(project: Project, order: Order, transaction: Transaction) -> str:
    """Build the URL in the QR code for wallet apps."""
    return f"{project.services.public_url}{_payment_path(project, order, transaction)}scan/"


def resolve_details(project: Project, order: Order, transaction: Transaction) -> dict[str, object]:
    """Return the details of a payment method, with the full URL of any page in them."""
    if not transaction.details:
        return {}
    page = f"{project.services.public_url}{_payment_path(project, order, transaction)}"
    return {key: page if value == PAYMENT_PAGE else value for key, value in transaction.details.items()}


def qr_image_url(project: Project, request: QrRequest) -> str:
    """Build the URL of a QR request's image, always with a scheme, for use in an ``img`` tag (A24)."""
    return f"{project.services.public_url}/qr/{project.project_id}/{request.id}.png"


def qr_page_url(project: Project, request: QrRequest) -> str:
    """Build the URL in a QR code, which leads scanners to its page."""
    return f"{project.services.public_url}/qr/{project.project_id}/{request.id}/"


def qr_page_path(project: Project, request: QrRequest) -> str:
    """Build the path of a QR request's page, for links on the sandbox's own pages."""
    return f"{base_path(project)}/qr/{project.project_id}/{request.id}/"


def order_page_path(project: Project, order: Order) -> str | None:
    """Build the path of the page where a customer can pay an order now; None if there is none."""
    attempt = order.last_transaction
    if attempt is not None and attempt.has_page and not (order.is_hosted and not attempt.is_open):
        return f"{base_path(project)}{_payment_path(project, order, attempt)}"
    return f"{base_path(project)}/pay/{project.project_id}/{order.id}/" if order.is_hosted else None


def dashboard_path(project: Project, order: Order | None = None) -> str:
    """Build the path of a project's dashboard, or of an order in it."""
    suffix = f"{order.refund_of_order_id or order.id}/" if order is not None else ""
    return f"{base_path(project)}/dashboard/{project.project_id}/orders/{suffix}"


EVENTS_PATH: Final = "/control/events/"
DASHBOARD_PATH: Final = "/dashboard/"


def is_same_path(one: str, other: str) -> bool:
    """Whether two paths are equal up to a trailing slash (SET-01)."""
    return one.rstrip("/") == other.rstrip("/")


def is_stream(path: str) -> bool:
    """Whether a path serves an event stream, which never ends."""
    return is_same_path(path, EVENTS_PATH) or (
        path.startswith(DASHBOARD_PATH) and path.rstrip("/").endswith("/events")
    )
