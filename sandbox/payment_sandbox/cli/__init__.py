"""The command line.

Other packages import ``main``, ``noted``, ``options`` and ``remote.calling``.
"""
