"""Texts of others on a terminal."""


def printable(text: str) -> str:
    """The text with escapes for what would break the line or control a terminal."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )
