"""What frameworks answer to a webhook whose URL differs from its route in the final slash, and on a protected route.

Measured with the versions named, except Laravel and Rails, whose documentation says so."""

from typing import Final, NamedTuple

from tests.documentation.tables import table


class Framework(NamedTuple):
    """A framework, and its answers: to a missing slash, to a slash too many, and on a protected route."""

    name: str
    missing_slash: str
    extra_slash: str
    protected: str = "-"
    exemption: str = "-"


REDIRECTS_BOTH: Final = ("307", "307")
NOT_FOUND: Final = ("404", "404")
RUNS_BOTH: Final = ("runs", "runs")
FRAMEWORKS: Final = (
    Framework("Django 5.2", "301; 500 with `DEBUG`", "404", "403", "`@csrf_exempt`"),
    Framework("Flask 3.1, Quart 0.22", "308", "404", "400 (Flask-WTF)", "`@csrf.exempt`"),
    Framework(
        "FastAPI 0.165, Starlette 1.10, Connexion 3.3",
        *REDIRECTS_BOTH,
        "403 (starlette-csrf)",
        "`exempt_urls`",
    ),
    Framework("Pyramid 2.1", "404; 307 with `append_slash`", "404", "400", "`require_csrf=False`"),
    Framework("Litestar 2.25", *RUNS_BOTH, "403", "`exclude_from_csrf=True`"),
    Framework("Hono 4, Sinatra 3", *NOT_FOUND, "runs, as its body is JSON"),
    Framework("Tornado 6.6", *NOT_FOUND, "403", "override `check_xsrf_cookie`"),
    Framework("aiohttp 3.14, Bottle 0.13, Falcon 4.4, Fastify 5, Slim 3", *NOT_FOUND),
    Framework("CherryPy 18.10", "301", "runs"),
    Framework("Express 5, NestJS 11, Sanic 25.12, BlackSheep 2.6", *RUNS_BOTH),
    Framework("Laravel", "runs", "301 by its `.htaccess`", "419", "`validateCsrfTokens(except: ...)`"),
    Framework("Rails", *RUNS_BOTH, "422", "`skip_forgery_protection`"),
)


def frameworks_table() -> str:
    """Return the table of frameworks."""
    headings = ("Framework", "Route has a slash, URL has none", "The reverse", "Protected route", "Exemption")
    return table(headings, FRAMEWORKS)
