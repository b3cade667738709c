#!/usr/bin/env bash
# responses 0.26.3 with requests 2.34.2 and urllib3 2.8.0 on Python 3.11, run on 2026-11-28
# A session whose adapter has a urllib3 Retry, under responses: status codes are retried as often as Retry says, but at
# once, without its back-off or the server's Retry-After. A ConnectionError as the body is raised at the first call, though
# the same Retry repeats a real one. So a test sees a third of what the policy does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check responses==0.26.3 requests==2.34.2 urllib3==2.8.0
seen=$(venv/bin/python - << 'PROGRAM'
import time

import requests
import responses
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=Retry(total=3, backoff_factor=2, status_forcelist=[503])))
with responses.RequestsMock() as mock:
    mock.get("http://shop.test/status", status=503, headers={"Retry-After": "3"})
    mock.get("http://shop.test/status", status=503)
    mock.get("http://shop.test/status", status=200)
    began = time.monotonic()
    print(session.get("http://shop.test/status").status_code, "after", len(mock.calls), "calls")
    print("waited:", time.monotonic() - began > 1)
with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
    mock.get("http://shop.test/lost", body=requests.ConnectionError("lost"))
    mock.get("http://shop.test/lost", status=200)
    try:
        print(session.get("http://shop.test/lost").status_code)
    except requests.ConnectionError as error:
        print(error, "after", len(mock.calls), "call")
PROGRAM
)
expected=$(cat << 'EXPECTED'
200 after 3 calls
waited: False
lost after 1 call
EXPECTED
)
echo "$seen"
[ "$seen" = "$expected" ] || { echo "The behaviour has changed; it was:" && echo "$expected" && exit 1; }
