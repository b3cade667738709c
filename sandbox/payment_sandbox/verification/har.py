"""Reads recorded traffic from HAR files, as browsers and proxies write them."""

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from requests.structures import CaseInsensitiveDict

from payment_sandbox.verification.answer import Answer, parsed
from payment_sandbox.verification.names import Names, renamed, renamed_path, reverse

API: Final = "/v1/"


class HarRefused(ValueError):
    """The file is no HAR file, or has no call of this API."""


class Recorded(NamedTuple):
    """A recorded call with its answer, and when it was made."""

    at: datetime
    answer: Answer


def read_har(file: Path, names: Names | None = None) -> list[Recorded]:
    """The calls of this API in a file, oldest first; ``names`` are the account's names of methods.

    Raises:
        HarRefused: it is no HAR file, or has none; with the place in it.
        OSError: it cannot be read.
    """
    try:
        document = json.loads(file.read_bytes())
    except UnicodeDecodeError as error:
        raise HarRefused(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise HarRefused(
            f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}"
        ) from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise HarRefused("it has no log.entries, so it is no HAR file")
    ours = reverse(names or {})
    found = sorted((_renamed(call, ours) for call in _calls(entries)), key=lambda recorded: recorded.at)
    if not found:
        raise HarRefused(f"none of its {len(entries)} entries is a call of a path that begins with {API}")
    return found


def _renamed(recorded: Recorded, names: Names) -> Recorded:
    answer = recorded.answer
    return recorded._replace(
        answer=answer._replace(
            path=renamed_path(answer.path, names),
            sent=renamed(answer.sent, names),
            data=renamed(answer.data, names),
        )
    )


def _calls(entries: list[Any]) -> Iterator[Recorded]:
    for index, entry in enumerate(entries):
        try:
            recorded = _call(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HarRefused(f"log.entries[{index}] is malformed: {type(error).__name__} {error}") from None
        if recorded is not None:
            yield recorded


def _call(entry: Mapping[str, Any]) -> Recorded | None:
    request, response = entry["request"], entry["response"]
    parts = urlsplit(request["url"])
    begin = parts.path.find(API)
    if begin < 0 or not response["status"]:  # of 0 if no answer came
        return None
    path = parts.path[begin:] + (f"?{parts.query}" if parts.query else "")
    content = _content(response.get("content", {}))
    headers = CaseInsensitiveDict((each["name"], each["value"]) for each in response.get("headers", ()))
    sent = parsed((request.get("postData") or {}).get("text", "").encode())
    at = datetime.fromisoformat(entry["startedDateTime"])
    if at.tzinfo is None:
        raise ValueError(f"startedDateTime {entry['startedDateTime']!r} has no offset")
    status = int(response["status"])
    return Recorded(at, Answer(request["method"], path, sent, status, headers, parsed(content), content))


def _content(content: Mapping[str, Any]) -> bytes:
    text = content.get("text", "")
    return base64.b64decode(text) if content.get("encoding") == "base64" else text.encode()
