"""Routes and their declared facts, used by validation, OpenAPI and the documentation."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from werkzeug.routing import Map, MapAdapter, Rule
from werkzeug.wrappers import Response

from payment_sandbox.forms import Form
from payment_sandbox.projects.project import Project

JSON: Final = "application/json"
HTML: Final = "text/html"

View = TypeVar("View", bound=Callable[..., Response])


class Facts(NamedTuple):
    """The input and output of a route.

    ``answers`` is the record of a successful response, or of its items if ``is_list``. ``reads`` and
    ``query`` are the forms of the body and the query. ``rules`` maps the path of a field to the rule broken
    by a wrong value. ``without_body`` lists additional success statuses without a body. ``slow`` marks slow
    calls, ``waits`` calls that may wait, for example for a webhook receiver; both run on threads. ``streams``
    marks an event stream, which never ends. ``admit`` finds the project of a call with a large body before
    the body is received; other routes take no large bodies. ``tag`` groups routes in OpenAPI: its name and
    description.
    """

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
    slow: bool = False
    waits: bool = False
    streams: bool = False
    admit: Callable[[Any], Project] | None = None
    tag: tuple[str, str] | None = None


class RecordList(NamedTuple):
    """A list of records in a response of the control API."""

    record: Any
    name: str


class ResolvedRoute(NamedTuple):
    """A resolved route; ``answer`` runs the view inside the middlewares of its face."""

    answer: Callable[[Any], Response]
    admit: Callable[[Any], Response | None]
    view: Callable[..., Response]
    facts: Facts


class RoutedPart(Protocol):
    """A part of an application."""

    url_map: Map
    adapter: MapAdapter
    routes: dict[str, ResolvedRoute]
    """The routes by endpoint."""


class RouteWithoutShape(Exception):
    """A route returns JSON without a shape."""


class DeclaredRoute(NamedTuple):
    """A route of a group."""

    endpoint: str
    method: str
    path: str
    view: Callable[..., Response]
    facts: Facts


class RouteGroup:
    """The routes of a face; the group's name begins their endpoints, and its prefix their paths."""

    def __init__(self, name: str, prefix: str = "") -> None:
        self.name: Final = name
        self.prefix: Final = prefix
        self.routes: list[DeclaredRoute] = []


def route(group: RouteGroup, method: str, path: str, **facts: Any) -> Callable[[View], View]:
    """Declare a route and its ``Facts``.

    Raises:
        RouteWithoutShape: its JSON response has no shape.
    """
    stated, whole_path = Facts(**facts), f"{group.prefix}{path}"
    if stated.media_type == JSON and stated.answers is None:
        raise RouteWithoutShape(f"{whole_path} returns JSON but declares no shape")

    def declare(view: View) -> View:
        endpoint = f"{group.name}.{view.__name__}"
        group.routes.append(DeclaredRoute(endpoint, method, whole_path, view, stated))
        return view

    return declare


def described_routes(parts: Iterable[RoutedPart]) -> Iterator[tuple[Rule, Facts]]:
    """Yield each route of some parts with its declared facts."""
    for part in parts:
        for rule in part.url_map.iter_rules():
            yield rule, part.routes[rule.endpoint].facts
