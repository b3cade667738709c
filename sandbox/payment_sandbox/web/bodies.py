"""Strict parsing of request bodies: ambiguous JSON is refused."""

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from math import isinf
from typing import Any, Final

from werkzeug.http import parse_options_header
from werkzeug.wrappers import Request
from werkzeug.wsgi import get_content_length

from payment_sandbox.kernel.patterns import FORBIDDEN_CHARACTER, Pattern
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused

BODY_BYTES_MAX: Final = 1 << 20  # SET-09
STATE_BYTES_MAX: Final = 16 << 20
NESTING_MAX: Final = 100
VALUES_MAX: Final = 20_000
IDENTITY_CODING: Final = "identity"
EMPTY_VALUES: Final[tuple[Any, ...]] = ([], None, "")  # PHP encodes an empty array as []
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")


def json_body(call: Call, *, empty_is: Any = None) -> Any:
    """Read the request's body as JSON; an empty body becomes ``empty_is``, if set, like an empty value (A05).

    Raises:
        RequestRefused: too large (413), wrong Content-Type (415), empty or malformed (400).
    """
    if call.body is None:
        body = raw_body(call)
        if empty_is is not None and (not body or body.isspace()):
            return empty_is
        refuse_other_types(call, body)
        call.body = parse(body)
    return empty_is if empty_is is not None and call.body in EMPTY_VALUES else call.body


def refuse_other_types(call: Call, body: bytes) -> None:
    """Refuse an empty body, and a body that is not declared as JSON.

    Raises:
        RequestRefused: wrong Content-Type (415), empty (400).
    """
    if not body or body.isspace():
        raise RequestRefused(400, "the body is empty, expected a JSON object")
    sent = media_type(call.request.environ.get("CONTENT_TYPE", ""))
    if sent != "application/json":
        raise RequestRefused(
            415, f"Content-Type must be application/json; this request sends {sent or 'nothing'}"
        )


def document_body(call: Call) -> Document:
    """Read the body as a document, in JSON or YAML.

    Raises:
        RequestRefused: see ``json_body``.
        Invalid: not valid YAML; names the line and column.
    """
    if media_type(call.request.environ.get("CONTENT_TYPE", "")) not in YAML_TYPES:
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
    if body_length(call.request) > bytes_max:
        raise RequestRefused(413, f"the body is over {bytes_max} bytes ({bytes_max >> 20} MiB)")
    coding = call.request.environ.get("HTTP_CONTENT_ENCODING", IDENTITY_CODING)
    if coding.strip().lower() not in ("", IDENTITY_CODING):
        raise RequestRefused(
            415, f"the body is encoded with {coding[:40]!r}; send it without Content-Encoding"
        )
    return sent_body(call.request)


def body_length(request: Request) -> int:
    """Return the length of the body as sent; the body of a longer one than allowed is not read."""
    return get_content_length(request.environ) or 0


def sent_body(request: Request) -> bytes:
    """Return the body, which the sandbox's own servers have read whole."""
    source = request.environ["wsgi.input"]
    return source.getvalue() if type(source) is BytesIO else request.get_data()


@lru_cache(maxsize=256)
def media_type(header: str) -> str:
    """Return the media type in a Content-Type header, in lower case and without parameters."""
    return parse_options_header(header)[0].lower()


def parse(body: bytes, values_max: int = VALUES_MAX) -> Any:
    """Parse JSON strictly.

    Raises:
        RequestRefused: too many values, bad encoding or syntax, duplicate keys, NaN, deep nesting, or NUL.
    """
    # Counting takes much less time than parsing.
    if count_separators(body) >= values_max and count_separators(_STRING.sub(b"", body)) >= values_max:
        raise RequestRefused(400, f"the body has more than {values_max:,} values")
    try:
        text = body.removeprefix(BOM_UTF8).decode("utf-8")
        data = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise RequestRefused(400, f"the body is not UTF-8: byte {error.start} is invalid") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise RequestRefused(400, f"the body is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise RequestRefused(400, f"the body is nested deeper than {NESTING_MAX} levels") from None
    except ValueError:  # the body has a number with more digits than Python converts
        raise RequestRefused(400, "the body contains a number with too many digits") from None
    if text.count("[") + text.count("{") > NESTING_MAX and depth(data) > NESTING_MAX:
        raise RequestRefused(400, f"the body is nested deeper than {NESTING_MAX} levels")
    if "\\u" in text:
        _refuse_forbidden_characters(data)
    return data


def count_separators(text: bytes) -> int:
    """Count the commas and opening brackets: at least the number of values, less one."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


_STRING: Final = Pattern(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL
)  # an unterminated string extends to the end


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members; refuse a repeated key."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        duplicate = next(key for key, number in counts.items() if number > 1)
        raise RequestRefused(400, f"the body contains the key {duplicate[:100]!r} twice in one object")
    return mapping


def _refuse_constant(name: str) -> Any:
    raise RequestRefused(400, f"the body contains {name}, which is not valid JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise RequestRefused(400, f"the body contains a number that is too large: {text[:40]}")
    return number


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=build_object, parse_constant=_refuse_constant, parse_float=_parse_float
)


def depth(data: Any) -> int:
    """Return the number of nested levels in parsed JSON."""
    deepest, level = 0, [data]
    while level:
        deepest += 1
        inner: list[Any] = []
        for item in level:
            children = item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ()
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
