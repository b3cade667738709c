"""The dashboard, with the history of a project and tools for it: its views are imported when first needed."""

from typing import Final

from flask import Blueprint

from payment_sandbox.web.routes import add_lazy_routes, add_lazy_surroundings

PROJECT: Final = "/dashboard/<project_id>"
VIEWS: Final = (
    ("GET", "/", "entrance.get_root"),
    ("GET", "/dashboard/", "entrance.get_dashboard"),
    ("POST", "/dashboard/", "entrance.post_project"),
    ("GET", "/dashboard/sign-in/", "entrance.get_sign_in"),
    ("POST", "/dashboard/sign-in/", "entrance.post_sign_in"),
    ("POST", "/dashboard/sign-out/", "entrance.post_sign_out"),
    ("GET", f"{PROJECT}/", "entrance.get_project_page"),
    ("GET", f"{PROJECT}/<path:path>", "entrance.get_unknown_page"),
    ("POST", f"{PROJECT}/clock/", "clock_bar.post_clock"),
    ("POST", f"{PROJECT}/clock/stop/", "clock_bar.post_clock_stop"),
    ("GET", f"{PROJECT}/events/", "clock_bar.get_dashboard_events"),
    ("GET", f"{PROJECT}/orders/", "front_page.get_orders_view"),
    ("POST", f"{PROJECT}/orders/", "front_page.post_test_order"),
    ("POST", f"{PROJECT}/orders/in-a-state/", "front_page.post_order_in_a_state"),
    ("GET", f"{PROJECT}/orders/<order_id>/", "order_page.get_order_view"),
    ("POST", f"{PROJECT}/orders/<order_id>/act/", "order_page.post_order_action"),
    ("GET", f"{PROJECT}/requests/", "requests.get_requests_view"),
    ("GET", f"{PROJECT}/requests/<entry_id>/", "requests.get_request_view"),
    ("POST", f"{PROJECT}/requests/test/", "requests.post_test_webhook"),
    ("POST", f"{PROJECT}/requests/deliver/", "requests.post_unsent_view"),
    ("POST", f"{PROJECT}/requests/<delivery_id>/redeliver/", "requests.post_redelivery_view"),
    ("GET", f"{PROJECT}/mistakes/", "front_page.get_mistakes_view"),
    ("GET", f"{PROJECT}/simulate/", "simulate.get_simulate_view"),
    ("POST", f"{PROJECT}/simulate/", "simulate.post_scenario"),
    ("POST", f"{PROJECT}/simulate/faults/", "simulate.post_switch"),
    ("POST", f"{PROJECT}/simulate/cards/", "simulate.post_card"),
    ("POST", f"{PROJECT}/simulate/codes/", "simulate.post_qr_request"),
    ("GET", f"{PROJECT}/settings/", "settings_page.get_settings_view"),
    ("POST", f"{PROJECT}/settings/", "settings_page.post_settings"),
    ("GET", f"{PROJECT}/state/", "settings_page.get_snapshot"),
    ("POST", f"{PROJECT}/state/", "settings_page.post_snapshot"),
    ("POST", f"{PROJECT}/reset/", "settings_page.post_project_reset"),
    ("GET", "/dashboard/assets/<name>", "frame.get_asset"),
)

dashboard = Blueprint("dashboard", __name__)
add_lazy_routes(dashboard, __name__, VIEWS)
add_lazy_surroundings(dashboard, f"{__name__}.frame")
