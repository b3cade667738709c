"""HTTP calls with time and size limits, since a server under verification may send anything."""

from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias

import requests

from payment_sandbox.serving.sessions import describe_failure

TIMEOUT_SECONDS: Final = 30.0  # longest wait without receiving a byte
ANSWER_SECONDS: Final = 40.0
ANSWER_BYTES_MAX: Final = 8 << 20
PIECE_BYTES: Final = 1 << 16

FetchedAnswer: TypeAlias = "tuple[requests.Response, bytes]"
"""An answer and its body."""


class CallFailed(Exception):
    """A call got no usable answer; the message is the reason."""


class UnusableAnswer(CallFailed):
    """A call got an endless or unreadable answer, so a retry would be pointless."""


def fetch_answer(
    session: "requests.Session",
    method: str,
    url: str,
    data: Any,
    headers: Mapping[str, str],
    auth: Any = None,
    seconds: float = ANSWER_SECONDS,
) -> FetchedAnswer:
    """Make a call and return the answer with its body; redirects are not followed.

    Raises:
        CallFailed: the answer is late or too large.
    """
    result: SimpleQueue[FetchedAnswer | CallFailed] = SimpleQueue()

    def fetch() -> None:
        try:
            result.put(_fetch_bounded(session, method, url, data, headers, auth))
        except CallFailed as failed:
            result.put(failed)
        except Exception as error:  # libraries raise any exception on unusual answers
            result.put(UnusableAnswer(f"its answer cannot be read: {type(error).__name__}: {error}"))

    Thread(target=fetch, name="verify", daemon=True).start()
    try:
        answer = result.get(timeout=seconds)
    except Empty:
        raise UnusableAnswer(f"its answer took more than {seconds:g} s") from None
    if isinstance(answer, CallFailed):
        raise answer
    return answer


def _fetch_bounded(
    session: "requests.Session", method: str, url: str, data: Any, headers: Mapping[str, str], auth: Any
) -> FetchedAnswer:
    """Make a call and read the body up to the limit.

    Raises:
        CallFailed: the answer is missing or too large.
    """
    body = bytearray()
    try:
        reply = session.request(
            method,
            url,
            data=data,
            headers=headers,
            auth=auth,
            allow_redirects=False,
            timeout=TIMEOUT_SECONDS,
            stream=True,
        )
        with reply:
            for piece in reply.iter_content(PIECE_BYTES):
                body += piece
                if len(body) > ANSWER_BYTES_MAX:
                    raise UnusableAnswer(f"its answer has more than {ANSWER_BYTES_MAX >> 20} MiB")
    except requests.RequestException as error:
        raise CallFailed(describe_failure(error, url)) from None
    return reply, bytes(body)
