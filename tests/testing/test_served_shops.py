"""A shop that a server in the test's process runs, and that calls the sandbox without a socket."""

import threading

from werkzeug.serving import make_server

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that


def test_a_handler_behind_a_socket_does_not_wait_for_itself(payment_sandbox: PaymentSandbox) -> None:
    """A handler on another thread may call the sandbox without a deadlock."""
    statuses: list[str] = []

    def read(order_id: str) -> None:
        url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
        statuses.append(payment_sandbox.session.get(url).json()["status"])

    shop = make_server("127.0.0.1", 0, shop_that(read), threaded=True)
    thread = threading.Thread(target=shop.serve_forever)
    thread.start()
    payment_sandbox.client.change_settings(webhook_url=f"http://127.0.0.1:{shop.server_port}/webhook")
    payment_sandbox.act(place(payment_sandbox))
    assert statuses[-1] == "completed"
    assert [webhook["state"] for webhook in payment_sandbox.webhooks] == ["delivered"] * 2
    shop.shutdown()
    thread.join()
    shop.server_close()
