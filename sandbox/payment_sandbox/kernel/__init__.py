"""Building blocks without payment logic: timelines, periods, identifiers, masking.

Other packages may import any of its modules.
"""
