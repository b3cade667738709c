"""Where pages are: addresses for customers, which carry their project because customers have no key."""

from urllib.parse import urlsplit

from payment_sandbox.methods.base import PAYMENT_PAGE
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.project import Project
from payment_sandbox.web.carried import application


def _public_url() -> str:
    return application().public_url


def base_path() -> str:
    """The path of the public URL, below which a proxy serves the pages; mostly none."""
    return urlsplit(_public_url()).path


def _shown(project: Project, path: str) -> str:
    """With or without the scheme, as the project wants it (SET-23)."""
    address = f"{_public_url()}{path}"
    return address if project.settings.absolute_urls else address.partition("://")[2]


def order_url(project: Project, order: Order) -> str:
    """The hosted payment page of an order."""
    return _shown(project, f"/pay/{project.project_id}/{order.id}/")


def payment_url(project: Project, order: Order, transaction: Transaction) -> str:
    """The payment page of an attempt."""
    return _shown(project, _payment_path(project, order, transaction))


def _payment_path(project: Project, order: Order, transaction: Transaction) -> str:
    return f"/pay/{project.project_id}/{order.id}/{transaction.id}/"


def scan_url(project: Project, order: Order, transaction: Transaction) -> str:
    """What the code on the payment page of a wallet app says."""
    return f"{_public_url()}{_payment_path(project, order, transaction)}scan/"


def resolved(project: Project, order: Order, transaction: Transaction) -> dict[str, object]:
    """The revealed details, with the page's full address where a method asked for it."""
    page = f"{_public_url()}{_payment_path(project, order, transaction)}"
    return {key: page if value == PAYMENT_PAGE else value for key, value in transaction.details.items()}


def qr_image_url(project: Project, request: QrRequest) -> str:
    """The image of a QR request; with its scheme, for it stands in an ``img`` (A24)."""
    return f"{_public_url()}/qr/{project.project_id}/{request.id}.png"


def qr_page_url(project: Project, request: QrRequest) -> str:
    """What the code says: the page that scanners open."""
    return f"{_public_url()}/qr/{project.project_id}/{request.id}/"
