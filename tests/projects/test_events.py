"""Events wake the threads that wait for them."""

from threading import Event, Thread

import pytest

from payment_sandbox.projects.events import Events


@pytest.mark.parametrize("is_ended", [False, True])
def test_an_event_or_the_end_wakes_a_waiting_thread(is_ended: bool) -> None:
    """A thread waits for the next event, of whatever order, or for the end."""
    log, results = Events(), list[bool]()
    thread = Thread(target=lambda: results.append(log.wait_after(0, 600)), daemon=True)
    thread.start()
    while not log.waiting_count:
        Event().wait(0.01)
    log.end() if is_ended else log.publish("status", order_id="another")
    thread.join(60)
    assert results == [not is_ended]
    assert log.wait_after(0, 0) is not is_ended, "an earlier event counts, too"
