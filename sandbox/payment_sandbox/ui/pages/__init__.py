"""The payment pages that customers see: a blueprint whose views are imported when they are first needed."""

from typing import Final

from flask import Blueprint

from payment_sandbox.web.routes import add_lazy_routes, add_lazy_surroundings

ATTEMPT: Final = "/pay/<project_id>/<order_id>/<transaction_id>"
VIEWS: Final = (
    ("GET", "/pay/<project_id>/<order_id>/", "page_routes.get_order_page"),
    ("POST", "/pay/<project_id>/<order_id>/", "page_routes.post_order_page"),
    ("GET", f"{ATTEMPT}/", "page_routes.get_payment"),
    ("POST", f"{ATTEMPT}/", "page_routes.post_payment"),
    ("GET", f"{ATTEMPT}/secure/", "page_routes.get_secure"),
    ("POST", f"{ATTEMPT}/secure/", "page_routes.post_secure"),
    ("GET", f"{ATTEMPT}/scan/", "page_routes.get_scan"),
    ("GET", f"{ATTEMPT}/code.svg", "page_routes.get_code"),
    ("GET", f"{ATTEMPT}/state/", "page_routes.get_state"),
    ("GET", f"{ATTEMPT}/left/", "page_routes.get_still_open"),
    ("GET", "/pay/<project_id>/<order_id>/result/", "page_routes.get_result"),
    ("GET", "/pay/<project_id>/<order_id>/back/", "page_routes.get_back"),
    ("GET", "/qr/<project_id>/<qr_id>.png", "bank_qr_page.get_qr_image"),
    ("GET", "/qr/<project_id>/<qr_id>/", "bank_qr_page.get_qr_page"),
    ("POST", "/qr/<project_id>/<qr_id>/", "bank_qr_page.post_qr_page"),
    ("GET", "/assets/<name>", "pages_hooks.get_asset"),
)

pages = Blueprint("pages", __name__)
add_lazy_routes(pages, __name__, VIEWS)
add_lazy_surroundings(pages, f"{__name__}.pages_hooks")
