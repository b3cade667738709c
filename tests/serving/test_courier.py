"""One POST of a webhook."""

from collections.abc import Callable
from itertools import chain, repeat

import pytest

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, ReceiverAnswer, Undelivered, WebhookRequest
from payment_sandbox.serving import courier
from payment_sandbox.serving.courier import Posting


def test_the_sockets_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's error after the timeout is reported as a missing response."""

    def time_out(request: WebhookRequest, on_answer: Callable[[int], None], seconds: float) -> ReceiverAnswer:
        raise OSError("read timeout=5.0")

    readings = chain([0.0, TIMEOUT_SECONDS], repeat(0.0))
    monkeypatch.setattr(courier, "monotonic_seconds", readings.__next__)
    delivery = Posting(WebhookRequest("http://127.0.0.1/", {}, b""), time_out, TIMEOUT_SECONDS)
    delivery.run()
    assert delivery.wait().error == "no answer within 5 seconds"


def test_port_0_is_not_port_80() -> None:
    """Nothing listens on port 0, and no other port takes its place."""
    with pytest.raises(Undelivered, match="port 0"):
        courier.post_over_network(
            WebhookRequest("http://127.0.0.1:0/", {}, b"{}"), lambda status: None, TIMEOUT_SECONDS
        )
