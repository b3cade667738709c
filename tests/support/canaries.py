"""Secrets to put into every field, and their detection in any output."""

import html
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

NUMBER: Final = "4539578763621486"  # a card number that the sandbox does not know
CODE: Final = "917391739173"  # too long to occur in an identifier by chance
GROUPS: Final = ("4539", "5787", "6362", "1486")
JOINTS: Final = ("", " ", "-", "\u00a0")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ESCAPES: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")


def canaries(key: str) -> dict[str, str]:
    """Return texts for a field: all secrets together, and each one alone, because fields have patterns."""
    spelled = [joint.join(GROUPS) for joint in JOINTS]
    everything = "; ".join([*spelled, f"cvc={CODE}", f'{{"cvc": "{CODE}"}}', f"key {key}"])
    return {"everything": everything, "a number": NUMBER, "a code": f"cvc: {CODE}", "a key": key}


def shown(text: str, key: str) -> list[str]:
    """Return the secrets that a text contains, however their parts are separated or escaped."""
    secrets = {"number": NUMBER, "code": CODE, "key": key}
    spelled = {
        name: re.compile(r"[\W_]*".join(re.findall(r"[^\W_]", each))) for name, each in secrets.items()
    }
    return sorted({name for plain in _plain(text) for name, each in spelled.items() if each.search(plain)})


def _plain(text: str) -> Iterator[str]:
    """Yield the text, the text without escapes, and its decoded base64 parts."""
    plain = re.sub(r"\\+[nrtfbv]", " ", _ESCAPES.sub(lambda match: chr(int(match[1], 16)), text))
    plain = unicodedata.normalize("NFKC", html.unescape(unquote(plain)))
    yield text
    yield plain
    for match in _BASE64.finditer(text):
        encoded = match[0].rstrip("=")
        yield b64decode(encoded[: len(encoded) // 4 * 4]).decode(errors="replace")
