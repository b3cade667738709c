"""A sandbox that runs inside the test suite's process, without sockets.

Other packages may import ``access``, ``books``, ``clients.in_process``, ``project_fixture``,
``rehearsed_test``, ``reviews``, ``servers``, ``shops.browser``, ``shops.filling``, ``shops.submitting``,
``shops.tracebacks`` and ``unittesting``.
"""
