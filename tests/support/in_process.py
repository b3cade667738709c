"""Helpers for a shop in this process: orders and webhook handlers."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask, request

from payment_sandbox.testing.project import PaymentSandbox

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}
AT_MOST_SECONDS = 20
Handler = Callable[[str], Any]


def shop_that(handles: Handler) -> Flask:
    """A shop whose handler gets the order's id; it answers 200 unless the handler returns another status."""
    app = Flask("shop")
    app.testing = True

    @app.post("/webhook")
    def webhook() -> Any:
        return handles(request.get_json()["order_id"]) or ""

    return app


def place(sandbox: PaymentSandbox) -> str:
    """A new order."""
    answer = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=ORDER)
    assert answer.status_code == 201, answer.text
    order_id: str = answer.json()["id"]
    return order_id


def in_time(work: Callable[[], object]) -> None:
    """Expect the block to end before the time limit."""
    done = threading.Thread(target=work, daemon=True)
    done.start()
    done.join(AT_MOST_SECONDS)
    assert not done.is_alive(), "it hangs"


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an ``async`` test on a thread of its own: the browser's tests leave a loop running on the main one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(test())).result(AT_MOST_SECONDS)
