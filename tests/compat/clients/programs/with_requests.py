import os
import sys

import requests

url, method, connection = sys.argv[1:4]
with requests.Session() as session:
    session.auth = (os.environ["API_KEY"], "")
    if connection == "kept":
        session.get(url, timeout=30)
    print(session.request(method, url, data=sys.stdin.buffer.read() or None, timeout=30).status_code)
