"""A shop in aiohttp or Tornado on a port: ``python on_port.py aiohttp``."""

import asyncio
import json
import os
import sys
from base64 import b64encode

PORT, URL, KEY = int(os.environ["PORT"]), os.environ["URL"], os.environ["KEY"]


def address(body: bytes) -> str:
    """Return the address of the order that a webhook names."""
    return f"{URL}/v1/orders/{json.loads(body)['order_id']}/"


def serve_aiohttp() -> None:
    """Serve a shop in aiohttp."""
    from aiohttp import ClientSession, encode_basic_auth, web

    async def webhook(request):
        async with ClientSession(headers={"Authorization": encode_basic_auth(KEY, "")}) as client:
            order = await (await client.get(address(await request.read()))).json()
        return web.Response(text=order["status"])

    app = web.Application()
    app.add_routes([web.post("/slash/", webhook), web.post("/bare", webhook)])
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)


async def serve_tornado() -> None:
    """Serve a shop in Tornado."""
    from tornado.httpclient import AsyncHTTPClient
    from tornado.web import Application, RequestHandler

    class Guarded(RequestHandler):
        async def post(self):
            headers = {"Authorization": f"Basic {b64encode(f'{KEY}:'.encode()).decode()}"}
            answer = await AsyncHTTPClient().fetch(address(self.request.body), headers=headers)
            self.write(json.loads(answer.body)["status"])

    class Webhook(Guarded):
        def check_xsrf_cookie(self):
            """Accept calls of the payment service."""

    routes = [("/slash/", Webhook), ("/bare", Webhook), ("/protected/", Guarded)]
    Application(routes, xsrf_cookies=True).listen(PORT, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    serve_aiohttp() if sys.argv[1] == "aiohttp" else asyncio.run(serve_tornado())
