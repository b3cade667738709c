"""Strict parsing of untrusted input, with a report of all violations and their paths.

Other packages may import any of its modules.
"""

from payment_sandbox.forms.base import (
    NOTHING,
    Form,
    NothingForm,
    Problem,
    checks,
    load,
    read,
    repairs,
    unknown_keys,
)
from payment_sandbox.forms.fields import (
    Cents,
    Choice,
    DateTime,
    Flag,
    FormPart,
    Items,
    PeriodText,
    Text,
    WebUrl,
    Whole,
)

__all__ = [
    "NOTHING",
    "Cents",
    "Choice",
    "DateTime",
    "Flag",
    "Form",
    "FormPart",
    "Items",
    "NothingForm",
    "PeriodText",
    "Problem",
    "Text",
    "WebUrl",
    "Whole",
    "checks",
    "load",
    "read",
    "repairs",
    "unknown_keys",
]
