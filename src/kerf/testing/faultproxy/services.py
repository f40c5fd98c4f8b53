"""The other services: what moto does not answer, or answers wrongly, of SSM, Pricing, EKS and IAM."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.images import ImageTable
from kerf.testing.faultproxy.stock import Stock
from kerf.testing.faultproxy.upstream import Upstream
from kerf.testing.faultproxy.wire import CallRefused, Tree, WireReply, json_reply, listed, of_xml, xml

_PAGE = 100
_IAM_NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/"


@dataclass(frozen=True)
class CloudCluster:
    """An EKS cluster as DescribeCluster says it. `ca` is the certificate authority's PEM in base64."""

    name: str
    endpoint: str
    ca: str
    version: str = "1.34"
    service_cidr: str = "10.100.0.0/16"
    family: str = "ipv4"


class Services:
    """The services beside EC2. `clusters` are those that a test has added; others are moto's."""

    def __init__(self, upstream: Upstream, stock: Stock, images: ImageTable) -> None:
        self._upstream, self._stock, self._images = upstream, stock, images
        self.clusters: dict[str, CloudCluster] = {}

    def cluster(self, cluster: CloudCluster) -> None:
        """Add a cluster, or put this one in the place of that with its name."""
        self.clusters[cluster.name] = cluster

    async def answer(self, call: ApiCall) -> WireReply:
        """The reply. Raises CallRefused."""
        parameters = call.parameters
        if call.name == "ssm:GetParameter" and str(parameters.get("Name")).startswith("/aws/"):
            return json_reply({"Parameter": self._parameter(parameters["Name"])})
        if call.name == "pricing:GetProducts":
            return self._products(parameters)
        if call.name == "eks:DescribeCluster" and parameters["name"] in self.clusters:
            return json_reply({"cluster": _cluster(self.clusters[parameters["name"]])}, "application/json")
        if call.name == "iam:ListInstanceProfiles":
            return await self._profiles(call)
        return await self._upstream.forward(call)

    def _parameter(self, name: str) -> Tree:
        if name not in self._images.parameters:
            raise CallRefused("ParameterNotFound", "")
        return {
            "Name": name,
            "Type": "String",
            "Value": self._images.parameters[name],
            "Version": 1,
            "DataType": "text",
        }

    def _products(self, parameters: Tree) -> WireReply:
        """Entries of the price list; each is a text of JSON within the JSON."""
        wanted = {term["Field"]: term["Value"] for term in parameters.get("Filters", ())}
        kinds = [kind for kind in sorted(self._stock.on_demand_usd) if wanted.get("instanceType", kind) == kind]
        begin = int(parameters.get("NextToken") or 0)
        end = begin + int(parameters.get("MaxResults") or _PAGE)
        entries = [_entry(kind, self._stock.on_demand_usd[kind], wanted) for kind in kinds[begin:end]]
        reply: Tree = {"FormatVersion": "aws_v1", "PriceList": entries}
        return json_reply({**reply, "NextToken": str(end)} if end < len(kinds) else reply)

    async def _profiles(self, call: ApiCall) -> WireReply:
        """Those below the path that is asked for, which moto does not look at."""
        reply = await self._upstream.forward(call)
        prefix = call.parameters.get("PathPrefix", "/")
        if not reply.is_good or prefix == "/":
            return reply
        tree = of_xml(reply.body)["ListInstanceProfilesResult"]
        kept = [item for item in listed(tree, "InstanceProfiles") if item["Path"].startswith(prefix)]
        text = xml("InstanceProfiles", kept).replace("<item>", "<member>").replace("</item>", "</member>")
        result = xml("IsTruncated", False) + text
        body = f'<ListInstanceProfilesResponse xmlns="{_IAM_NAMESPACE}"><ListInstanceProfilesResult>{result}'
        return WireReply(200, f"{body}</ListInstanceProfilesResult></ListInstanceProfilesResponse>".encode())


def _entry(kind: str, usd: float, wanted: Mapping[str, str]) -> str:
    attributes = {
        "instanceType": kind,
        "regionCode": wanted.get("regionCode", "us-east-1"),
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "preInstalledSw": "NA",
    }
    price = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    terms = {"OnDemand": {f"{kind}.T": {"priceDimensions": {f"{kind}.T.D": price}}}}
    product = {"productFamily": "Compute Instance", "sku": kind, "attributes": {**attributes, **_echo(wanted)}}
    return json.dumps({"serviceCode": "AmazonEC2", "product": product, "terms": terms})


def _echo(wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Whatever else is filtered by, an entry has it: there is one price a type."""
    return {name: value for name, value in wanted.items() if name not in ("instanceType", "regionCode")}


def _cluster(cluster: CloudCluster) -> Tree:
    network = {"serviceIpv4Cidr": cluster.service_cidr, "ipFamily": cluster.family}
    if cluster.family == "ipv6":
        network = {"serviceIpv6Cidr": cluster.service_cidr, "ipFamily": cluster.family}
    return {
        "name": cluster.name,
        "arn": f"arn:aws:eks:us-east-1:123456789012:cluster/{cluster.name}",
        "endpoint": cluster.endpoint,
        "certificateAuthority": {"data": cluster.ca},
        "version": cluster.version,
        "status": "ACTIVE",
        "kubernetesNetworkConfig": network,
    }
