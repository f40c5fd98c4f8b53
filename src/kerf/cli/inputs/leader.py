"""What only the running leader knows: stock-outs, back-offs, its last decisions, and with which settings it decides.

All of it lives in the leader's memory and is gone with the process. So it may be missing at any time, and a dump is
worth having without it, as long as it says so.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from kerf.cli.inputs.leaderflags import LeaderFlags
from kerf.errors import ApiError, DecodeError, InputError, KerfError
from kerf.kube.client import ClusterTarget, KubeClient, NoCluster
from kerf.kube.decisions import PATH, read_decisions
from kerf.manifests.clusterdump.decode import DECISIONS, MARKET, withheld_of
from kerf.manifests.schema import Report, path_text
from kerf.model.market import NOTHING_WITHHELD, Withheld

_ANSWER_S = 15
_MOST_LETTERS = 600
"""Of a reason; the line that a role lacks must fit."""
_MOST_BYTES = 4 * 1024 * 1024


class NoLeader(KerfError):
    """The leader did not answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the leader said. `catalog` and `region` are those that it was started with, empty where it was not.

    `plugin_namespaces` is empty where it does not state them, as an older Kerf.
    """

    strategy: str = "cost"
    follow: str = "auto"
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    plugin_namespaces: tuple[str, ...] = ()
    catalog: str = ""
    region: str = ""
    withheld: Withheld = NOTHING_WITHHELD
    decisions: tuple[Mapping[str, Any], ...] = ()
    shadow: "ShadowReport | None" = None
    refused: "RefusedReport | None" = None


def ask_leader(kubeconfig: str | None, context: str | None, flags: LeaderFlags) -> Answer:
    """What the leader remembers. Raises NoLeader, and InputError for flags that do not go together."""
    if bool(flags.url) != bool(flags.token_file):
        raise InputError("--leader-url and --leader-token-file: expected both or none of them")
    if flags.url and not flags.url.startswith(("http://", "https://")):
        raise InputError(f"--leader-url {flags.url[:80]}: expected a URL such as http://127.0.0.1:8080")
    try:
        asked = _from_url(flags) if flags.url else _through_server(ClusterTarget(kubeconfig, context), flags)
        return asyncio.run(_answered(asked))
    except NoCluster as error:
        raise NoLeader("no cluster") from error
    except ApiError as error:
        raise NoLeader(" ".join(str(error).split())[:_MOST_LETTERS]) from error


async def _answered(asked: Awaitable[bytes]) -> Answer:
    # Small values only: at its end asyncio makes a repr of what the main task gives.
    return answer_of(await asked)


async def _through_server(target: ClusterTarget, flags: LeaderFlags) -> bytes:
    client = await KubeClient.connect(target)
    try:
        return await read_decisions(client, flags.namespace, flags.port, flags.account)
    finally:
        await client.close()


async def _from_url(flags: LeaderFlags) -> bytes:
    import aiohttp

    token = Path(flags.token_file).read_text(encoding="utf-8").strip()
    limit = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            # A redirect would carry the token to the server that is named there.
            session.get(
                flags.url.rstrip("/") + PATH, headers={"Authorization": f"Bearer {token}"}, allow_redirects=False
            ) as response,
        ):
            body = await response.content.read(_MOST_BYTES + 1)
            if response.status != 200:
                raise ApiError(f"HTTP {response.status}: {body[:200].decode(errors='replace').strip()}")
            return body
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise ApiError(f"{flags.url[:80]}: {error or 'no answer in time'}") from error


def answer_of(body: bytes) -> Answer:
    """The answer as a value. Raises ApiError for what is none."""
    if len(body) > _MOST_BYTES:
        raise ApiError(f"the leader's answer is larger than {_MOST_BYTES} bytes")
    try:
        raw = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError as error:
        raise ApiError(f"the leader's answer is not that of kerf: {error}") from error
    report = Report()
    MARKET.check(raw.market, ("market",), report)
    DECISIONS.check(raw.decisions, ("decisions",), report)
    if report.problems:
        problem = report.problems[0]
        said = DecodeError(path_text(problem.path), problem.expected, problem.got)
        raise ApiError(f"the leader's answer: {said}")
    settings, catalogue = raw.settings, raw.catalogue
    return Answer(
        settings.strategy,
        settings.follow,
        settings.preference_policy,
        settings.min_values_policy,
        tuple(settings.plugin_namespaces),
        catalogue.name,
        catalogue.region,
        withheld_of(raw.market),
        tuple(raw.decisions),
        raw.shadow,
        raw.refused,
    )


class _Settings(msgspec.Struct):
    strategy: Literal["cost", "first-fit"] = "cost"
    follow: Literal["auto", "reserve", "pin", "off"] = "auto"
    preference_policy: Literal["Respect", "Ignore"] = msgspec.field(name="preferencePolicy", default="Respect")
    min_values_policy: Literal["Strict", "BestEffort"] = msgspec.field(name="minValuesPolicy", default="Strict")
    plugin_namespaces: list[str] = msgspec.field(name="pluginNamespaces", default_factory=list)


class _Catalogue(msgspec.Struct):
    name: str = ""
    region: str = ""


class ShadowType(msgspec.Struct, rename="camel"):
    """Nodes of one type."""

    instance_type: str
    capacity_type: str
    nodes: int


class ShadowFleet(msgspec.Struct, rename="camel"):
    """Nodes, and what they cost per hour."""

    nodes: int
    per_hour: float
    types: list[ShadowType] = []


class ShadowWave(msgspec.Struct, rename="camel"):
    """Nodes that another autoscaler launched together, beside those that Kerf would have bought for their pods."""

    began: str
    ended: str
    pods: int
    present: ShadowFleet
    planned: ShadowFleet
    placed_on_others: int = 0
    unplaced: int = 0
    failed: int = 0


class ShadowReport(msgspec.Struct):
    """What the leader of a dry run has compared: sums since it leads, and the last waves."""

    since: str
    count: int
    pods: int
    present: ShadowFleet
    planned: ShadowFleet
    waves: list[ShadowWave] = []


class Breach(msgspec.Struct):
    """What of a decision broke a rule."""

    rule: str
    object: str
    expected: str
    got: str


class RefusedReport(msgspec.Struct):
    """How many decisions broke a rule and were not carried out so, and what was wrong with the last of them."""

    count: int
    at: str
    breaches: list[Breach] = []


class _Answer(msgspec.Struct):
    settings: _Settings = msgspec.field(default_factory=_Settings)
    catalogue: _Catalogue = msgspec.field(default_factory=_Catalogue)
    market: dict[str, Any] = {}
    decisions: list[dict[str, Any]] = []
    refused: RefusedReport | None = None
    shadow: ShadowReport | None = None
