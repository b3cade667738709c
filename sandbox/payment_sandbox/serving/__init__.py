"""The sandbox server: HTTP, and the threads that deliver webhooks and drive running clocks.

Other packages may import ``binding``, ``config``, ``courier``, ``front``, ``lazy_servers``, ``real_loop``,
``realtime``, ``server``, ``services``, ``sessions``, ``starting``, ``threads`` and ``tls``.
"""

from payment_sandbox.loading import late

late(__name__, "front", "keeping", "real_loop", "tls")  # 124 ms of a first test, with aiohttp
