"""HTTP clients that send a request again by themselves after a lost response, and how to stop them.

The code that made the call does not learn of it: it made one call, and gets the answer to the last request.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Final, NamedTuple

from payment_sandbox.projects.journal import EpochJournal, LoggedRequest

NEWEST_MAX: Final = 100
"""The number of newest requests among which the lost one is looked for."""
AT_ONCE: Final = timedelta(milliseconds=100)
POST: Final = "POST"
REPEATED_METHODS: Final = (POST, "PUT", "DELETE")
FRESH_CONNECT: Final = "set CURLOPT_FRESH_CONNECT, so that no call uses a kept connection"
READ_FIRST: Final = "it has no setting against this: read the order when a cancellation fails"


class HttpClient(NamedTuple):
    """A client, and the number of requests that the measured version sends for one call without a response.

    The numbers are for a kept connection, where that makes a difference.
    """

    name: str
    agent: str  # the start of its User-Agent, or of a later word in it; empty: it sends none
    version: str
    posts: int
    deletes: int
    remedy: str
    within: timedelta = AT_ONCE  # the longest wait before it sends a request again
    header: str = ""  # it only sends a POST with this header again

    def repeats(self, method: str, headers: frozenset[tuple[str, str]]) -> bool:
        """Whether a request with these headers may be from this client, which would send it again."""
        agents = [value for name, value in headers if name == "user-agent"]
        if not any(f" {agent}".find(f" {self.agent}") >= 0 for agent in agents) if self.agent else agents:
            return False
        if method != POST:
            return self.deletes > 1
        return self.posts > 1 and (not self.header or any(name == self.header for name, _ in headers))


HTTP_CLIENTS: Final = (
    HttpClient(
        "Java's HttpURLConnection",
        "Java/",
        "17",
        2,
        2,
        "start Java with -Dsun.net.http.retryPost=false or call setFixedLengthStreamingMode, "
        "and for a DELETE use java.net.http.HttpClient",
    ),
    HttpClient("PHP's curl extension", "", "8.2 with libcurl 7.88", 2, 2, FRESH_CONNECT),
    HttpClient("Guzzle", "GuzzleHttp/", "7.4", 2, 2, FRESH_CONNECT),
    HttpClient("Symfony HttpClient", "Symfony HttpClient", "5.4", 2, 2, FRESH_CONNECT),
    HttpClient("libcurl", "curl/", "7.88", 2, 2, FRESH_CONNECT),
    HttpClient("libcurl under R or pycurl", "libcurl/", "7.88", 2, 2, FRESH_CONNECT),
    HttpClient("OkHttp", "okhttp/", "3.13", 2, 2, "build the client with retryOnConnectionFailure(false)"),
    HttpClient(
        "Go's net/http",
        "Go-http-client/",
        "1.19",
        2,
        2,
        "keep the Idempotency-Key, which makes a second request harmless",
        header="idempotency-key",
    ),
    HttpClient("wget", "Wget/", "1.21", 20, 20, "call it with --tries=1", timedelta(seconds=11)),
    HttpClient("urllib3", "python-urllib3/", "2.8", 1, 4, "pass retries=False"),
    HttpClient(
        "Apache HttpClient", "Apache-HttpClient/", "4.5", 1, 4, "build it with disableAutomaticRetries()"
    ),
    HttpClient("got", "got ", "14.6", 1, 3, "pass retry: {limit: 0}", timedelta(seconds=2.5)),
    HttpClient("ky on Node's fetch", "node", "1.14", 1, 3, "pass retry: 0", timedelta(seconds=1)),
    HttpClient("aiohttp", "aiohttp/", "3.14", 1, 2, READ_FIRST),
    HttpClient("Ruby's Net::HTTP", "Ruby", "3.1", 1, 2, "set max_retries = 0"),
    HttpClient("Perl's HTTP::Tiny", "HTTP-Tiny/", "0.080", 1, 2, READ_FIRST),
)
"""The measured clients; in a test run, ``tests/compat/clients`` measures those on the machine again."""


def client_of(entry: LoggedRequest) -> HttpClient | None:
    """Return the client that may have sent a request, if it sends such requests again."""
    headers = _comparable_headers(entry)
    return next((each for each in HTTP_CLIENTS if each.repeats(entry.method, headers)), None)


def find_resent(journal: EpochJournal, entry: LoggedRequest) -> str | None:
    """Find the lost request that a client may have sent again as ``entry``, and return its id.

    The requests are equal, and so close in real time that only a client repeats them.
    """
    client = client_of(entry) if entry.method in REPEATED_METHODS else None
    arrived_at = entry.real_at
    if client is None or arrived_at is None:
        return None
    for earlier in _lost_before(journal, entry):
        lost_at = earlier.answered_at or arrived_at
        if lost_at <= arrived_at <= lost_at + client.within and _is_same(earlier, entry):
            return earlier.id
    return None


def _lost_before(journal: EpochJournal, entry: LoggedRequest) -> Iterator[LoggedRequest]:
    for earlier in islice(reversed(journal.of(LoggedRequest)), NEWEST_MAX):
        if earlier.fault is not None and earlier.fault.sends_nothing:
            yield earlier


def _is_same(one: LoggedRequest, other: LoggedRequest) -> bool:
    return (one.method, one.path, one.query, one.request) == (
        other.method,
        other.path,
        other.query,
        other.request,
    ) and _comparable_headers(one) == _comparable_headers(other)


def _comparable_headers(entry: LoggedRequest) -> frozenset[tuple[str, str]]:
    return frozenset((name.lower(), value) for name, value in entry.request_headers)
