"""Rehearses tests: changes one thing at a time, and judges the shop's reaction.

Other packages may import ``judging``, ``leaks``, ``reconciliation``, ``report``, ``run``,
``showing`` and ``suites``.
"""
