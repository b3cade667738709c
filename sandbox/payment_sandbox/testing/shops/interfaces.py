"""Tells WSGI and ASGI applications apart, and everything else from both."""

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from payment_sandbox.testing.shops.wsgi import WsgiShop

if TYPE_CHECKING:
    from payment_sandbox.testing.shops.asgi import AsgiShop

EXPECTED: Final = (
    "a WSGI or ASGI application: a Flask, FastAPI, Starlette or Quart app, "
    "Django's get_wsgi_application() or get_asgi_application()"
)
WSGI_PARAMETERS: Final = 2
ASGI_PARAMETERS: Final = 3
NO_DEFAULT: Final = inspect.Parameter.empty
_WSGI_CLASSES: Final[WeakSet[type]] = WeakSet()  # of applications that were taken before
POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def shop_of(application: Any) -> "WsgiShop | AsgiShop":
    """The application, ready to be called.

    Raises:
        TypeError: it is something else; the message says what was expected.
    """
    if type(application) in _WSGI_CLASSES:
        return WsgiShop(application)
    _refuse_others(application)
    if _is_coroutine_function(application):
        return _asgi(application)
    count = _required_parameters(application)
    if count == ASGI_PARAMETERS:
        return _asgi(application)
    if count not in (None, WSGI_PARAMETERS):
        hint = ": call it, if it creates the application" if count == 0 else ""
        raise TypeError(
            f"deliver_to takes {EXPECTED}; not {_kind(application)}, which takes {count} arguments{hint}"
        )
    # looking at a signature takes as long as a whole request
    if not inspect.isroutine(application) and not isinstance(application, partial):
        _WSGI_CLASSES.add(type(application))
    return WsgiShop(application)


def _refuse_others(application: Any) -> None:
    if isinstance(application, str):
        raise TypeError(_about_text(application))
    is_plain_class = inspect.isclass(application) and not hasattr(application, "__iter__")  # PEP 3333
    if is_plain_class:
        raise TypeError(f"deliver_to takes {EXPECTED}; not the class {application.__name__}")
    if not callable(application):
        raise TypeError(f"deliver_to takes {EXPECTED}; not {_kind(application)}{_meant(application)}")


def _meant(application: Any) -> str:
    """What was probably meant: the application of a module or of a test client."""
    names = [name for name in ("application", "app") if callable(getattr(application, name, None))]
    return f": pass its {names[0]}" if names else ""


def _asgi(application: Any) -> "AsgiShop":
    from payment_sandbox.testing.shops.asgi import AsgiShop  # here, because asyncio takes time to load

    return AsgiShop(application)


def _about_text(text: str) -> str:
    if "://" in text:
        return (
            f"deliver_to takes {EXPECTED}; not the address {text!r}. For a shop that is served there, use "
            f"webhook_url={text!r} in the order, or in the settings of the project"
        )
    return f"deliver_to takes {EXPECTED}; not the text {text!r}: import the application"


def _kind(application: object) -> str:
    if inspect.ismodule(application):
        return f"the module {application.__name__}"
    name = getattr(application, "__qualname__", None)
    kind = f"{type(application).__module__}.{type(application).__qualname__}".removeprefix("builtins.")
    return f"the {kind} {name}" if name else f"a {kind}"


def _is_coroutine_function(application: Any) -> bool:
    return inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(
        getattr(application, "__call__", None)  # noqa: B004 (its kind matters, not whether it exists)
    )


def _required_parameters(application: Any) -> int | None:
    """How many arguments it needs; None if that cannot be told."""
    try:
        parameters = inspect.signature(application).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return None
    return sum(each.kind in POSITIONAL and each.default is NO_DEFAULT for each in parameters)
