"""The version of the package."""

from typing import Final

__version__: Final = "1.0.0"
