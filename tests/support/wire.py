"""Detection of broken connections by the installed libraries."""

from importlib.metadata import version
from typing import Final

NOTICES_SHORT_BODIES: Final = not version("urllib3").startswith("1.")
"""Whether a body that is shorter than its length raises; urllib3 1 accepts it."""
