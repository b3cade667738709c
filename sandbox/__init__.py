"""A sandbox of a payment-orders API, for the tests of merchants."""

from typing import Final

__version__: Final = "0.1.0"
