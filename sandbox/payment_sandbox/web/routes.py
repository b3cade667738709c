"""Routes and their declared facts, used by validation, OpenAPI and the documentation."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from typing import Any, Final, NamedTuple, TypeVar

from flask import Blueprint, Flask, Response, g
from werkzeug.utils import import_string

from payment_sandbox.forms import Form
from payment_sandbox.loading import LOADING

JSON: Final = "application/json"
WITHOUT_METHODS: Final = frozenset(("HEAD", "OPTIONS"))

View = TypeVar("View", bound=Callable[..., Response])


class Facts(NamedTuple):
    """The input and output of a route.

    ``group`` decides who may call the route, its tag, and the beginning of its operation id. ``answers`` is
    the record of a successful response, or of its items if ``is_list``. ``reads`` and ``query`` are the forms
    of the body and the query. ``rules`` maps the path of a field to the rule broken by a wrong value.
    ``without_body`` lists additional success statuses without a body. ``streams`` marks an event stream,
    which never ends. ``tag`` groups routes in OpenAPI: its name and description.
    """

    group: str
    answers: Any = None
    is_list: bool = False
    status: int = 200
    reads: type[Form] | None = None
    needs_body: bool = True
    query: type[Form] | None = None
    if_match: bool = False
    errors: tuple[int, ...] = (401,)
    without_body: tuple[int, ...] = ()
    example: Any = None
    rules: Mapping[str, str] = {}
    media_type: str = JSON
    streams: bool = False
    tag: tuple[str, str] | None = None


class RecordList(NamedTuple):
    """A list of records in a response of the control API."""

    record: Any
    name: str


def stated(**facts: Any) -> Callable[[View], View]:
    """State the ``Facts`` of a view; a JSON response has a shape."""
    given = Facts(**facts)
    assert given.media_type != JSON or given.answers is not None, "a JSON response must have a shape"

    def state(view: View) -> View:
        view.facts = given  # type: ignore[attr-defined]
        return view

    return state


def route(blueprint: Blueprint, method: str, path: str, **facts: Any) -> Callable[[View], View]:
    """Declare a route and its ``Facts``; the view gets the call, and the values of the path."""

    def declare(view: View) -> View:
        stated(**facts)(view)

        @wraps(view)
        def with_call(**values: str) -> Response:
            return view(g.call, **values)

        add_route(blueprint, method, path, with_call)
        return view

    return declare


class LazyView:
    """A view or a hook that is imported when it is first needed."""

    def __init__(self, import_name: str) -> None:
        """``import_name`` is the name of the module, a dot, and the name of the view."""
        self.__module__, self.__name__ = import_name.rsplit(".", 1)

    @cached_property
    def view(self) -> Any:
        """The view."""
        with LOADING:
            return import_string(f"{self.__module__}.{self.__name__}")

    @property
    def facts(self) -> Facts:
        """The facts of the view."""
        facts: Facts = self.view.facts
        return facts

    def __call__(self, *given: Any, **values: str) -> Any:
        """Call the view with the current call, and the values of the path; or a hook, with what it gets."""
        return self.view(g.call, *given, **values)


def add_lazy_routes(blueprint: Blueprint, package: str, table: Iterable[tuple[str, str, str]]) -> None:
    """Add routes, each with its method, its path, and its view as a module and a name in the package."""
    for method, path, view in table:
        add_route(blueprint, method, path, LazyView(f"{package}.{view}"))


def add_lazy_surroundings(blueprint: Blueprint, module: str) -> None:
    """Add the functions ``admit_call``, ``finish_call`` and ``answer_error`` of a module."""
    blueprint.before_request(LazyView(f"{module}.admit_call"))
    blueprint.after_request(LazyView(f"{module}.finish_call"))
    blueprint.register_error_handler(Exception, LazyView(f"{module}.answer_error"))


def add_route(blueprint: Blueprint, method: str, path: str, view: Callable[..., Any]) -> None:
    """Add a route; a path does not answer OPTIONS by itself."""
    blueprint.add_url_rule(path, view.__name__, view, methods=[method], provide_automatic_options=False)


class DescribedRoute(NamedTuple):
    """A route of an application, with the function that answers it."""

    path: str
    method: str
    arguments: frozenset[str]
    view: Callable[..., Any]
    facts: Facts

    @property
    def name(self) -> str:
        """The name of the operation, with its group."""
        return f"{self.facts.group}.{self.view.__name__}"


def described_routes(app: Flask) -> Iterator[DescribedRoute]:
    """Yield each route of an application with its declared facts, sorted by path."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        view = app.view_functions[rule.endpoint]
        method = next(name for name in sorted(rule.methods or ()) if name not in WITHOUT_METHODS)
        whole: Any = view.view if isinstance(view, LazyView) else view
        yield DescribedRoute(rule.rule, method, frozenset(rule.arguments), whole, whole.facts)
