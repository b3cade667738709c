"""The pytest plugin: fixtures, reports on failed tests, rehearsals and coverage.

No other package imports it.
"""
