"""The pytest plugin: fixtures, reports of failed tests, rehearsals and coverage.

Others import nothing of it.
"""
