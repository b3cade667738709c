"""Building blocks without payment logic: timelines, periods, identifiers, masking.

Others import all of its modules.
"""
