"""The command line.

Other packages may import ``main``, ``noted``, ``options`` and ``remote.calling``.
"""
