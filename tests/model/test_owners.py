"""Who makes a pod in the end."""

import pytest

from kerf.model.owners import top_owner
from kerf.model.pods import Owner
from kerf.testing.builders import a_pod

HASH, ROLLOUT, JOB_SET = "pod-template-hash", "rollouts-pod-template-hash", "jobset.sigs.k8s.io/jobset-name"


@pytest.mark.parametrize(
    "owner, labels, expected",
    [
        (Owner("ReplicaSet", "web-5d4"), {HASH: "5d4"}, Owner("Deployment", "web")),
        (Owner("ReplicaSet", "web-5d4"), {}, Owner("ReplicaSet", "web-5d4")),
        (Owner("ReplicaSet", "web-5d4"), {HASH: "other"}, Owner("ReplicaSet", "web-5d4")),
        (Owner("ReplicaSet", "web-5d4"), {ROLLOUT: "5d4"}, Owner("Rollout", "web")),
        (Owner("Job", "nightly-29375640"), {}, Owner("CronJob", "nightly")),
        (Owner("Job", "weekly-29375640"), {}, Owner("Job", "weekly-29375640")),
        (Owner("Job", "nightly-by-hand"), {}, Owner("Job", "nightly-by-hand")),
        (Owner("Job", "train-worker-0"), {JOB_SET: "train"}, Owner("JobSet", "train")),
        (Owner("StatefulSet", "db"), {}, Owner("StatefulSet", "db")),
    ],
)
def test_names_and_labels_tell_who_controls_the_controller(
    owner: Owner, labels: dict[str, str], expected: Owner
) -> None:
    """A ReplicaSet by the hash of its template, a Job by its CronJob where that is known."""
    assert expected == top_owner(a_pod(owner=owner, labels=labels), {"default/nightly"})


def test_what_the_input_names_counts_before_names() -> None:
    """A Job that was made by hand from a CronJob; a Deployment that an operator keeps."""
    by_hand = Owner("Job", "again", controller=Owner("CronJob", "nightly"))
    kept = Owner("ReplicaSet", "web-5d4", controller=Owner("Deployment", "web", controller=Owner("Service", "web")))

    assert Owner("CronJob", "nightly") == top_owner(a_pod(owner=by_hand))
    assert Owner("Service", "web") == top_owner(a_pod(owner=kept, labels={HASH: "5d4"}))


def test_a_bare_pod_has_no_owner() -> None:
    """It is its own top."""
    assert None is top_owner(a_pod())
