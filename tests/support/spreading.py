"""Distribution of requests over several servers."""

from collections.abc import Sequence
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from payment_sandbox.kernel.ids import Ids


class Spread(HTTPAdapter):
    """An adapter that sends the requests for the first server to a random one."""

    def __init__(self, urls: Sequence[str], seed: int) -> None:
        super().__init__()
        self._urls = urls
        self._ids = Ids(seed)
        self.sent = dict.fromkeys(urls, 0)

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Send the request to a random server."""
        url = self._urls[self._ids.number("server", len(self._urls))]
        self.sent[url] += 1
        request.url = str(request.url).replace(self._urls[0], url, 1)
        return super().send(request, *args, **options)
