"""Routes and their declared facts, used by validation, OpenAPI and the documentation."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from flask import Blueprint, Flask, Response
from werkzeug.routing import Rule

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


def declare_list(record: Any, name: str) -> RecordList:
    """Declare a list of records as the response of a route; ``name`` is its name in OpenAPI."""
    return RecordList(record, name)


class ResolvedRoute(NamedTuple):
    """A resolved route; ``answer`` runs the view inside the middlewares of its face."""

    answer: Callable[[Any], Response]
    admit: Callable[[Any], Response | None]
    view: Callable[..., Response]
    facts: Facts


class RouteWithoutFacts(Exception):
    """A route lacks its facts."""


class FactsBlueprint(Blueprint):
    """A blueprint whose routes declare their facts.

    There is no automatic OPTIONS, because there is no CORS, and an undeclared method is a 405.
    """

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        **options: Any,
    ) -> None:
        """Add a route.

        Raises:
            RouteWithoutFacts: the view declares none, or its JSON response has no shape.
        """
        path, facts = f"{self.url_prefix or ''}{rule}", getattr(view_func, "facts", None)
        if facts is None:
            raise RouteWithoutFacts(f"{path} has no facts: declare it with web.routes.route")
        if facts.media_type == JSON and facts.answers is None:
            raise RouteWithoutFacts(f"{path} returns JSON but declares no shape")
        super().add_url_rule(rule, endpoint, view_func, bool(provide_automatic_options), **options)


def route(blueprint: FactsBlueprint, method: str, path: str, **facts: Any) -> Callable[[View], View]:
    """Declare a route and its ``Facts``."""
    stated = Facts(**facts)

    def declare(view: View) -> View:
        view.facts = stated  # type: ignore[attr-defined]
        blueprint.add_url_rule(path, view_func=view, methods=[method])
        return view

    return declare


def facts_of(view: Callable[..., object]) -> Facts:
    """Return the facts of a view."""
    facts: Facts = view.facts  # type: ignore[attr-defined]
    return facts


def described_routes(parts: Iterable[Flask]) -> Iterator[tuple[Rule, Facts]]:
    """Yield each route of some parts with its declared facts."""
    for part in parts:
        for rule in part.url_map.iter_rules():
            yield rule, facts_of(part.view_functions[rule.endpoint])
