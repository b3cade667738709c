"""A sandbox that runs inside the test suite's process, without sockets.

Other packages may import ``access``, ``clients.in_process``, ``project_fixture``, ``reviews``, ``servers``,
``shops.browser``, ``shops.shop_requests``, ``shops.submitting``, ``shops.tracebacks`` and ``unittesting``.
"""
