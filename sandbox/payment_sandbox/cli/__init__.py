"""The command line.

Other packages may import ``annotations``, ``main``, ``options`` and ``remote.command_run``.
"""
