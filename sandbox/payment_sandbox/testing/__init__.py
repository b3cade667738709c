"""For test suites: a sandbox in the process of the suite, without sockets.

Others import ``access``, ``books``, ``clients.in_process``, ``project``, ``rehearsed_test``, ``reviews``,
``servers``, ``shops.pressing``, ``shops.tracebacks`` and ``unittesting``.
"""
