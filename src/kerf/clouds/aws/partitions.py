"""The partitions of AWS: which regions belong together, have their own accounts, and begin their ARNs alike."""

_BEGINNINGS = {
    "cn-": "aws-cn",
    "eusc-": "aws-eusc",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
}
"""How the regions of a partition begin (botocore 1.44, data/partitions.json, 2026-11)."""
_COMMERCIAL = ("af-", "ap-", "ca-", "eu-", "il-", "me-", "mx-", "sa-", "us-")
AWS = "aws"


def partition_of(region: str) -> str | None:
    """The partition, e.g. `aws-cn`; None where the name of the region does not say it: a newer one may be of any."""
    for beginning, partition in _BEGINNINGS.items():
        if region.startswith(beginning):
            return partition
    return AWS if region.startswith(_COMMERCIAL) else None


_PRICED_IN = {
    "aws-cn": "cn-northwest-1",
    "aws-eusc": "eusc-de-east-1",
    "aws-us-gov": "",
    "aws-iso": "us-iso-east-1",
    "aws-iso-b": "us-isob-east-1",
    "aws-iso-e": "eu-isoe-west-1",
    "aws-iso-f": "us-isof-south-1",
}
_PRICED_IN_AWS = {"ap": "ap-south-1", "eu": "eu-central-1"}
"""Regions that answer Pricing, of the partition aws by how a region begins (botocore 1.44, data/endpoints.json,
`api.pricing`, 2026-11)."""


def price_region_of(region: str) -> str:
    """The region that is asked for prices of this one; empty for a partition whose credentials none answers."""
    return _PRICED_IN.get(partition_of(region) or AWS, _PRICED_IN_AWS.get(region[:2], "us-east-1"))
