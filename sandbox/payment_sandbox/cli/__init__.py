"""The command line.

Other packages may import ``main``, ``options`` and ``remote.command_run``.
"""
