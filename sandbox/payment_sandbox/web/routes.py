"""Routes and their declared facts, used by validation, OpenAPI and the documentation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from flask import Blueprint, Flask, Response
from werkzeug.routing import Rule

from payment_sandbox.forms import Form

JSON: Final = "application/json"
HTML: Final = "text/html"

View = TypeVar("View", bound=Callable[..., Response])


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The input and output of a route.

    ``answers`` is the record of a successful response, or of its items if ``is_list``; ``shapes.shape_of``
    describes it. ``reads`` and ``query`` are the forms of the body and the query. ``rules`` maps the path of
    a field to the rule broken by a wrong value. ``without_body`` lists additional success statuses without a
    body. ``slow`` marks slow calls, ``waits`` calls that may wait, for example for a webhook
    receiver; both run on threads. ``streams`` marks an event stream, which never ends.
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
    rules: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    slow: bool = False
    waits: bool = False
    streams: bool = False


class ResolvedRoute(NamedTuple):
    """A resolved route; ``answer`` runs the view inside the middlewares of its face."""

    answer: Callable[[Any], Response]
    view: Callable[..., Response]
    facts: Facts


class RouteWithoutFacts(Exception):
    """A route lacks its facts."""


def route(blueprint: Blueprint, method: str, path: str, **facts: Any) -> Callable[[View], View]:
    """Declare a route and its ``Facts``."""
    stated = Facts(**facts)

    def declare(view: View) -> View:
        view.facts = stated  # type: ignore[attr-defined]
        blueprint.add_url_rule(path, view_func=view, methods=[method])
        return view

    return declare


def facts_of(app: Flask, endpoint: str | None) -> Facts | None:
    """Return the facts of a route; None if it declares none."""
    facts: Facts | None = getattr(app.view_functions.get(endpoint or ""), "facts", None)
    return facts


def described_routes(app: Flask) -> Iterator[tuple[Rule, Facts]]:
    """Yield each route with its declared facts."""
    for rule in app.url_map.iter_rules():
        facts = required_facts(app, rule)
        yield rule, facts


def required_facts(app: Flask, rule: Rule) -> Facts:
    """Return the facts of a route.

    Raises:
        RouteWithoutFacts: the route declares none, or its JSON response has no shape.
    """
    facts = facts_of(app, rule.endpoint)
    if facts is None:
        raise RouteWithoutFacts(f"{rule.rule} has no facts: declare it with web.routes.route")
    if facts.media_type == JSON and facts.answers is None:
        raise RouteWithoutFacts(f"{rule.rule} returns JSON but declares no shape")
    return facts
