"""The command line.

Others import ``main``, ``noted``, ``options`` and ``remote.calling``.
"""
