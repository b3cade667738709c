"""A project: one merchant integration under test, with its own state, clock and outbox.

Other packages may import any of its modules.
"""
