"""The quick parser and marshmallow accept the same bodies and read the same values."""

from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError, fields, pre_load

from payment_sandbox.forms import (
    Cents,
    Choice,
    Form,
    FormPart,
    Items,
    NothingForm,
    Text,
    Whole,
    load,
    unknown_keys,
)
from payment_sandbox.forms.fields import (
    Anything,
    Birthdate,
    DateTime,
    Flag,
    Number,
    NumberOrText,
    PeriodText,
    WebUrl,
)
from payment_sandbox.forms.quick import parse_quickly
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.web.answers.order import OrderForm, UpdateForm
from payment_sandbox.web.answers.qr import QrForm
from payment_sandbox.web.control.forms import ClockForm, ScanForm
from payment_sandbox.web.merchant.orders import ByAmountForm, ByLinesForm, RefundForm
from payment_sandbox.web.shared_forms import ActForm, AdvanceForm

MERCHANT = [OrderForm(), UpdateForm(), QrForm(), ByAmountForm(), ByLinesForm(), NothingForm(), RefundForm()]
FORMS = [*MERCHANT, ActForm(), ScanForm(), ClockForm(), AdvanceForm(), SettingsForm()]
SAMPLES: dict[type, st.SearchStrategy[Any]] = {
    PeriodText: st.sampled_from(["PT30M", "P1D", "P1Y2M"]),
    DateTime: st.sampled_from(["2027-01-01T00:00:00Z", "2027-01-01"]),
    Birthdate: st.just("2000-02-29"),
    WebUrl: st.sampled_from(["https://shop.example/a?b=c", "http://localhost:1"]),
    NumberOrText: st.one_of(st.integers(), st.text(max_size=3)),
    Text: st.one_of(st.sampled_from(["NL", "4242424242424242", "12/30"]), st.text(max_size=3)),
    Whole: st.integers(1, 2000),
    Cents: st.integers(1, 2000),
    Flag: st.booleans(),
    Number: st.one_of(st.integers(1, 60), st.floats(0.5, 60)),
    Anything: st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
}
ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 2**53, 10**30, 1.0, 12.5, "", "1", "é\n", [], {}, [None]]),
    st.sampled_from(
        [{"a": None}, "PT0S", "P1DT", "2027-13-01T00:00:00Z", "2001-02-29", "ftp://x", "https://"]
    ),
)


def field_values(field: Any, *, is_wild: bool) -> st.SearchStrategy[Any]:
    """Generate values that the field probably accepts; with ``is_wild``, often invalid ones."""
    if isinstance(field, Choice):
        valid: st.SearchStrategy[Any] = st.sampled_from(field.choices)
    elif isinstance(field, Items):
        valid = st.lists(
            field_values(field.inner, is_wild=is_wild), min_size=field.least, max_size=field.most or 2
        )
    elif isinstance(field, FormPart):
        valid = form_bodies(field.schema, is_wild=is_wild)
    elif isinstance(field, Anything) and isinstance(field.value_field, FormPart):
        names = st.sampled_from(["ORD-03", "ValidationError", "NotFound"])
        valid = st.dictionaries(names, field_values(field.value_field, is_wild=is_wild), max_size=2)
    elif isinstance(field, Text) and field.validators:
        valid = st.from_regex(field.metadata["pattern"], fullmatch=True).filter(lambda text: len(text) < 30)
    else:
        valid = SAMPLES[type(field)]
    return st.one_of(valid, valid, valid, valid, ODD) if is_wild else valid


def form_bodies(form: Any, *, is_wild: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Generate bodies with some of the form's keys; with ``is_wild``, some lack a key or add one."""
    by_name = {name: field_values(field, is_wild=is_wild) for name, field in form.load_fields.items()}
    required = {name: by_name.pop(name) for name, field in form.load_fields.items() if field.required}
    known = st.fixed_dictionaries(required, optional=by_name)
    less = known.map(lambda body: dict(list(body.items())[1:]))
    more = known.map(lambda body: {**body, "unknown": 1})
    return st.one_of(known, known, known, known, less, more) if is_wild else known


BODIES = [
    (form, st.one_of(form_bodies(form, is_wild=False), form_bodies(form, is_wild=True), ODD))
    for form in FORMS
]


@pytest.mark.rule("SET-09", "SET-11", "SET-12")
@pytest.mark.parametrize(("form", "bodies"), BODIES, ids=lambda part: type(part).__name__)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(choice=st.data())
def test_quick_parser_and_marshmallow_agree(
    form: Form, bodies: st.SearchStrategy[Any], choice: st.DataObject
) -> None:
    """The quick parser accepts exactly the valid bodies without unknown keys, and never changes a value."""
    body = choice.draw(bodies)
    values, violations = load(form, body)
    is_clean = not violations and not list(unknown_keys(form, body)) and isinstance(body, dict)
    read = parse_quickly(form, body)
    event("accepted" if read is not None else "left to marshmallow")
    if read is not None:
        assert is_clean
        assert repr(read) == repr(values), "the same values of the same types in the same order"
    elif is_clean:
        assert is_repaired_by_hook(body), f"the quick parser refused a valid body: {body}"


def is_repaired_by_hook(body: Any) -> bool:
    """Whether the body has a null or an amount of 0, which a hook removes before marshmallow reads it."""
    return "None" in repr(body) or body.get("amount") == 0


class HookedForm(Form):
    """A form with a hook that the quick parser does not know."""

    name = Text()

    @pre_load
    def shout(self, data: Any, **options: Any) -> Any:
        """Change values that would also be valid unchanged."""
        return {key: value.upper() for key, value in data.items()}


class DefaultsForm(Form):
    """A form with fields that the quick parser leaves to marshmallow."""

    nothing = Text(allow_none=True)
    numbers = fields.List(fields.Integer(), load_default=list)
    renamed = Text(data_key="name")


def test_forms_with_unknown_hooks_are_left_to_marshmallow() -> None:
    """The quick parser refuses a form with an unknown hook."""
    assert parse_quickly(HookedForm(), {"name": "x"}) is None
    assert load(HookedForm(), {"name": "x"}) == ({"name": "X"}, [])


@pytest.mark.parametrize("body", [{}, {"nothing": None}, {"numbers": [1]}, {"name": "x"}, {"renamed": "x"}])
def test_defaults_nulls_and_other_names(body: dict[str, Any]) -> None:
    """The quick parser and marshmallow agree about defaults, nulls and renamed keys."""
    form = DefaultsForm()
    read = parse_quickly(form, body)
    if "renamed" in body:
        assert read is None
        return
    try:
        assert read == form.load(body)
    except ValidationError:
        assert read is None
