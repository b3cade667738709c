"""The JSON Schema of scenario files, for editors; made from the forms that read them."""

from collections.abc import Sequence
from typing import Any

from payment_sandbox.forms import Form
from payment_sandbox.scenarios.forms import ScenarioForm


def scenario_schema(methods: Sequence[str], settings: type[Form]) -> dict[str, Any]:
    """The schema; ``methods`` are offered for completion, ``settings`` is the form of a project's."""
    from payment_sandbox.forms.schemas import json_schema  # here, because starting up is faster without it

    schema = json_schema(ScenarioForm, {"settings": settings})
    name = schema["$defs"]["When"]["properties"]["payment_method"]
    # An alias of the merchant's is a method, too, so editors may offer the names but not insist on them.
    name["items"] = {"anyOf": [{"enum": list(methods)}, {"type": "string"}]}
    return schema
