"""AMIs of the proxy's cloud and the SSM parameters that name the newest of a release line.

moto has none of the parameters of EKS and Bottlerocket, takes no parameter below /aws, and forgets most of
what it is given of an image. So images live here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256

from kerf.testing.faultproxy.instances import date
from kerf.testing.faultproxy.wire import CallRefused, Tree, listed

AMAZON = "amazon"


@dataclass(frozen=True)
class CloudImage:
    """An AMI. `created_s` decides which of two is newer."""

    id: str
    name: str
    architecture: str = "x86_64"
    created_s: float = 0
    owner: str = AMAZON
    owner_id: str = "602401143452"
    is_deprecated: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class ImageTable:
    """The images and parameters, and the switches that add to them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._images: dict[str, CloudImage] = {}
        self.parameters: dict[str, str] = {}

    def add(self, image: CloudImage) -> None:
        """Register an image, or put this one in the place of that with its id."""
        self._images[image.id] = image

    def remove(self, image: str) -> None:
        """Deregister an image; parameters that name it stay."""
        self._images.pop(image, None)

    def release_al2023(
        self, kubernetes: str, version: str, *, arch: str = "x86_64", variant: str = "standard"
    ) -> CloudImage:
        """Release an AL2023 image of EKS: its own parameter, and `recommended` names it from now on.

        `version` is the date of the release, e.g. `v20260917`; `variant` is standard, nvidia or neuron.
        """
        name = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
        image = self._released(name, arch)
        base = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}"
        self.parameters[f"{base}/{name}/image_id"] = self.parameters[f"{base}/recommended/image_id"] = image.id
        return image

    def release_bottlerocket(
        self, kubernetes: str, version: str, *, arch: str = "x86_64", variant: str = ""
    ) -> CloudImage:
        """Release a Bottlerocket image: `version` is e.g. `1.47.0`, `variant` empty or nvidia."""
        line = f"aws-k8s-{kubernetes}" + (f"-{variant}" if variant else "")
        image = self._released(f"bottlerocket-{line}-{arch}-v{version}", arch)
        base = f"/aws/service/bottlerocket/{line}/{arch}"
        self.parameters[f"{base}/{version}/image_id"] = self.parameters[f"{base}/latest/image_id"] = image.id
        return image

    def known(self, image: str) -> bool:
        """Whether a launch may name it; every image is known while none was added."""
        return not self._images or image in self._images

    def visible(self, ids: Sequence[str], owners: Sequence[str], filters: Sequence[Tree], *, old: bool) -> list[Tree]:
        """The elements of DescribeImages, by id; deprecated ones as well where `old`. Raises CallRefused."""
        missing = [image for image in ids if image not in self._images]
        if missing:
            raise CallRefused("InvalidAMIID.NotFound", f"The image ids '[{', '.join(missing)}]' do not exist")
        terms = [(term["Name"], listed(term, "Value")) for term in filters]
        return [
            _tree(image)
            for _, image in sorted(self._images.items())
            if (not ids or image.id in ids)
            and (not owners or image.owner in owners or image.owner_id in owners)
            and (old or ids or not image.is_deprecated)
            and all(_matches(image, name, values) for name, values in terms)
        ]

    def _released(self, name: str, arch: str) -> CloudImage:
        image = CloudImage(f"ami-{sha256(name.encode()).hexdigest()[:17]}", name, arch, self._now_s())
        self.add(image)
        return image


def _matches(image: CloudImage, name: str, values: Sequence[str]) -> bool:
    attributes = {
        "architecture": image.architecture,
        "image-id": image.id,
        "name": image.name,
        "owner-alias": image.owner,
        "owner-id": image.owner_id,
        "state": "available",
    }
    if name == "tag-key":
        held = list(image.tags)
    elif name.startswith("tag:"):
        tag = image.tags.get(name.removeprefix("tag:"))
        held = [] if tag is None else [tag]
    elif name in attributes:
        held = [attributes[name]]
    else:
        raise CallRefused("InvalidParameterValue", f"The filter '{name}' is invalid")
    return any(fnmatchcase(text, value) for text in held for value in values)


def _tree(image: CloudImage) -> Tree:
    deprecated = date(image.created_s + 1) if image.is_deprecated else None
    return {
        "imageId": image.id,
        "name": image.name,
        "architecture": image.architecture,
        "creationDate": date(image.created_s),
        "deprecationTime": deprecated,
        "imageOwnerAlias": image.owner,
        "imageOwnerId": image.owner_id,
        "imageState": "available",
        "isPublic": True,
        "rootDeviceName": "/dev/xvda",
        "rootDeviceType": "ebs",
        "tagSet": [{"key": key, "value": value} for key, value in sorted(image.tags.items())],
    }
