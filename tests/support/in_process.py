"""Orders and webhook handlers for a shop in this process."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask, request

from payment_sandbox.projects.project import Project
from payment_sandbox.testing.project_fixture import PaymentSandbox

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}
AT_MOST_SECONDS = 120
Handler = Callable[[str], Any]


def shop_that(handles: Handler) -> Flask:
    """Return a shop whose handler gets the order's id; it answers 200 unless the handler returns a status."""
    app = Flask("shop")
    app.testing = True

    @app.post("/webhook")
    def webhook() -> Any:
        return handles(request.get_json()["order_id"]) or ""

    return app


def place(sandbox: PaymentSandbox, **more: Any) -> str:
    """Create an order; return its id."""
    answer = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json={**ORDER, **more})
    assert answer.status_code == 201, answer.text
    order_id: str = answer.json()["id"]
    return order_id


def project_of(sandbox: PaymentSandbox) -> Project:
    """Return the project in this process."""
    project = sandbox.server.project_of(sandbox.api_key)
    assert project is not None
    return project


def in_time(work: Callable[[], object]) -> None:
    """Assert that the function returns within the time limit."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(AT_MOST_SECONDS)
    assert not thread.is_alive(), "the function did not return in time"


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an ``async`` test on its own thread, because the browser's tests leave a loop on the main one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(test())).result(AT_MOST_SECONDS)
