"""The command line.

Other packages may import ``main`` and ``options``.
"""
