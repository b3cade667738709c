"""Routes that compile their URL builders on first use build the same URLs as others."""

from flask import Flask
from werkzeug.routing import Map, Rule

from payment_sandbox.serving.server import Server
from payment_sandbox.web.app import LazyRoute


def test_addresses_are_the_same_as_without(server: Server) -> None:
    """Lazy and plain routes build the same URLs, also from values that must be quoted and extra values."""
    values = {"name": "a b", "method_name": "ü", "more": "x/y"}
    for rule in server.app.register_deferred_faces().url_map.iter_rules():
        assert isinstance(rule, LazyRoute)
        given = {**{name: values.get(name, f"{name}?") for name in rule.arguments}, "more": values["more"]}
        plain = Map([Rule(rule.rule, endpoint="it")]).bind("pay.test")
        late = Map([LazyRoute(rule.rule, endpoint="it")]).bind("pay.test")
        assert late.build("it", given) == plain.build("it", given)
        assert late.build("it", given) == plain.build("it", given), "a second time, too"


def test_they_are_compiled_once_somebody_asks() -> None:
    """The builder is compiled at the first call of ``url_for``."""
    app = Flask("late", static_folder=None)
    app.url_rule_class = LazyRoute
    app.add_url_rule("/<name>/", endpoint="it")
    (rule,) = app.url_map.iter_rules()
    assert "build" in rule._build.__func__.__name__  # type: ignore[attr-defined]
    with app.test_request_context():
        assert app.url_for("it", name="a b") == "/a%20b/"
