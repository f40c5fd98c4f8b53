"""What an EC2NodeClass says, field for field (karpenter-provider-aws v1.14.1, 2026-08).

The names are the CRD's, in Python's spelling. None and empty mean absent, where absence does something else than a
value would. Everything is hashable: a spec is the key of caches.
"""

from dataclasses import dataclass, field

GROUP, KIND, VERSION = "karpenter.k8s.aws", "EC2NodeClass", "karpenter.k8s.aws/v1"
AL2, AL2023, BOTTLEROCKET, CUSTOM = "AL2", "AL2023", "Bottlerocket", "Custom"
WINDOWS_2019, WINDOWS_2022, WINDOWS_2025 = "Windows2019", "Windows2022", "Windows2025"
WINDOWS = (WINDOWS_2019, WINDOWS_2022, WINDOWS_2025)
FAMILIES = (AL2, AL2023, BOTTLEROCKET, *WINDOWS, CUSTOM)
_FAMILY_OF = {each.lower(): each for each in FAMILIES}
LATEST = "latest"
"""The version of an alias that moves with every release."""
FINALIZER = "karpenter.k8s.aws/termination"
NODE_CLASS_LABEL = "karpenter.k8s.aws/ec2nodeclass"
"""Label of nodes and tag of all that is made for an EC2NodeClass: its name."""

Pairs = tuple[tuple[str, str], ...]
"""A map of texts, in the order of its keys."""


@dataclass(frozen=True, slots=True)
class SubnetSelectorTerm:
    """Subnets with this id, or with all these tags; the value `*` stands for any."""

    id: str = ""
    tags: Pairs = ()


@dataclass(frozen=True, slots=True)
class SecurityGroupSelectorTerm:
    """Security groups with this id, with this name, or with all these tags."""

    id: str = ""
    name: str = ""
    tags: Pairs = ()


@dataclass(frozen=True, slots=True)
class AMISelectorTerm:
    """Images of an alias such as `al2023@latest`, with an id, of an SSM parameter, or with name, tags and owner."""

    alias: str = ""
    id: str = ""
    name: str = ""
    owner: str = ""
    ssm_parameter: str = ""
    tags: Pairs = ()


@dataclass(frozen=True, slots=True)
class CapacityReservationSelectorTerm:
    """Reservations with this id, or with all that is given; `instance_match_criteria` is `open` or `targeted`."""

    id: str = ""
    owner_id: str = ""
    instance_match_criteria: str = ""
    tags: Pairs = ()


@dataclass(frozen=True, slots=True)
class PlacementGroupSelector:
    """One placement group, by name or by id."""

    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """An EBS volume. `volume_size_gib` is the size as EC2 takes it: whole GiB, rounded up."""

    delete_on_termination: bool | None = None
    encrypted: bool | None = None
    iops: int | None = None
    kms_key_id: str = ""
    snapshot_id: str = ""
    throughput: int | None = None
    volume_initialization_rate: int | None = None
    volume_size_gib: int | None = None
    volume_type: str = ""


@dataclass(frozen=True, slots=True)
class BlockDeviceMapping:
    """A volume under its device name; `is_root_volume` says that kubelet's directory is on it."""

    device_name: str = ""
    ebs: BlockDevice | None = None
    is_root_volume: bool = False


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """How instances reach the metadata service; the defaults are the CRD's."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """An interface at a place of an instance; `interface_type` is `interface` or `efa-only`."""

    network_card_index: int
    device_index: int
    interface_type: str


@dataclass(frozen=True, slots=True)
class ConnectionTracking:
    """Seconds after which idle connections are forgotten."""

    tcp_established_timeout_s: int | None = None
    udp_stream_timeout_s: int | None = None
    udp_timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class KubeletConfiguration:
    """What a node's kubelet is started with.

    `others` are fields that Kerf has no use for: (name, JSON text), which only AL2023 passes on.
    """

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: Pairs = ()
    kube_reserved: Pairs = ()
    eviction_hard: Pairs = ()
    eviction_soft: Pairs = ()
    eviction_soft_grace_period: Pairs = ()
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = None
    image_gc_low_threshold_percent: int | None = None
    cpu_cfs_quota: bool | None = None
    others: Pairs = ()


DEFAULT_KUBELET, DEFAULT_METADATA_OPTIONS = KubeletConfiguration(), MetadataOptions()


@dataclass(frozen=True, slots=True)
class EC2NodeClassSpec:
    """The spec. `role` or `instance_profile` is filled, never both. `ami_family` is the literal field."""

    ami_selector_terms: tuple[AMISelectorTerm, ...] = ()
    subnet_selector_terms: tuple[SubnetSelectorTerm, ...] = ()
    security_group_selector_terms: tuple[SecurityGroupSelectorTerm, ...] = ()
    capacity_reservation_selector_terms: tuple[CapacityReservationSelectorTerm, ...] = ()
    placement_group_selector: PlacementGroupSelector | None = None
    ami_family: str = ""
    user_data: str = ""
    role: str = ""
    instance_profile: str = ""
    tags: Pairs = ()
    kubelet: KubeletConfiguration = DEFAULT_KUBELET
    block_device_mappings: tuple[BlockDeviceMapping, ...] = ()
    instance_store_policy: str = ""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    metadata_options: MetadataOptions = DEFAULT_METADATA_OPTIONS
    connection_tracking: ConnectionTracking | None = None
    nested_virtualization: str = ""
    associate_public_ip_address: bool | None = None
    ip_prefix_count: int | None = None
    detailed_monitoring: bool = False
    context: str = ""


DEFAULT_SPEC = EC2NodeClassSpec()


@dataclass(frozen=True, slots=True)
class EC2NodeClass:
    """An EC2NodeClass as a server has it.

    `instance_profile` is the one of its status. `unknown` are the paths of fields that this version does not know: they
    have no effect, and ValidationSucceeded says so. `unread` are those of `kubelet` that nodes get all the same.
    """

    name: str
    uid: str
    spec: EC2NodeClassSpec = DEFAULT_SPEC
    generation: int = 0
    is_deleting: bool = False
    instance_profile: str = ""
    unknown: tuple[str, ...] = field(default=(), compare=False)
    unread: tuple[str, ...] = field(default=(), compare=False)

    @property
    def alias(self) -> tuple[str, str] | None:
        """Family and version of the alias, e.g. (`AL2023`, `latest`); None where images are selected otherwise."""
        for term in self.spec.ami_selector_terms:
            if term.alias:
                family, _, version = term.alias.partition("@")
                return _FAMILY_OF.get(family.lower(), CUSTOM), version
        return None

    @property
    def family(self) -> str:
        """The family of its images, which decides the form of user data; that of the alias unless `amiFamily` says."""
        if self.spec.ami_family:
            return self.spec.ami_family
        return self.alias[0] if self.alias else CUSTOM

    @property
    def is_raid0(self) -> bool:
        """Whether local disks become one volume for kubelet and containers."""
        return self.spec.instance_store_policy == "RAID0"
