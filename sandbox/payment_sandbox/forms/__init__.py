"""Strict parsing of untrusted input: reports all violations at once, each with its path."""

from payment_sandbox.forms.base import Form, Problem, checks, load, repairs, unknown_keys
from payment_sandbox.forms.fields import (
    Cents,
    Choice,
    Flag,
    Items,
    Moment,
    Part,
    PeriodText,
    Text,
    WebUrl,
    Whole,
)
from payment_sandbox.forms.quick import read

__all__ = [
    "Cents",
    "Choice",
    "Flag",
    "Form",
    "Items",
    "Moment",
    "Part",
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
