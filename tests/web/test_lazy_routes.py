"""Routes that compile their URL builders on first use build the same URLs as others."""

from flask import Flask
from werkzeug.routing import Map, Rule

from payment_sandbox.serving.server import Server
from payment_sandbox.web.app import LazyRoute


def test_lazy_routes_build_the_same_urls(server: Server) -> None:
    """Lazy and plain routes build the same URLs, also from values that must be quoted and extra values."""
    values = {"name": "a b", "method_name": "ü", "more": "x/y"}
    for rule in server.app.register_deferred_faces().url_map.iter_rules():
        assert isinstance(rule, LazyRoute)
        arguments = {
            **{name: values.get(name, f"{name}?") for name in rule.arguments},
            "more": values["more"],
        }
        plain = Map([Rule(rule.rule, endpoint="it")]).bind("pay.test")
        lazy = Map([LazyRoute(rule.rule, endpoint="it")]).bind("pay.test")
        assert lazy.build("it", arguments) == plain.build("it", arguments)
        assert lazy.build("it", arguments) == plain.build("it", arguments), "a second time, too"


def test_lazy_routes_are_compiled_on_first_use() -> None:
    """The builder is compiled at the first call of ``url_for``."""
    app = Flask("late", static_folder=None)
    app.url_rule_class = LazyRoute
    app.add_url_rule("/<name>/", endpoint="it")
    (rule,) = app.url_map.iter_rules()
    assert "build" in rule._build.__func__.__name__  # type: ignore[attr-defined]
    with app.test_request_context():
        assert app.url_for("it", name="a b") == "/a%20b/"
