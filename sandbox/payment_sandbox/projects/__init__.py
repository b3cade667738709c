"""A project: one merchant integration under test, with its own state, clock and outbox.

Others import all of its modules.
"""
