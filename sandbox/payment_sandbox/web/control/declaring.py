"""Commands: a function describes a whole call of the control API.

Its signature is the form of the body or the query, its docstring the description, and its return type the
record of the response. ``command`` derives the route from it; ``make docs`` derives the method of the Python
client, from which the command line and the tools for agents follow, and the parts for other languages.

A parameter is typed by a Python type, or by ``Annotated`` with a sentence for the documentation and, if the
type alone does not say how to read the value, the field that does. Keyword-only parameters with a default are
optional. The first parameter is the project, or the ``Call`` if a command needs more of it.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from inspect import Parameter, signature
from itertools import islice
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from flask import Response

from payment_sandbox.forms import Choice, DateTime, Flag, Form, PeriodText, Text, Whole, read, repairs
from payment_sandbox.forms.fields import Number
from payment_sandbox.kernel.descriptions import Key
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.journal import LoggedRequest, PerformedAction
from payment_sandbox.web.answers.order_tables import ORDER
from payment_sandbox.web.answers.responses import json_answer, order_answer, streamed_answer
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_blueprint import BODY_ERRORS, control
from payment_sandbox.web.error_bodies import CONTROL_API
from payment_sandbox.web.idempotency import claim_key
from payment_sandbox.web.routes import RecordList, route

READ: Final = "GET"
FIELDS: Final = {str: Text, int: Whole, float: Number, bool: Flag, datetime: DateTime}
"""The fields of plain types."""
WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")

Document = Any  # a whole body, which the operation reads
Period = Annotated[str, PeriodText]
OfStatus = Annotated[str, partial(Choice, tuple(status.value for status in OrderStatus))]
Limit = Annotated[int, partial(Whole, low=1, high=99_999), "Return at most this many of the newest items."]
Before = Annotated[str, "Only items before this id; for the next page."]
Summary = Annotated[bool, "Omit headers and bodies."]
Record = TypeVar("Record")
Item = TypeVar("Item", Delivery, LoggedRequest, PerformedAction)
Run = TypeVar("Run", bound=Callable[..., Any])


class Listed(NamedTuple, Generic[Record]):
    """A list in a response, with the number of older items dropped to make room."""

    items: Iterable[object]  # each is serialized as a ``Record``
    dropped: int = 0
    more: Mapping[str, object] = {}


def newest_page(
    items: Sequence[Item],
    limit: int | None,
    before: str | None,
    matches: Callable[[Item], bool] = lambda item: True,
    dropped: str = "is not in this list; the item may have been dropped",
) -> list[Item]:
    """Return the newest matching items, or the newest before the id ``before``, newest last.

    Raises:
        Invalid: no item has the id ``before``.
    """
    newest_first = reversed(items)
    if before is not None and all(item.id != before for item in newest_first):  # skips newer items
        raise Invalid([Violation("before", dropped)])
    return list(islice(filter(matches, newest_first), limit))[::-1]


class Body(NamedTuple):
    """Marks the parameter that is the whole body: ``form`` describes it, and the operation reads it."""

    form: type[Form]
    read: Callable[[Call], Any] = json_body


class HttpOnly(NamedTuple):
    """Marks a parameter that the clients do not have, because it changes the form of the response."""


class CommandParameter(NamedTuple):
    """A parameter of a command."""

    name: str
    key: str  # its name in requests
    kind: Any  # a Python type or a ``Literal``, without None
    about: str
    notes: tuple[Any, ...]
    is_required: bool
    is_in_path: bool
    is_keyword: bool

    def field(self) -> Any:
        """Return the strict field that reads the parameter."""
        options = {"required": self.is_required, **({"about": self.about} if self.about else {})}
        field = next((note for note in self.notes if callable(note)), None)
        if field is not None:
            return field(**options)
        return (
            Choice(get_args(self.kind), **options)
            if get_origin(self.kind) is Literal
            else FIELDS[self.kind](**options)
        )


class ControlCommand(NamedTuple):
    """A declared command."""

    name: str
    method: str
    path: str
    run: Callable[..., Any]
    parameters: tuple[CommandParameter, ...]
    answers: Any
    form: Form | None  # reads the body or the query
    unwraps: str | None  # the key of the response that the clients return
    is_stream: bool
    names: Mapping[str, str]  # in Python, of the parameters with other names in requests

    @property
    def about(self) -> str:
        """The description."""
        return self.run.__doc__ or ""

    @property
    def shown(self) -> list[CommandParameter]:
        """The parameters that the clients have."""
        return [each for each in self.parameters if HttpOnly() not in each.notes]

    @property
    def document(self) -> Body | None:
        """The whole body, if it is one parameter."""
        notes = (note for each in self.parameters for note in each.notes)
        return next((note for note in notes if isinstance(note, Body)), None)

    def read(self, data: Any) -> dict[str, Any]:
        """Read the parameters from a body, or from a form of the dashboard."""
        assert self.form is not None, "the command must have parameters"
        return self.by_name(read(self.form, data))

    def by_name(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by the names of the parameters in Python."""
        return {self.names.get(key, key): value for key, value in values.items()}


COMMANDS: Final[dict[str, ControlCommand]] = {}


class QueryForm(Form):
    """A form whose values arrive as text."""

    @repairs
    def parse_text(self, data: Any, **options: Any) -> Any:
        """Parse numbers and flags; the fields refuse what is neither."""
        if not isinstance(data, Mapping):
            return data
        parsed = dict(data)
        for name, text in data.items():
            field = self.load_fields.get(name) if isinstance(text, str) else None
            if isinstance(field, Flag):
                parsed[name] = WORDS.get(text, text)
            elif isinstance(field, Whole | Number) and NUMBER.fullmatch(text):
                parsed[name] = float(text) if "." in text else int(text)
        return parsed


def command(
    group: str,
    method: str,
    path: str,
    *,
    check: Callable[..., Any] | None = None,
    acts: bool = False,
    errors: tuple[int, ...] = (),
    unwraps: str | None = None,
    lists: str | None = None,
    **facts: Any,
) -> Callable[[Run], Run]:
    """Declare a command; its ``group`` decides who may call it.

    ``check`` refuses inconsistent parameters. ``acts`` marks an action of a payer or another actor: due
    events run first, a repeated request gets its first response, and webhooks wait for the response.
    ``errors`` are the statuses of refusals that do not follow from the parameters. Clients return the value
    under ``unwraps`` instead of the whole response. ``lists`` is the name of a list in OpenAPI.
    ``facts`` are those of a route.
    """

    def declare(run: Run) -> Run:
        hints = get_type_hints(run, include_extras=True)
        parameters = tuple(_parameters(run, hints, path))
        answers = hints["return"]
        form = _form(run, parameters, QueryForm if method == READ else Form, check)
        made = ControlCommand(
            run.__name__,
            method,
            f"{CONTROL_API}{path}",
            run,
            parameters,
            answers,
            form,
            unwraps or ("items" if get_origin(answers) is Listed else None),
            facts.get("streams", False),
            {each.key: each.name for each in parameters if each.key != each.name},
        )
        COMMANDS[made.name] = made
        stated = {
            **_facts(made, errors, lists),
            "needs_body": check is not None or any(p.is_required and not p.is_in_path for p in parameters),
            **facts,
        }
        route(control, method, made.path, group=group, **stated)(_view(made, stated, acts=acts))
        return run

    return declare


def _parameters(run: Callable[..., Any], hints: Mapping[str, Any], path: str) -> Iterator[CommandParameter]:
    in_path = re.findall(r"<(\w+)>", path)
    for parameter in list(signature(run).parameters.values())[1:]:
        kind, notes = split_hint(hints[parameter.name])
        about = next((note for note in notes if isinstance(note, str)), "")
        key = next((note.name for note in notes if isinstance(note, Key)), parameter.name)
        others = tuple(note for note in notes if not isinstance(note, str | Key))
        yield CommandParameter(
            parameter.name,
            key,
            kind,
            about,
            others,
            is_required=parameter.default is Parameter.empty,
            is_in_path=parameter.name in in_path,
            is_keyword=parameter.kind is Parameter.KEYWORD_ONLY,
        )


def split_hint(hint: Any) -> tuple[Any, list[Any]]:
    """Split a type hint into the type without None, and the notes of all its ``Annotated``."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        inner, more = split_hint(kind)
        return inner, [*notes, *more]
    variants = [each for each in get_args(hint) if each is not NoneType]
    if isinstance(hint, UnionType) or (get_origin(hint) is not None and NoneType in get_args(hint)):
        return split_hint(variants[0])
    return hint, []


def _title(name: str) -> str:
    return name.title().replace("_", "")


def _form(
    run: Callable[..., Any],
    parameters: tuple[CommandParameter, ...],
    base: type[Form],
    check: Callable[..., Any] | None,
) -> Form | None:
    if any(isinstance(note, Body) for each in parameters for note in each.notes):
        return None
    fields = {each.key: each.field() for each in parameters if not each.is_in_path}
    if not fields:
        return None
    own = {"__doc__": run.__doc__, **fields, **({"check": check} if check is not None else {})}
    form: Form = type(f"{_title(run.__name__)}Form", (base,), own)()
    return form


def _facts(made: ControlCommand, errors: tuple[int, ...], lists: str | None) -> dict[str, Any]:
    """Return the facts that follow from the signature."""
    answers = made.answers
    if get_origin(answers) is Listed:
        answers = RecordList(get_args(answers)[0], lists or _title(made.name))
    module = made.run.__module__
    tag = f"control {module.rpartition('.')[2].removesuffix('_control')}", sys.modules[module].__doc__ or ""
    facts: dict[str, Any] = {"answers": ORDER.shape if answers is Order else answers, "tag": tag}
    statuses = {401, *errors, *([404] if any(each.is_in_path for each in made.parameters) else [])}
    if made.document is not None or made.form is not None:
        form = made.document.form if made.document is not None else type(made.form)
        facts["query" if made.method == READ else "reads"] = form
        statuses |= {400} if made.method == READ else set(BODY_ERRORS)
    return {**facts, "errors": tuple(sorted(statuses))}


def _view(made: ControlCommand, facts: Mapping[str, Any], *, acts: bool) -> Callable[..., Response]:
    """Return the view of a command: read, run, answer."""
    document, document_name = made.document, made.parameters[-1].name if made.parameters else ""
    needs_call = next(iter(signature(made.run).parameters)) == "call"
    empty_is: Any = None if facts["needs_body"] else {}

    def view(call: Call, **given: Any) -> Response:
        if document is not None:
            given[document_name] = document.read(call)
        elif made.method == READ:
            given |= made.by_name(call.query)
        elif made.form is not None:
            given |= made.read(json_body(call, empty_is=empty_is))
        if acts:
            call.catch_up()
            if "HTTP_IDEMPOTENCY_KEY" in call.request.environ:
                claim_key(call)
            call.hold_webhooks()
        return _response(
            call, made.run(call if needs_call else call.project, **given), facts.get("status", 200)
        )

    view.__name__, view.__doc__ = made.name, made.about
    return view


def _response(call: Call, answer: Any, status: int) -> Response:
    if isinstance(answer, Response):
        return answer
    if isinstance(answer, Order):
        return order_answer(call, answer, status)
    if isinstance(answer, Listed):
        items = answer.items if isinstance(answer.items, Iterator) else list(answer.items)
        return streamed_answer({"items": items, "dropped": answer.dropped, **answer.more})
    return streamed_answer(answer) if status == 200 else json_answer(answer, status)
