"""The templates of all pages."""

from typing import Any, Final

from jinja2 import Environment, FunctionLoader

from payment_sandbox.packaged import read_packaged
from payment_sandbox.web.call import Call


def _read_template(name: str) -> str | None:
    room = name.partition("/")[0]
    folder = room if room in ("dashboard", "docs") else "pages"
    try:
        return read_packaged(f"ui/{folder}/templates/{name}").decode()
    except OSError:
        return None


TEMPLATES: Final = Environment(loader=FunctionLoader(_read_template), autoescape=True, auto_reload=False)


def render(call: Call, template: str, **context: Any) -> str:
    """Render a template."""
    return TEMPLATES.get_template(template).render(base=call.site.base_path, **context)
