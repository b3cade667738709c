"""Search for secrets in texts."""

import re


def is_shown(secret: str, text: str) -> bool:
    """Whether a text contains the secret, except as a part of an identifier, a time or a longer number."""
    return re.search(rf"(?<![0-9a-f.-]){re.escape(secret)}(?![0-9a-f-])", text) is not None
