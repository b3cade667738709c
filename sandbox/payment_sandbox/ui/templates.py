"""The templates of the payment pages, the dashboard and the documentation."""

from typing import Any, Final

from jinja2 import Environment, FunctionLoader

from payment_sandbox.packaged import read_packaged
from payment_sandbox.web.site import Site


def _read_template(name: str) -> str | None:
    room = name.partition("/")[0]
    folder = room if room in ("dashboard", "docs") else "pages"
    try:
        return read_packaged(f"ui/{folder}/templates/{name}").decode()
    except OSError:
        return None


ENVIRONMENT: Final = Environment(loader=FunctionLoader(_read_template), autoescape=True)


def render(site: Site, template: str, **context: Any) -> str:
    """Render a template."""
    return ENVIRONMENT.get_template(template).render(base=site.base_path, **context)
