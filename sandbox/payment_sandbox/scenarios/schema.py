"""The JSON Schema of scenario files, for editors; generated from the forms that read them."""

from collections.abc import Sequence
from typing import Any

from payment_sandbox.forms import Form
from payment_sandbox.scenarios.forms import ScenarioForm


def scenario_schema(methods: Sequence[str], settings: type[Form]) -> dict[str, Any]:
    """The schema; ``methods`` are for completion, ``settings`` is the form of the project settings."""
    from payment_sandbox.forms.schemas import json_schema  # imported here for a faster startup

    schema = json_schema(ScenarioForm, {"settings": settings})
    name = schema["$defs"]["When"]["properties"]["payment_method"]
    # Aliases are allowed too, so editors may suggest the names but must not insist on them.
    name["items"] = {"anyOf": [{"enum": list(methods)}, {"type": "string"}]}
    return schema
