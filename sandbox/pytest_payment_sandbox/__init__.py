"""The pytest plugin: fixtures, reports on failed tests, and rehearsals.

No other package imports it.
"""
