"""Images: aliases by their SSM parameters, terms, which of several counts, and which runs on a type."""

import asyncio
from typing import Any

import pytest

from kerf.clouds.aws.aliases import ACCELERATOR_COUNT, GPU_COUNT, NVIDIA, STANDARD, published
from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.images import Images, image_for
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.model import FAMILIES
from kerf.clouds.aws.nodeclass.status import Image
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.model.constraints import ARCH, INSTANCE_TYPE, OS, Requirement, Requirements
from tests.clouds.aws.account import Account, ManualClock, Object, tags
from tests.clouds.aws.nodeclass.objects import an_object

EKS = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"
AMD64, ARM64 = (Requirements([Requirement.of(ARCH, "In", [each])]) for each in ("amd64", "arm64"))


def an_image(number: int, architecture: str = "x86_64", day: int = 1, **changed: Any) -> Object:
    """An image as EC2 lists it."""
    return {
        "ImageId": f"ami-{number}",
        "Name": f"image-{number}",
        "Architecture": architecture,
        "CreationDate": f"2026-11-{day:02}T00:00:00.000Z",
        "State": "available",
        "Owner": "amazon",
        **changed,
    }


def found(account: Account, *, kubernetes: str = "1.34", **spec: Any) -> tuple[Image, ...]:
    """The images of an EC2NodeClass."""
    return asyncio.run(Images(account, ManualClock()).find(decode(an_object(**spec)), kubernetes))


def an_alias() -> Account:
    """AL2023 as EKS publishes it, without Neuron."""
    account = Account()
    account.images = [an_image(1), an_image(2, "arm64"), an_image(3, day=2), an_image(4, "arm64", day=2)]
    for number, path in enumerate(("x86_64/standard", "arm64/standard", "x86_64/nvidia", "arm64/nvidia"), start=1):
        account.parameters[f"{EKS}/{path}/recommended/image_id"] = f"ami-{number}"
    return account


def test_an_alias_has_an_image_for_each_architecture_and_sort() -> None:
    """Newest first, then by id; a parameter that does not exist is no error."""
    got = found(an_alias())

    assert ["ami-3", "ami-4", "ami-1", "ami-2"] == [image.id for image in got]
    assert [
        NVIDIA.intersect(AMD64),
        NVIDIA.intersect(ARM64),
        STANDARD.intersect(AMD64),
        STANDARD.intersect(ARM64),
    ] == [image.requirements for image in got]


def test_a_parameter_that_may_not_be_read_is_no_missing_image() -> None:
    """Without the permission every image would seem to be gone."""
    account = an_alias()
    account.forbidden.add("GetParameter")

    with pytest.raises(ApiFailed, match="AccessDenied"):
        found(account)


PATHS = {
    ("al2023@v20240807", "AL2023"): [
        f"{EKS}/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v20240807/image_id",
        f"{EKS}/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.34-v20240807/image_id",
        f"{EKS}/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.34-v20240807/image_id",
        f"{EKS}/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.34-v20240807/image_id",
        f"{EKS}/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.34-v20240807/image_id",
    ],
    ("bottlerocket@v1.46.0", "Bottlerocket"): [
        "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.46.0/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.46.0/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.46.0/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.46.0/image_id",
    ],
    ("windows2022@latest", "Windows2022"): [
        "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id"
    ],
}


@pytest.mark.parametrize(("alias", "family"), list(PATHS))
def test_an_alias_is_a_set_of_parameters(alias: str, family: str) -> None:
    """As EKS and Bottlerocket publish them; a Bottlerocket version has no v there."""
    got = published(family, alias.partition("@")[2], "1.34")

    assert PATHS[alias, family] == [place.path for place in got]


def test_al2_is_published_until_kubernetes_1_32() -> None:
    """Its image with drivers is for GPUs and for Neuron."""
    got = published("AL2", "latest", "1.32")
    folders = [place.path.removeprefix("/aws/service/eks/optimized-ami/1.32/") for place in got]

    assert [
        "amazon-linux-2/recommended/image_id",
        "amazon-linux-2-arm64/recommended/image_id",
        "amazon-linux-2-gpu/recommended/image_id",
    ] == folders
    assert [1, 1, 2] == [len(place.sorts) for place in got]
    assert "amazon-eks-gpu-node-1.32-v2/image_id" in published("AL2", "v2", "1.32")[2].path


@pytest.mark.parametrize(("family", "kubernetes"), [("AL2", "1.33"), ("AL2", "1.40"), ("Windows2025", "1.34")])
def test_an_alias_that_eks_does_not_publish_is_refused(family: str, kubernetes: str) -> None:
    """With what to take, or what the cluster needs."""
    with pytest.raises(Unusable) as raised:
        published(family, "latest", kubernetes)

    assert "UnsupportedAlias" == raised.value.reason


def test_every_family_with_an_alias_has_paths() -> None:
    """Custom has none."""
    assert all(published(family, "latest", "1.32" if family == "AL2" else "1.35") for family in FAMILIES[:-1])


def test_a_windows_image_says_what_it_is() -> None:
    """A node has its system and build by its image."""
    account = Account()
    account.images = [an_image(1)]
    account.parameters[PATHS["windows2022@latest", "Windows2022"][0]] = "ami-1"

    (got,) = found(account, amiSelectorTerms=[{"alias": "windows2022@latest"}])

    assert {ARCH: "amd64", OS: "windows", "node.kubernetes.io/windows-build": "10.0.20348"} == got.requirements.labels()


@pytest.mark.parametrize(
    ("terms", "ids"),
    [
        ([{"id": "ami-1"}, {"id": "ami-4"}], ["ami-4", "ami-1"]),
        ([{"name": "image-*"}], ["ami-5", "ami-4"]),
        ([{"name": "image-*", "owner": "123456789012"}], ["ami-6"]),
        ([{"tags": {"team": "ml"}}], ["ami-6", "ami-4"]),
        ([{"name": "image-1"}, {"id": "ami-4"}], ["ami-4", "ami-1"]),
        ([{"ssmParameter": "/my/image"}], ["ami-1"]),
        ([{"ssmParameter": "/none"}, {"ssmParameter": "/no/image"}], []),
        ([{"id": "ami-7"}, {"id": "ami-8"}], []),
    ],
)
def test_terms_select_the_newest_of_each_architecture(terms: list[Object], ids: list[str]) -> None:
    """Without an owner a name selects among one's own and Amazon's; what cannot be launched is none."""
    account = Account()
    account.images = [
        an_image(1, day=3),
        an_image(4, "arm64", day=4, Tags=tags(team="ml")),
        an_image(5, day=5, Owner="self"),
        an_image(6, day=9, Owner="123456789012", Tags=tags(team="ml")),
        an_image(7, State="pending"),
        an_image(8, "i386"),
    ]
    account.parameters |= {"/my/image": "ami-1", "/no/image": "hello"}

    assert ids == [image.id for image in found(account, amiFamily="Custom", amiSelectorTerms=terms)]


def test_a_deprecated_image_counts_only_where_there_is_no_other() -> None:
    """However new it is; equal ages go by name."""
    old = "2026-01-01T00:00:00.000Z"
    account = Account()
    account.images = [
        an_image(1, day=1),
        an_image(2, day=1),
        an_image(3, day=9, DeprecationTime=old),
        an_image(4, "arm64", DeprecationTime=old),
    ]

    got = found(account, amiFamily="Custom", amiSelectorTerms=[{"name": "image-*"}])

    assert [("ami-2", False), ("ami-4", True)] == [(image.id, image.is_deprecated) for image in got]


def test_a_new_release_is_seen_within_five_minutes_and_a_pinned_one_is_not_asked_for() -> None:
    """`latest` moves; what a version holds never does."""
    account, clock = an_alias(), ManualClock()
    images = Images(account, clock)
    latest, pinned = (decode(an_object(amiSelectorTerms=[{"alias": f"al2023@{each}"}])) for each in ("latest", "v1"))
    account.parameters[f"{EKS}/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v1/image_id"] = "ami-1"
    for each in (latest, pinned):
        asyncio.run(images.find(each, "1.34"))
    account.parameters[f"{EKS}/x86_64/standard/recommended/image_id"] = "ami-9"
    account.images.append(an_image(9, day=20))
    asked = len(account.named("GetParameter"))

    clock.seconds += 299
    assert "ami-3" == asyncio.run(images.find(latest, "1.34"))[0].id
    clock.seconds += 1
    assert "ami-9" == asyncio.run(images.find(latest, "1.34"))[0].id
    asyncio.run(images.find(pinned, "1.34"))

    # Of the pinned ones only the four that did not exist are asked for again.
    assert 5 + 4 == len(account.named("GetParameter")) - asked


def test_a_new_kubernetes_has_other_images() -> None:
    """At once, whatever was kept for the old one."""
    account, clock = an_alias(), ManualClock()
    images, node_class = Images(account, clock), decode(an_object())

    assert [4, 0] == [len(asyncio.run(images.find(node_class, each))) for each in ("1.34", "1.35")]


def a_type(architecture: str = "amd64", gpus: str = "", accelerators: str = "") -> Requirements:
    """What a type says of itself; a count that it lacks is left out, or said to be absent."""
    counts = {key: value for key, value in ((GPU_COUNT, gpus), (ACCELERATOR_COUNT, accelerators)) if value}
    return Requirements.of_labels({ARCH: architecture, INSTANCE_TYPE: "x", **counts})


@pytest.mark.parametrize(
    ("kind", "image"),
    [
        (a_type(), "ami-1"),
        (a_type("arm64"), "ami-2"),
        (a_type(gpus="1"), "ami-3"),
        (a_type(gpus="0"), "ami-3"),
        (a_type("arm64", gpus="4"), "ami-4"),
        (a_type(accelerators="1"), None),
        (a_type().intersect(Requirements([Requirement.of(GPU_COUNT, "DoesNotExist")])), "ami-1"),
    ],
)
def test_a_type_gets_the_image_with_its_driver(kind: Requirements, image: str | None) -> None:
    """A part of a card, as of g6f, has the label with 0, and needs the driver; Neuron has no image here."""
    got = image_for(found(an_alias()), kind)

    assert image == (got.id if got else None)


def test_any_type_that_can_run_windows_gets_its_image() -> None:
    """The system is the image's, so a type need not say it; one that says another is none."""
    windows = Image("ami-1", requirements=Requirements.of_labels({ARCH: "amd64", OS: "windows"}))

    assert windows == image_for([windows], a_type())
    assert windows == image_for(
        [windows], a_type().intersect(Requirements([Requirement.of(OS, "In", ["linux", "windows"])]))
    )
    assert image_for([windows], a_type().intersect(Requirements.of_labels({OS: "linux"}))) is None


class Published(Account):
    """So many public images of one name, a thousand a page, the newest in the middle; none has an end if 0."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.pages_read = count, 0

    async def call(self, service: str, operation: str, **parameters: object) -> Object:
        """A page."""
        assert ("DescribeImages", 1000) == (operation, parameters["MaxResults"])
        begin = int(str(parameters.get("NextToken", "0")))
        self.pages_read += 1
        numbers = range(begin, begin + 1000 if not self.count else min(begin + 1000, self.count))
        images = [an_image(n, day=9 if n == self.count // 2 else 1) for n in numbers]
        more = {"NextToken": str(begin + 1000)} if not self.count or begin + 1000 < self.count else {}
        return {"Images": images, **more}


def test_the_newest_of_many_images_is_found_page_by_page() -> None:
    """EC2 gives all of them in one reply where no page is asked for."""
    account = Published(4500)
    (image,) = found(account, amiFamily="AL2023", amiSelectorTerms=[{"name": "*"}])

    assert ("ami-2250", 5) == (image.id, account.pages_read)


def test_a_term_that_selects_all_images_of_the_world_is_refused() -> None:
    """A tenant's `*` would otherwise be a hundred megabytes, every five minutes."""
    account = Published(0)
    with pytest.raises(Unusable, match=r"more than 20,000 images: narrow it") as why:
        found(account, amiFamily="AL2023", amiSelectorTerms=[{"name": "*"}])

    assert ("TooManyImages", 20) == (why.value.reason, account.pages_read)
