"""The cloud of a replica, by `--cloud`: put together, and asked once whether it is there before anything starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kerf.cli.clock import SystemClock
from kerf.cli.exits import ClusterUnreachable
from kerf.cli.run.options import RunOptions
from kerf.cloudprovider import CloudProvider
from kerf.clouds.kwok.cloud import Catalogue, KwokCloud
from kerf.clouds.kwok.records import is_of_real_cloud
from kerf.errors import CloudError, ConfigError, brief
from kerf.kube.client import KubeClient
from kerf.kube.election import Leadership
from kerf.kube.objects import KubeObjects
from kerf.telemetry import logger

_START_S = 30.0
"""A pod is not alive before the cloud has answered: after 50 s kubelet ends it, and nothing says why."""


def check_cloud(options: RunOptions) -> None:
    """Raises InputError for what the cloud cannot use of its own variables and files. Connects nowhere."""
    if options.cloud == "aws":
        from kerf.clouds.aws.clients import BotoApi

        BotoApi(options.region or "", endpoint=options.aws_endpoint or None).check()


@asynccontextmanager
async def the_cloud(
    client: KubeClient, options: RunOptions, leadership: Leadership, catalogue: Catalogue
) -> AsyncIterator[CloudProvider]:
    """The cloud, which changes something only while this replica leads. `catalogue` is what the acted-out one sells.

    Raises InputError, also where machines would be acted out among those of a real cloud, and ClusterUnreachable where
    AWS does not answer or does not know the cluster.
    """
    clock = SystemClock(client.clock.now_s)
    if options.cloud == "aws":
        async with _aws(clock, options, leadership) as cloud:
            yield cloud
        return
    if not options.acted_out_on_real_cluster:
        await _refuse_real_cloud(KubeObjects(client))
    acting = client.guarded(leadership.check) if options.elects else client
    yield KwokCloud(KubeObjects(acting), clock, catalogue, namespace=options.namespace)


@asynccontextmanager
async def _aws(clock: SystemClock, options: RunOptions, leadership: Leadership) -> AsyncIterator[CloudProvider]:
    from kerf.clouds.aws.clients import BotoApi
    from kerf.clouds.aws.provider import AwsCloud, AwsOptions

    region = options.region or ""
    api = BotoApi(region, endpoint=options.aws_endpoint or None)
    if options.elects:
        api.guarded_by(leadership.check)
    try:
        wanted = AwsOptions(options.cluster_name, region, options.interruption_queue)
        try:
            async with asyncio.timeout(_START_S):
                cloud = await AwsCloud.connect(api, clock, wanted)
        except CloudError as error:
            raise ClusterUnreachable(f"AWS {region}, cluster {options.cluster_name}: {error}") from error
        except TimeoutError as error:
            said = f"DescribeCluster: no answer within {_START_S:g} s"
            raise ClusterUnreachable(f"AWS {region}, cluster {options.cluster_name}: {said}") from error
        if not wanted.queue:
            detail = "no --interruption-queue: spot notices are not read, and nodes end without being drained"
            logger("kerf").warning("degraded", detail=detail)
        yield cloud
    finally:
        api.close()


async def _refuse_real_cloud(objects: KubeObjects) -> None:
    """Acted-out machines are Nodes without a machine: pods that a real cluster binds to them never run.

    Raises ConfigError with the first node of a real cloud.
    """
    async for nodes in objects.pages("Node"):
        for node in nodes:
            provider_id = str((node.get("spec") or {}).get("providerID") or "")
            if is_of_real_cloud(provider_id):
                raise ConfigError(
                    f"--cloud kwok: expected a test cluster, got node {node['metadata']['name']} of a real cloud: "
                    f"providerID {brief(provider_id)} (hint: --cloud aws launches EC2 instances; "
                    "--acted-out-on-real-cluster acts out machines here all the same)"
                )
