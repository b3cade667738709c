"""Strict parsing of request bodies: ambiguous JSON is refused."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from math import isinf
from typing import Any, Final

from payment_sandbox.kernel.patterns import FORBIDDEN_CHARACTER, Pattern
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused

BODY_BYTES_MAX: Final = 1 << 20  # SET-09
STATE_BYTES_MAX: Final = 256 << 20
NESTING_MAX: Final = 100
VALUES_MAX: Final = 20_000
IDENTITY_CODING: Final = "identity"
EMPTY_VALUES: Final[tuple[Any, ...]] = ([], None, "")  # PHP encodes an empty array as []
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")


def json_body(call: Call, *, empty_is: Any = None, is_snapshot: bool = False) -> Any:
    """Read the request's body as JSON; an empty body becomes ``empty_is``, if set, like an empty value (A05).

    A snapshot may be larger than other bodies, and hold any number of values.

    Raises:
        RequestRefused: too large (413), wrong Content-Type (415), empty or malformed (400).
    """
    if call.body is None:
        body = raw_body(call, STATE_BYTES_MAX if is_snapshot else BODY_BYTES_MAX)
        if not body or body.isspace():
            if empty_is is not None:
                return empty_is
            raise RequestRefused(400, "the body is empty, expected a JSON object")
        if call.request.mimetype != "application/json":
            sent = call.request.mimetype or "nothing"
            raise RequestRefused(415, f"Content-Type must be application/json; this request sends {sent}")
        call.body = parse(body, None if is_snapshot else VALUES_MAX)
    return empty_is if empty_is is not None and call.body in EMPTY_VALUES else call.body


def document_body(call: Call) -> Document:
    """Read the body as a document, in JSON or YAML.

    Raises:
        RequestRefused: see ``json_body``.
        Invalid: not valid YAML; names the line and column.
    """
    if call.request.mimetype not in YAML_TYPES:
        return Document(json_body(call), has_positions=False)
    try:
        return parse_yaml(raw_body(call).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestRefused(400, f"the body is not UTF-8: byte {error.start} is invalid") from None


def json_line(data: Any) -> str:
    """Serialize data as JSON with a final newline, for terminals."""
    return json.dumps(data) + "\n"


def json_object(call: Call) -> Mapping[str, Any]:
    """Read the request's body without validation; return an empty mapping unless it is a JSON object."""
    body = json_body(call, empty_is={})
    return body if isinstance(body, Mapping) else {}


def raw_body(call: Call, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Read the request's body, unparsed.

    Raises:
        RequestRefused: 413 if the body is larger than ``bytes_max``, 415 if it is compressed.
    """
    request = call.request
    if (request.content_length or 0) > bytes_max:
        raise RequestRefused(413, f"the body is over {bytes_max} bytes ({bytes_max >> 20} MiB)")
    coding = request.environ.get("HTTP_CONTENT_ENCODING", IDENTITY_CODING)
    if coding.strip().lower() not in ("", IDENTITY_CODING):
        raise RequestRefused(
            415, f"the body is encoded with {coding[:40]!r}; send it without Content-Encoding"
        )
    return request.get_data()


def parse(body: bytes, values_max: int | None = VALUES_MAX) -> Any:
    """Parse JSON strictly; ``values_max`` None allows any number of values.

    Raises:
        RequestRefused: too many values, bad encoding or syntax, duplicate keys, NaN, deep nesting, or NUL.
    """
    # Counting takes much less time than parsing.
    if values_max is not None and _count_values(body, values_max) > values_max:
        raise RequestRefused(400, f"the body has more than {values_max:,} values")
    try:
        data = _DECODER.decode(body.removeprefix(BOM_UTF8).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestRefused(400, f"the body is not UTF-8: byte {error.start} is invalid") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise RequestRefused(400, f"the body is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise RequestRefused(400, f"the body is nested deeper than {NESTING_MAX} levels") from None
    except ValueError:  # the body has a number with more digits than Python converts
        raise RequestRefused(400, "the body contains a number with too many digits") from None
    if is_nested_deeper(body, data, NESTING_MAX):
        raise RequestRefused(400, f"the body is nested deeper than {NESTING_MAX} levels")
    if b"\\u" in body:
        _refuse_forbidden_characters(data)
    return data


def _count_values(body: bytes, limit: int) -> int:
    """Return an upper bound on the number of values; the bound is exact above ``limit``."""
    count = _count_separators(body)
    return count if count <= limit else _count_separators(_STRING.sub(b"", body))


def _count_separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{") + 1


_STRING: Final = Pattern(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL
)  # an unterminated string extends to the end


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise RequestRefused(
            400, f"the body contains the key {_first_duplicate(pairs)[:100]!r} twice in one object"
        )
    return mapping


def _first_duplicate(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("there is a duplicate")


def _refuse_constant(name: str) -> Any:
    raise RequestRefused(400, f"the body contains {name}, which is not valid JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise RequestRefused(400, f"the body contains a number that is too large: {text[:40]}")
    return number


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_build_object, parse_constant=_refuse_constant, parse_float=_parse_float
)


def is_nested_deeper(body: bytes, data: Any, levels_max: int) -> bool:
    """Whether the JSON in a body, parsed as ``data``, has more than ``levels_max`` levels."""
    return body.count(b"[") + body.count(b"{") > levels_max and _depth(data) > levels_max


def _depth(data: Any) -> int:
    deepest, level = 0, [data]
    while level:
        deepest += 1
        inner: list[Any] = []
        for item in level:
            children = item.values() if isinstance(item, Mapping) else item
            inner += [child for child in children if isinstance(child, Mapping | list)]
        level = inner
    return deepest


def _refuse_forbidden_characters(data: Any) -> None:
    """Refuse lone surrogates and NUL, which can only come from escapes."""
    if isinstance(data, str):
        if FORBIDDEN_CHARACTER.search(data):
            raise RequestRefused(400, "the body contains a lone surrogate or a NUL character")
    elif isinstance(data, Mapping):
        for key, value in data.items():
            _refuse_forbidden_characters(key)
            _refuse_forbidden_characters(value)
    elif isinstance(data, list):
        for item in data:
            _refuse_forbidden_characters(item)
