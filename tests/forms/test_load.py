"""A form loads a body as marshmallow's own ``load`` does: the same values, problems and order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError, fields

from payment_sandbox.forms import (
    Cents,
    Choice,
    Form,
    FormPart,
    Items,
    NothingForm,
    Text,
    Whole,
    checks,
)
from payment_sandbox.forms.fields import (
    Anything,
    AnyValue,
    Birthdate,
    DateTime,
    Flag,
    Label,
    Number,
    PeriodText,
    WebUrl,
)
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.web.answers.order_tables import OrderForm, UpdateForm
from payment_sandbox.web.answers.qr_tables import QrForm
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.merchant.merchant_routes import ByAmountForm, ByLinesForm, RefundForm

MERCHANT = [OrderForm(), UpdateForm(), QrForm(), ByAmountForm(), ByLinesForm(), NothingForm(), RefundForm()]
CONTROL_FORMS = [each.form for each in COMMANDS.values() if each.form is not None]
FORMS = [*MERCHANT, SettingsForm(), *CONTROL_FORMS]
SAMPLES: dict[type, st.SearchStrategy[Any]] = {
    PeriodText: st.sampled_from(["PT30M", "P1D", "P1Y2M"]),
    DateTime: st.sampled_from(["2027-01-01T00:00:00Z", "2027-01-01"]),
    Birthdate: st.just("2000-02-29"),
    WebUrl: st.sampled_from(["https://shop.example/a?b=c", "http://localhost:1"]),
    AnyValue: st.one_of(st.integers(), st.text(max_size=3), st.none(), st.lists(st.booleans())),
    Text: st.one_of(st.sampled_from(["NL", "4242424242424242", "12/30"]), st.text(max_size=3)),
    Label: st.text(max_size=3),
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
    elif isinstance(field, Text) and "pattern" in field.metadata:
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


def outcome(load: Callable[[Form, Any], Any], form: Form, body: Any) -> str:
    """Return the loaded values, or the valid values and the problems; ``repr`` shows types and order, too."""
    try:
        return repr(load(form, body))
    except ValidationError as error:
        return repr((error.valid_data, error.messages))


@pytest.mark.rule("SET-09", "SET-11", "SET-12")
@pytest.mark.parametrize(("form", "bodies"), BODIES, ids=lambda part: type(part).__name__)
def test_a_form_loads_as_marshmallow_does(form: Form, bodies: st.SearchStrategy[Any]) -> None:
    """A form and marshmallow read the same values, and report the same problems, in the same order."""

    @settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(body=bodies)
    def loads_equally(body: Any) -> None:
        assert outcome(Form.load, form, body) == outcome(Schema.load, form, body)

    loads_equally()


class ChecksForm(Form):
    """A form with defaults, nulls, and checks that report problems of the object and of its fields."""

    name = Text(required=True)
    nothing = Text(allow_none=True)
    numbers = fields.List(fields.Integer(), load_default=list)

    @checks(although_invalid=True)
    def check_always(self, data: Any, sent: Any, **options: Any) -> None:
        """Report the problems in the request."""
        if isinstance(sent, dict) and sent.get("problems"):
            raise ValidationError(sent["problems"], *sent.get("of", ()))

    @checks(although_invalid=False)
    def check_valid_fields(self, data: Any, sent: Any, **options: Any) -> None:
        """Refuse one name."""
        if data["name"] == "x":
            raise ValidationError("must not be x", "name")


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.one_of(st.just("x"), ODD),
    "nothing": st.one_of(st.none(), ODD),
    "numbers": st.one_of(st.lists(st.one_of(st.integers(), st.none()), max_size=3), ODD),
    "problems": st.sampled_from([["bad"], {"name": ["bad"]}, {"numbers": {"_schema": ["bad"], 0: ["bad"]}}]),
    "of": st.sampled_from([["name"], ["numbers"], ["unknown"]]),
}


@settings(deadline=None)
@given(body=st.one_of(ODD, st.fixed_dictionaries({}, optional=VALUES)))
def test_checks_defaults_and_nulls(body: Any) -> None:
    """A form and marshmallow agree about checks, defaults and nulls."""
    assert outcome(Form.load, ChecksForm(), body) == outcome(Schema.load, ChecksForm(), body)
