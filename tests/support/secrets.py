"""Looking for what must not be shown."""

import re


def is_shown(secret: str, text: str) -> bool:
    """Whether a text has the secret, other than by chance in an identifier, a time or a longer number."""
    return re.search(rf"(?<![0-9a-f.-]){re.escape(secret)}(?![0-9a-f-])", text) is not None
