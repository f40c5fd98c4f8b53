"""A cloud for tests of providers: boto3 speaks to a proxy, and the proxy to a moto server behind it.

moto takes every request and always has an instance; a cloud does not. The proxy gives moto what it lacks: stock that
ends, fleets that come in part, client tokens, throttling, replies that are lost, listings that lag, states that take
time, notices, releases of images, prices. Each is a switch that a test turns (see `server.FaultProxy`).

moto is no dependency of Kerf: a test starts it (`pip install moto[server]`, `moto_server -p 5000`) and gives its URL.
"""
