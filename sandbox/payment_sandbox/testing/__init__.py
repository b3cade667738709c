"""For test suites: the pytest plugin, its fixtures, and a sandbox without sockets.

Others import ``project``, ``reviews``, ``servers`` and ``unittesting``.
"""
