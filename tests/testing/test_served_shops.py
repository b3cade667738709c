"""A shop that is served in the test's process, and calls the sandbox without a socket."""

import threading
import time

from werkzeug.serving import make_server

from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import place, shop_that


def test_a_handler_behind_a_socket_does_not_wait_for_itself(payment_sandbox: PaymentSandbox) -> None:
    """Though its calls need no socket: of a shop that runs on another thread."""
    statuses: list[str] = []

    def read(order_id: str) -> None:
        url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
        statuses.append(payment_sandbox.session.get(url).json()["status"])

    shop = make_server("127.0.0.1", 0, shop_that(read), threaded=True)
    serving = threading.Thread(target=shop.serve_forever)
    serving.start()
    payment_sandbox.client.change_settings(webhook_url=f"http://127.0.0.1:{shop.server_port}/webhook")
    begun = time.perf_counter()
    payment_sandbox.act(place(payment_sandbox))
    assert time.perf_counter() - begun < 4
    assert statuses[-1] == "completed"
    assert [webhook["state"] for webhook in payment_sandbox.webhooks] == ["delivered"] * 2
    shop.shutdown()
    serving.join()
    shop.server_close()
