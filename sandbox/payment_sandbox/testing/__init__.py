"""For test suites: a sandbox in the process of the suite, without sockets.

Others import ``access``, ``books``, ``project``, ``rehearsed_test``, ``reviews``, ``servers``,
``shops.watching`` and ``unittesting``.
"""
