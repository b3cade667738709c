"""Rehearses tests: changes one thing at a time, and judges the shop's reaction.

Other packages may import ``books``, ``judging``, ``leaks``, ``report``, ``run``, ``showing``
and ``suites``.
"""
