import os
import sys

import urllib3

url, method, connection = sys.argv[1:4]
key = f"{os.environ['API_KEY']}:"
headers = {**urllib3.make_headers(basic_auth=key), "Content-Type": "application/json"}
pool = urllib3.PoolManager(retries=False if "once" in sys.argv else None)
if connection == "kept":
    pool.request("GET", url, headers=headers)
print(pool.request(method, url, headers=headers, body=sys.stdin.buffer.read() or None).status)
