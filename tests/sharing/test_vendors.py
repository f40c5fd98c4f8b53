"""Whose accelerators a resource stands for."""

import pytest

from kerf.sharing.unsupported import UNSUPPORTED
from kerf.sharing.vendors import VENDORS, title_of


@pytest.mark.parametrize(
    ("resource", "title"),
    [
        ("habana.ai/gaudi", "Intel Gaudi"),
        ("google.com/tpu", "Google TPUs"),
        ("vastaitech.com/va", "Vastai"),
        ("birentech.com/gpu", "Biren"),
        ("birentech.com/1-4-gpu", "Biren"),
        ("rebellions.ai/ATOM", "Rebellions"),
        ("amd.com/gpu", "AMD GPUs"),
        ("huawei.com/Ascend910", "Huawei Ascend"),
        ("acme.com/widget", ""),
        ("google.com/other", ""),
        ("vpc.amazonaws.com/efa", ""),
        ("cpu", ""),
    ],
)
def test_a_vendor_is_known_by_the_beginning_of_its_resources(resource: str, title: str) -> None:
    """In any case; others have no name."""
    assert title == title_of(resource)


def test_each_vendor_has_a_source_and_its_own_resources() -> None:
    """No beginning is another's, so that a name depends on no order."""
    beginnings = [each for vendor in VENDORS for each in vendor.resources]

    assert all(vendor.title and vendor.source.startswith("https://") for vendor in VENDORS)
    assert len({vendor.title for vendor in VENDORS}) == len(VENDORS)
    assert [] == [(a, b) for a in beginnings for b in beginnings if a != b and a.startswith(b)]
    assert all(beginning == beginning.lower() for beginning in beginnings)
    assert not {vendor.title for vendor in VENDORS} & {each.title for each in UNSUPPORTED}
