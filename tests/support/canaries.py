"""Secrets to put into every field, and their detection in any output."""

import html
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from marshmallow import Schema, fields

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


class Field(NamedTuple):
    """A field of a form by its path, such as ``customer.phone_numbers[]``."""

    path: str
    reads: fields.Field


def fields_of(form: Schema, path: str = "") -> Iterator[Field]:
    """Yield all fields of a form, at any level."""
    for name, each in form.load_fields.items():
        yield from _below(f"{path}{'.' if path else ''}{each.data_key or name}", each)


def _below(path: str, each: Any) -> Iterator[Field]:
    yield Field(path, each)
    if isinstance(each, fields.List):
        yield from _below(f"{path}[]", each.inner)
    elif isinstance(each, fields.Nested):
        yield from fields_of(each.schema, path)
    elif isinstance(each, fields.Dict):
        yield Field(f"{path}.any", each)


def with_field(body: Any, path: str, value: Any) -> Any:
    """Return a copy of a body with this value; missing objects on the path are created."""
    name, _, rest = path.partition(".")
    if not path:
        return value
    if name.endswith("[]"):
        items = body.get(name[:-2]) if isinstance(body, Mapping) else None
        first = items[0] if isinstance(items, list) and items else {}
        return {**_object(body), name[:-2]: [with_field(first, rest, value) if rest else value]}
    inner = _object(body).get(name, {})
    return {**_object(body), name: with_field(inner, rest, value) if rest else value}


def _object(body: Any) -> dict[str, Any]:
    return dict(body) if isinstance(body, Mapping) else {}


def leaves(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all texts in a document."""
    if isinstance(document, Mapping):
        for name, inner in document.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(document, list):
        for index, inner in enumerate(document):
            yield from leaves(inner, (*path, index))
    elif isinstance(document, str):
        yield path


def replaced(document: Any, path: tuple[str | int, ...], value: str) -> Any:
    """Return a copy of a document with another text at the path."""
    if not path:
        return value
    if isinstance(document, list):
        return [
            replaced(inner, path[1:], value) if index == path[0] else inner
            for index, inner in enumerate(document)
        ]
    return {
        name: replaced(inner, path[1:], value) if name == path[0] else inner
        for name, inner in document.items()
    }
