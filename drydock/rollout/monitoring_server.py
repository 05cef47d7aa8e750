"""Serves the zoo's Prometheus over HTTP: instant queries only."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from drydock.zoo.monitoring import Monitoring


@contextlib.asynccontextmanager
async def serving(monitoring: Monitoring) -> AsyncIterator[str]:
    """The URL on 127.0.0.1 under which the server answers during the block."""

    async def answer(request: web.Request) -> web.Response:
        asked = {**request.query, **(await request.post() if request.method == "POST" else {})}
        code, body = monitoring.answer(str(asked.get("query", "")), request.headers)
        return web.json_response(body, status=code)

    application = web.Application()
    application.router.add_route("*", "/api/v1/query", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
