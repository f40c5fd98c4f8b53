"""The moto server behind the proxy: calls passed on as they came, and calls of the proxy's own.

moto answers in threads that share its tables without a lock: a listing fails with 500 while something is made or ended.
So it gets one call at a time, except those to a queue, which may wait for a message.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from aiohttp import ClientSession, ClientTimeout

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.wire import CallRefused, Tree, WireReply, form, of_xml

_HOP = ("connection", "content-length", "transfer-encoding", "content-encoding", "keep-alive", "accept-encoding")
_TIMEOUT_S = 120
_QUEUES = "sqs"


class Upstream:
    """moto at `url`. Replies of listings that never change are kept, because moto takes seconds for some of them."""

    def __init__(self, url: str, region: str) -> None:
        self.url, self._region = url.rstrip("/"), region
        self._session: ClientSession | None = None
        self._kept: dict[bytes, WireReply] = {}
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> None:
        """Begin to take calls."""
        self._session = ClientSession(timeout=ClientTimeout(total=_TIMEOUT_S))

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()

    async def forward(self, call: ApiCall, body: bytes | None = None) -> WireReply:
        """Pass the call on, with another body where one is given. Queue URLs in replies follow the Host header."""
        headers = {name: value for name, value in call.headers.items() if name.lower() not in _HOP}
        sent = call.body if body is None else body
        return await self._send(call.service, call.method, call.path, headers, sent)

    async def kept(self, call: ApiCall) -> WireReply:
        """The same, asked once only for each body."""
        if call.body not in self._kept:
            self._kept[call.body] = await self.forward(call)
        return self._kept[call.body]

    async def query(self, service: str, action: str, parameters: Tree) -> Tree:
        """A call of our own to EC2 or IAM. Raises CallRefused with moto's error."""
        body = form({"Action": action, "Version": "2016-11-15" if service == "ec2" else "2010-05-08", **parameters})
        headers = {**self._signed(service), "Content-Type": "application/x-www-form-urlencoded"}
        return read_reply(await self._send(service, "POST", "/", headers, body))

    async def queue(self, name: str, body: str) -> None:
        """Put a message into a queue. Raises CallRefused where there is no such queue."""
        headers = {
            **self._signed("sqs"),
            "X-Amz-Target": "AmazonSQS.SendMessage",
            "Content-Type": "application/x-amz-json-1.0",
        }
        message = {"QueueUrl": f"{self.url}/123456789012/{name}", "MessageBody": body}
        reply = await self._send(_QUEUES, "POST", "/", headers, json.dumps(message).encode())
        if not reply.is_good:
            raise CallRefused("QueueDoesNotExist", reply.body.decode())

    def _signed(self, service: str) -> Mapping[str, str]:
        scope = f"faultproxy/20260101/{self._region}/{service}/aws4_request"
        return {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}

    async def _send(self, service: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> WireReply:
        assert self._session is not None
        turn: AbstractAsyncContextManager[object] = nullcontext() if service == _QUEUES else self._one_at_a_time
        async with turn, self._session.request(method, self.url + path, headers=headers, data=body) as reply:
            kind = reply.headers.get("Content-Type", "text/xml")
            kept = {name: reply.headers[name] for name in ("x-amzn-ErrorType",) if name in reply.headers}
            return WireReply(reply.status, await reply.read(), kind, kept)


def read_reply(reply: WireReply) -> Tree:
    """The tree of an XML reply. Raises CallRefused with the error in it."""
    tree = of_xml(reply.body)
    if reply.is_good:
        return tree
    found: Any = tree.get("Errors", tree)
    error = found.get("Error", found)
    raise CallRefused(str(error.get("Code", "InternalError")), str(error.get("Message", "")), reply.status)
