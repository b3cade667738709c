"""The command line.

Others import ``main``.
"""
