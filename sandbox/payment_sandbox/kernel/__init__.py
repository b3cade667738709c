"""Building blocks without payment logic: timelines, periods, identifiers, masking.

Other packages import any of its modules.
"""
