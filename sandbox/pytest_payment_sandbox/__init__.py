"""The pytest plugin: fixtures, reports of failed tests, rehearsals and coverage.

No other package imports it.
"""
