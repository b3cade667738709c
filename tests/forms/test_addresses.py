"""The HTTP client can send to every accepted address; a refused address comes with a reason."""

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payment_sandbox.forms.merchant_urls import URL_LENGTH_MAX, url_problem

HOSTILE_TEXTS = st.text(
    st.sampled_from("ab0189.-_~%:/?#[]@!$&'()*+,;=<>\"{}|^`․。．①ß☃é\u00ad\u200d٣İxn"), max_size=12
)
HOSTS = st.one_of(HOSTILE_TEXTS, st.from_regex(r"[a-z0-9.x-]{1,12}", fullmatch=True), st.text(max_size=8))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTS, HOSTILE_TEXTS)
def test_accepted_addresses_suit_the_http_client(host: str, rest: str) -> None:
    """The HTTP client accepts every address that the sandbox accepts."""
    url = f"http://{host}/{rest}"
    if url_problem(url) is None:
        prepared = requests.Request("POST", url).prepare()
        assert prepared.url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"http://shop.example/{'a' * URL_LENGTH_MAX}", "longer than 2048 characters"),
        ("http://shop.example/a b", "a space"),
        ("http://shop.example\\paid", "a backslash"),
        ("ftp://shop.example/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("http:///paid", "no host"),
        ("http://me:secret@shop.example/", "credentials"),
        ("http://shop.example:65536/", "Port"),
        ("http://1.2.3.256/", "host name"),
    ],
)
def test_refused_addresses_have_a_reason(url: str, problem: str) -> None:
    """The message names the problem in words that a developer can act on."""
    assert problem in str(url_problem(url))
