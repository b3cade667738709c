"""An event loop in real time."""

import asyncio

from payment_sandbox.serving.realtime import HOST


class RealTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow real time, even while a test has frozen time."""

    time = staticmethod(HOST.monotonic)
