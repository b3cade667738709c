"""How a command fails: in one line, or one per mistake, with exit code 2."""

import sys
from typing import NoReturn


def fail(*sentences: str) -> NoReturn:
    """Print what is wrong, and exit."""
    for sentence in sentences:
        print(f"payment-sandbox: {sentence}", file=sys.stderr)
    sys.exit(2)
