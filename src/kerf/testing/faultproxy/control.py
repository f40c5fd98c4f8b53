"""The switches over HTTP, for what does not share a process with the proxy: a shell, a playground.

    curl -d '{"instance_type": "g6f.large"}' $URL/_faultproxy/stock/sell_out
    curl -d '{"instance": "i-0123"}' $URL/_faultproxy/events/spot_notice
    curl $URL/_faultproxy/calls

A switch is `room/method` with the arguments as JSON.
"""

import asyncio
import json
from dataclasses import asdict
from typing import Any, Protocol

from aiohttp import web

from kerf.testing.faultproxy.calls import Recorded

ROOMS = {
    "stock": ("cap", "exhaust", "free", "limit", "price", "restock", "sell_out", "spot_price", "withdraw"),
    "images": ("release_al2023", "release_bottlerocket", "remove"),
    "instances": ("impair", "lag", "schedule", "seed", "take_time"),
    "faults": (
        "answer_html",
        "delay",
        "deny",
        "fail",
        "lose_reply",
        "lose_request",
        "permit",
        "throttle",
    ),
    "permissions": ("enforce", "lift", "new_account"),
    "events": ("health", "raw", "rebalance", "reservation_notice", "spot_notice", "state_change"),
}
"""The switches that can be turned from outside: those with arguments that JSON has."""


class Controlled(Protocol):
    """The proxy: its rooms are attributes with the names of `ROOMS`."""

    calls: list[Recorded]


class Control:
    """Answers under `/_faultproxy/`."""

    def __init__(self, proxy: Controlled) -> None:
        self._proxy = proxy

    async def handle(self, request: web.Request) -> web.Response:
        """`GET calls`, or `POST room/method`; 404 for what is no switch, 400 for arguments that it does not take."""
        path = request.match_info["path"]
        if request.method == "GET" and path == "calls":
            return web.json_response([asdict(call) for call in self._proxy.calls])
        room, _, method = path.partition("/")
        if request.method != "POST" or method not in ROOMS.get(room, ()):
            return web.json_response({"error": f"no switch {path}", "switches": ROOMS}, status=404)
        switch = getattr(getattr(self._proxy, room), method)
        try:
            given: Any = json.loads(await request.read() or b"{}")
            positional = given if isinstance(given, list) else ()
            named = given if isinstance(given, dict) else {}
            # Events wait for the proxy's own loop, so they must not run in it.
            await asyncio.get_running_loop().run_in_executor(None, lambda: switch(*positional, **named))
        except (KeyError, TypeError, ValueError) as error:
            return web.json_response({"error": repr(error)}, status=400)
        return web.json_response({})
