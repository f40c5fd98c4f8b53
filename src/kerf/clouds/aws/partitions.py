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
