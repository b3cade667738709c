"""The API reference pages, generated from the OpenAPI description."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from payment_sandbox.web.docs.tables import code, fields
from payment_sandbox.web.openapi import described

LONG: Final = 1500  # characters
WRONG_KEY: Final = "401"
ONLY_SELF: Final = ("200", "201", "303")


def merchant_api() -> str:
    """The calls of the merchant API."""
    return _calls("merchant API")


def control_api() -> str:
    """The calls of the control API, the server and the documentation."""
    return _calls("control API", "server", "documentation")


def pages() -> str:
    """The payment pages."""
    return _calls("pages")


def _calls(*tags: str) -> str:
    whole = json.loads(described())
    named = whole["components"]["schemas"]
    shown = [
        _call(method, path, operation, named)
        for path, operations in whole["paths"].items()
        for method, operation in operations.items()
        if operation["tags"][0] in tags
    ]
    return "\n\n".join(shown)


def _call(method: str, path: str, operation: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    lines = [f"### {method.upper()} {path}", operation["summary"]]
    parameters = [p["name"] for p in operation["parameters"] if p["in"] != "path"]
    if parameters:
        lines.append(f"Parameters: {code(parameters)}.")
    lines += _request(operation.get("requestBody"), named)
    lines.append(f"Responses: {', '.join(_answers(operation['responses']))}.")
    lines += _examples(operation["responses"])
    return "\n\n".join(lines)


def _examples(responses: Mapping[str, Any]) -> Iterator[str]:
    """An answer and refusals, as they really were; the refusal of a wrong key is the same everywhere."""
    for status, response in sorted(responses.items()):
        content = response.get("content", {}).get("application/json", {})
        if "example" not in content or status == WRONG_KEY:
            continue
        yield f"**{status}**{_sent(content)}:"
        text = json.dumps(content["example"], indent=2 if status < "400" else None)
        # colours of a long example would make the page slow
        yield f"```{'json' if len(text) < LONG else 'text'}\n{text}\n```"


def _sent(content: Mapping[str, Any]) -> str:
    """What led to an answer, if it is worth saying."""
    sent = content.get("x-request")
    if sent is None:
        return ""
    return f" for {sent}" if isinstance(sent, str) else f" for `{json.dumps(sent)}`"


def _request(body: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Iterator[str]:
    if body is None:
        return
    content = body["content"]["application/json"]
    form = content["schema"]["$ref"].rpartition("/")[2]
    yield fields(named[form], named)
    if content.get("example"):
        yield f"An example:\n\n```json\n{json.dumps(content['example'], indent=2)}\n```"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in sorted(responses.items()):
        yield (
            status
            if status in ONLY_SELF
            else f"{status} ({answer['description'][0].lower()}{answer['description'][1:]})"
        )
