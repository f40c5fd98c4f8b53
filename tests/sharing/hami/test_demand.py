"""What HAMi's webhook and scheduler make of a pod's requests, and what Kerf refuses because HAMi would not serve it."""

from dataclasses import replace

import pytest

from kerf.model.causes import Cause, Lack, Name, Quoted
from kerf.model.gpu import DeviceState, SliceRequest
from kerf.model.plan import Stage
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import NoFit, Refused
from kerf.sharing.hami.admission import Admitted, Denied, admit, quota_refusal
from kerf.sharing.hami.config import HamiConfig
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.fit import (
    CORDONED,
    CORES_EXHAUSTED,
    NO_CORES,
    NO_MEMORY,
    NOT_HEALTHY,
    TOO_FEW,
    WRONG_ID,
    WRONG_TYPE,
)
from kerf.sharing.hami.options import HamiOptions
from kerf.sharing.hami.refusals import (
    CountOverflows,
    ForeignScheduler,
    NoGpuAsked,
    RequestDropped,
    WebhookRefuses,
    WeightsUnreadable,
)
from kerf.sharing.hami.shortage import (
    CardRule,
    CardsNotNamed,
    CardsOut,
    CoresShort,
    MemoryShort,
    TooFewCards,
    WrongCards,
)
from tests.sharing.builders import cards, container, decided, pod


def requested(asking: Pod, config: HamiConfig | None = None) -> list[SliceRequest | None]:
    """What each container asks, init containers first."""
    demand = Hami(config or HamiConfig()).demand(asking)
    assert isinstance(demand, PodDemand)
    return [c.request for c in demand.containers]


DEFAULTS = [
    (pod(mib=1000), SliceRequest(1, 1000)),
    (pod(percent=40), SliceRequest(1, 0, 40)),
    (pod(percent=100), SliceRequest(1, cores=100)),
    (pod(cores=30), SliceRequest(1, cores=30)),
    (pod(gpus=3), SliceRequest(3, cores=100)),
    (pod(gpus=1, percent=100), SliceRequest(1, cores=100)),
    (pod(gpus=2, mib=500), SliceRequest(2, 500)),
    (pod(gpus=2, percent=25), SliceRequest(2, 0, 25)),
    (pod(gpus=1, mib=1000, percent=100), SliceRequest(1, 1000, 100, 100)),
    (pod(gpus=1, mib=0), SliceRequest(1)),
    (pod(gpus=1, mib=800, percent=30), SliceRequest(1, 800, 30)),
    (pod(gpus=0), None),
    (pod(), None),
]


@pytest.mark.parametrize(("asking", "expected"), DEFAULTS)
def test_missing_fields_are_filled_in_as_the_webhook_does(asking: Pod, expected: SliceRequest | None) -> None:
    """The table of docs/concepts/slices-and-devices.md, row by row."""
    assert [expected] == requested(asking)


def test_the_clusters_defaults_fill_in_what_the_pod_leaves_out() -> None:
    """defaultMemory, defaultCores and defaultGPUNum replace the chart's."""
    config = HamiConfig(default_memory_mib=2000, default_cores=20, default_gpus=2)

    assert [SliceRequest(2, 2000, cores=7)] == requested(pod(cores=7), config)
    assert [SliceRequest(1, 900, cores=20)] == requested(pod(gpus=1, mib=900), config)


PRIORITY, MEMORY = Name("nvidia.com/priority"), Name("nvidia.com/gpumem")


@pytest.mark.parametrize(
    ("asking", "config", "resource"),
    [
        (pod(priority=1), HamiConfig(), PRIORITY),
        (pod(mib=1000), HamiConfig(default_gpus=0), MEMORY),
        (pod(mib=1000, uid="u-1"), HamiConfig(), MEMORY),
    ],
    ids=["priority alone", "no GPU by default", "not admitted by the webhook"],
)
def test_a_pod_without_a_gpu_that_hami_leaves_alone_is_refused(asking: Pod, config: HamiConfig, resource: Name) -> None:
    """kube-scheduler then counts what it asks of HAMi's resources, and no node shows them."""
    refused = Hami(config).demand(asking)

    assert isinstance(refused, Refused)
    assert NoGpuAsked(resource, Name("nvidia.com/gpu"), Name("default-scheduler")) == refused.cause
    assert Stage.SCHEDULER == refused.stage


def test_an_admitted_pod_is_taken_as_it_is() -> None:
    """A live pod has been through the webhook, or never will be: `gpu: 1` alone is then not exclusive."""
    live = pod(gpus=1, scheduler="hami-scheduler", uid="u-1")

    assert [SliceRequest(1)] == requested(live)


def test_admission_is_idempotent() -> None:
    """The webhook's own result asks for the same again."""
    written, admitted = pod(gpus=1), pod(gpus=1, cores=100, scheduler="hami-scheduler", uid="u-1")

    assert requested(written) == requested(admitted)


GI = 2**30


def test_memory_in_bytes_is_refused_because_hami_drops_it() -> None:
    """`gpumem: 4Gi` is no MiB number of 31 bits: HAMi forgets the whole request (003-1)."""
    refused = Hami().demand(pod(gpus=1, mib=4 * GI))

    assert isinstance(refused, Refused)
    assert Stage.INVALID == refused.stage
    assert RequestDropped(Name("main"), Name("nvidia.com/gpumem"), 4 * GI, unit_mib=1, meant=4096) == refused.cause


def test_memory_that_no_number_of_mib_states_has_no_change() -> None:
    """Not even as bytes does it fit in 31 bits."""
    refused = Hami().demand(pod(gpus=1, mib=2**51))

    assert isinstance(refused, Refused)
    assert RequestDropped(Name("main"), Name("nvidia.com/gpumem"), 2**51, unit_mib=1, meant=None) == refused.cause
    assert refused.change is None


@pytest.mark.parametrize("count", [2**31, 2**32, 2**32 + 1, 2**63 - 1])
def test_more_cards_than_31_bits_count_are_refused(count: int) -> None:
    """HAMi keeps the low 32 bits, which is none or one card; kubelet admits such a pod nowhere: nothing is bought."""
    refused = Hami().demand(pod(gpus=count, mib=1000))

    assert refused == Refused(Stage.INVALID, CountOverflows(Name("main"), Name("nvidia.com/gpu"), count))


def test_the_change_for_memory_in_bytes_states_it_in_mib() -> None:
    """Limits and requests both, since they must be equal; the container by its name, init or not."""
    refused = Hami().demand(pod(container("app", gpus=1), init=[container("load", gpus=1, mib=6 * GI)]))

    assert isinstance(refused, Refused)
    amounts = {"nvidia.com/gpumem": 6144}
    entry = {"name": "load", "resources": {"limits": amounts, "requests": amounts}}
    assert {"spec": {"initContainers": [entry]}} == refused.change


def test_the_change_counts_in_units_of_the_memory_factor() -> None:
    """With a factor of 1024 the same is written as 4."""
    refused = Hami(HamiConfig(memory_factor=1024)).demand(pod(gpus=1, mib=4 * GI))

    assert isinstance(refused, Refused)
    assert RequestDropped(Name("main"), Name("nvidia.com/gpumem"), 4 * GI, unit_mib=1024, meant=4) == refused.cause


@pytest.mark.parametrize("scheduler", ["default-scheduler", ""])
def test_a_live_pod_that_the_webhook_missed_is_refused(scheduler: str) -> None:
    """Another scheduler knows nothing of slices: nothing is bought, and the way out is named."""
    refused = Hami().demand(pod(gpus=1, mib=1000, uid="u-1", scheduler=scheduler))

    change = {"spec": {"schedulerName": "hami-scheduler"}}
    assert Refused(Stage.SCHEDULER, ForeignScheduler(Name(scheduler)), change) == refused


def test_a_pod_of_another_scheduler_is_refused() -> None:
    """The webhook leaves it alone, in a manifest too."""
    refused = Hami().demand(pod(gpus=1, scheduler="volcano"))

    assert isinstance(refused, Refused)
    assert (Stage.SCHEDULER, ForeignScheduler(Name("volcano"))) == (refused.stage, refused.cause)


def test_a_manifest_that_opts_out_of_the_webhook_is_refused() -> None:
    """The label hami.io/webhook=ignore leaves the pod with the default scheduler."""
    opted_out = replace(pod(gpus=1, mib=10), labels={"hami.io/webhook": "ignore"})

    assert Stage.SCHEDULER == getattr(Hami().demand(opted_out), "stage", None)


def test_the_webhooks_own_refusal_is_passed_on() -> None:
    """A percentage above 100."""
    refused = Hami().demand(pod(percent=101))

    message = "invalid nvidia.com/gpumem-percentage value 101 in container main: must be an integer between 0 and 100"
    assert Refused(Stage.INVALID, WebhookRefuses(Quoted(message))) == refused


WEIGHTS = [
    ("slot=1", "expected slot, core, and memory weights"),
    ("slot=1,core=1,memory=x", '"memory" weight must be an integer'),
    (f"slot={'9' * 5000},core=1,memory=1", '"slot" weight must be an integer'),
]


@pytest.mark.parametrize(("weights", "expected"), WEIGHTS, ids=["one", "text", "huge"])
def test_unreadable_scoring_weights_are_refused(weights: str, expected: str) -> None:
    """HAMi's scheduler then answers with an error for every node, so that no node helps."""
    refused = Hami().demand(pod(mib=10, annotations={"hami.io/device-scoring-weights": weights}))

    assert isinstance(refused, Refused)
    assert isinstance(refused.cause, WeightsUnreadable)
    assert (Stage.INVALID, True) == (refused.stage, refused.cause.error.endswith(expected))


def test_a_pin_of_kerf_is_no_wish_of_the_user() -> None:
    """`use-gpuuuid` beside kerf.dev/pinned is ignored by planning and obeyed by a stand-in of the scheduler."""
    pinned = pod(mib=10, annotations={"nvidia.com/use-gpuuuid": "GPU-1", "kerf.dev/pinned": "GPU-1"})
    planned, obeyed = Hami().demand(pinned), Hami(honours_pins=True).demand(pinned)

    assert isinstance(planned, PodDemand)
    assert isinstance(obeyed, PodDemand)
    assert HamiOptions() == planned.options
    assert HamiOptions(use_ids=("GPU-1",)) == obeyed.options


def test_only_hamis_own_resources_claim_a_pod() -> None:
    """`nvidia.com/gpu` alone may be had of any family."""
    assert [True, True, False] == [Hami().claims(asking) for asking in (pod(mib=1), pod(cores=1), pod(gpus=1))]


def lacks(amount: int, of: str) -> tuple[Lack, ...]:
    """One quantity."""
    return (Lack(amount, Name(of)),)


H100 = {"nvidia.com/use-gputype": "H100"}
SHORTAGES = [
    (pod(mib=40000), NoFit(MemoryShort((NO_MEMORY,), 40000, 1, 22888), lacks(17112, "MiB"), 17112)),
    (pod(gpus=2, mib=23000), NoFit(MemoryShort((NO_MEMORY,), 23000, 2, 22888), lacks(112, "MiB"), 112)),
    (pod(gpus=5, mib=10), NoFit(TooFewCards((TOO_FEW,), 5, 2), lacks(3, "GPU"), 3)),
    (
        pod(mib=10, annotations=H100),
        NoFit(WrongCards((WRONG_TYPE,), CardRule.USE_TYPES, (Name("H100"),), (Name("NVIDIA-A10G"),))),
    ),
]


@pytest.mark.parametrize(("asking", "expected"), SHORTAGES)
def test_a_refusal_names_what_is_lacking_on_one_card(asking: Pod, expected: NoFit) -> None:
    """The smallest quantity over the cards, never a sum."""
    assert expected == decided(cards(22888, 22888), asking)


def test_lacking_cores_are_named_by_the_freest_card() -> None:
    """70 cores are booked on the card: 50 more lack 20."""
    (card,) = cards(22888)
    found = decided((card.taking(100, 70),), pod(mib=10, cores=50))

    assert NoFit(CoresShort((NO_CORES,), 50, 1, 30), lacks(20, "cores"), 20) == found


(CARD,) = cards(22888)
OUT = [
    (replace(CARD, cordoned=True), pod(mib=10), CardsOut((CORDONED,), CORDONED)),
    (replace(CARD, healthy=False), pod(mib=10), CardsOut((NOT_HEALTHY,), NOT_HEALTHY)),
    (CARD, pod(mib=10, annotations={"nvidia.com/nouse-gpuuuid": "gpu-0"}), CardsNotNamed((WRONG_ID,), ())),
    (CARD.taking(100, 100), pod(mib=10), CardsOut((CORES_EXHAUSTED,), CORES_EXHAUSTED)),
]


@pytest.mark.parametrize(("card", "asking", "expected"), OUT)
def test_a_card_that_is_out_has_hamis_reason(card: DeviceState, asking: Pod, expected: Cause) -> None:
    """Cordoned, unhealthy, excluded by UUID, all cores taken."""
    found = decided((card,), asking)

    assert isinstance(found, NoFit)
    assert expected == found.cause


@pytest.mark.parametrize(("mib", "is_refused"), [(2**31 - 1, True), (2**31, False)])
def test_a_request_that_hami_drops_counts_as_nothing_under_a_quota(mib: int, is_refused: bool) -> None:
    """A7: gpumem 2147483648 is no request for its scheduler, so its webhook admits the pod; Kerf refuses it as such."""
    asking, quota = pod(gpus=1, mib=mib, cores=50), ResourceQuota("default", "q", {"limits.nvidia.com/gpumem": 1000})
    admitted = admit((), asking.spec.containers, "", HamiConfig())
    assert isinstance(admitted, Admitted)

    assert is_refused == isinstance(quota_refusal(admitted, HamiConfig(), (quota,)), Denied)
    assert is_refused != isinstance(Hami().demand(asking), Refused)
