"""Whatever reads foreign text takes time in proportion to its length."""

import gc
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import thread_time
from typing import Any

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder

from payment_sandbox.forms.base import nearest_word
from payment_sandbox.forms.merchant_urls import url_problem
from payment_sandbox.kernel.masking import Masking, mask
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.find_orders import OrderFilter, find_orders
from payment_sandbox.orders.amounts import convert_cents, parse_euros
from payment_sandbox.orders.order import locale_of
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.loader import load_text
from payment_sandbox.scenarios.model import matches_glob
from payment_sandbox.serving.server import Server
from payment_sandbox.ui.dashboard.frame import shorten_ids
from payment_sandbox.ui.docs.rendering import render
from payment_sandbox.ui.pages.language import choose
from payment_sandbox.web.auth import parse_api_key
from payment_sandbox.web.bodies import parse
from tests.support.driver import Sandbox, card
from tests.support.samples import of_the_day

LENGTH = 2500
GROWTH_MAX = 2.5
RUNS_MAX = 8
NOISE_SECONDS = 0.01
"""A shorter time is not compared: at this length, a quadratic function takes much longer."""
SLOW_READERS = ("YAML", "scenario", "Markdown")
SLOW_TEXTS = 8
"""The number of texts for a slow reader, other ones each day; ``ATTACK=full`` tries all."""
KEY = "0123456789abcdef-key"
MASKING = Masking()
MASKING.api_key = KEY

PARTS = [
    *"\\%\"'<>&;:=,.-+ _/#*|`~[{(01945aczT\n\t\u00e9\u200b",
    *[
        "\\u",
        "%2",
        "%20",
        "cvc",
        "cvc=",
        '"cvc":',
        "x=1&",
        "&#",
        "/v1/",
        "a:",
        "P1D",
        "](",
        "**",
        "[a](",
        "0123456789abcdef",
        "00000000-",
        "😀",
    ],
    *("basic ", "4 ", "4-", "- "),
]


def _repeat(part: str, length: int) -> str:
    return part * (length // len(part))


Texts = Mapping[str, Callable[[int], str]]
"""Makers of texts, given their length."""

TEXTS: Texts = {
    **{ascii(part): partial(_repeat, part) for part in PARTS},
    "brackets": lambda length: "[" * (length // 2) + "]" * (length // 2),
    "objects": lambda length: '{"a":' * (length // 5) + "1",
    "cvc objects": lambda length: '{"cvc": [123' * (length // 12),
    "quotes": lambda length: '"' + '\\"' * (length // 2),
    "a list": lambda length: "1," * (length // 2) + "1",
    "almost a number": lambda length: "4111 1111 1111 111" * (length // 18),
    "almost an identifier": lambda length: "41111111-1111-4111-8111-11111111111" * (length // 35),
    "almost Basic": lambda length: "basic " + "a" * length,
}


def read_header(name: str, read: Callable[[Any], object]) -> Callable[[str], object]:
    """Return a reader of a request's header."""

    def read_one(text: str) -> object:
        value = text.encode("latin-1", "replace").decode("latin-1").replace("\n", " ").replace("\r", " ")
        return read(EnvironBuilder(headers=Headers({name: value})).get_request())

    return read_one


def read_query(text: str) -> object:
    """Read a request's query."""
    return EnvironBuilder(query_string=text).get_request().args


READERS: dict[str, Callable[[str], object]] = {
    "mask": lambda text: mask(text, KEY),
    "mask a field": lambda text: MASKING.mask_record({"a": text, text[:200]: ("cvc", text)}),
    "JSON": lambda text: parse(text.encode("utf-8", "replace")),
    "YAML": parse_yaml,
    "scenario": lambda text: load_text(text, METHOD_NAMES, check_scenario_settings),
    "glob": lambda text: matches_glob(text, "*a*1*@*.com"),
    "API key": parse_api_key,
    "If-Match": read_header("If-Match", lambda request: request.if_match.contains("x")),
    "Accept-Language": read_header(
        "Accept-Language", lambda request: choose(None, None, list(request.accept_languages.values()))
    ),
    "locale": locale_of,
    "query": read_query,
    "form": lambda text: (
        EnvironBuilder(method="POST", data=text, content_type="application/x-www-form-urlencoded")
        .get_request()
        .form
    ),
    "address": url_problem,
    "duration": Period.parse,
    "euros": parse_euros,
    "nearest word": lambda text: nearest_word(text, METHOD_NAMES),
    "one line": make_printable,
    "cents": convert_cents,
    "short ids": shorten_ids,
    "Markdown": lambda text: render(f"# A\n\n{text}", "/docs/"),
}


def seconds(read: Callable[[str], object], text: str) -> float:
    """Return the processor time of a run, without garbage collection."""
    gc.disable()
    started = thread_time()
    with suppress(Exception):  # most texts are refused
        read(text)
    duration = thread_time() - started
    gc.enable()
    return duration


def growth(read: Callable[[str], object], make: Callable[[int], str], length: int) -> str:
    """Say how much longer a text of twice the length takes, in the fastest of several runs; empty if it is short."""
    whole = half = float("inf")
    for _ in range(RUNS_MAX):
        whole = min(whole, seconds(read, make(2 * length)))
        if whole < NOISE_SECONDS:
            return ""
        half = min(half, seconds(read, make(length)))
        if whole <= GROWTH_MAX * half:
            return ""
    return f"{1000 * half:.0f} ms, twice as long: {1000 * whole:.0f} ms"


def growing(read: Callable[[str], object], texts: Texts = TEXTS) -> dict[str, str]:
    """Return the texts whose reading time grows faster than their length, twice: a full cache does it once."""
    problems = {}
    for name, make in texts.items():
        if growth(read, make, LENGTH) and (problem := growth(read, make, 2 * LENGTH)):
            problems[name] = problem
    return problems


@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_time_in_proportion_to_the_length(reader: str) -> None:
    """Twice the length takes at most 2.5 times as long, for hostile texts of every kind."""
    names = of_the_day(TEXTS, SLOW_TEXTS) if reader in SLOW_READERS else [*TEXTS]
    assert growing(READERS[reader], {name: TEXTS[name] for name in names}) == {}


def test_a_search_takes_time_in_proportion_to_the_length(sandbox: Sandbox, server: Server) -> None:
    """The search of orders is linear in the search words."""
    sandbox.place(card(), description="a" * 1000)
    project = server.registry.find(sandbox.key)
    assert project is not None
    assert growing(lambda text: list(find_orders(project.epoch, OrderFilter(text=text)))) == {}
