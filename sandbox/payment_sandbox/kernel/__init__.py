"""Code that knows nothing about payments: timelines, periods and identifiers.

Others import all of its modules.
"""
