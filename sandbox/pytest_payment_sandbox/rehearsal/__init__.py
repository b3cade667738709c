"""Rehearses tests: changes one thing at a time, and judges what the shop makes of it.

Others import ``books``, ``exploring``, ``judging``, ``leaks``, ``report``, ``run``, ``showing`` and
``suites``.
"""
