"""Roles from declared accesses: what is granted is what the code says it does."""

from kerf.kube.rbac import Object, decision_roles, grants, needed, roles, rules
from kerf.kube.resources import LEASES, NODE_CLAIMS, NODES, OWN, PODS, Access


def _granted(role: Object) -> dict[str, list[str]]:
    """Verbs by resource; those of metrics.k8s.io, which are called like others, have their group behind them."""
    metrics = "metrics.k8s.io"
    return {
        rule["resources"][0] + (f".{metrics}" if metrics in rule["apiGroups"] else ""): rule["verbs"]
        for rule in role["rules"]
    }


def test_the_verbs_of_a_resource_are_one_rule_in_order() -> None:
    """In whatever order they were declared, and however often."""
    patch, get, status = Access("patch", NODES), Access("get", NODES), Access("patch", NODE_CLAIMS, "status")

    expected = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims/status"], "verbs": ["patch"]},
    ]
    assert expected == rules([patch, status, get, patch]) == rules([status, get, patch])


def test_an_access_to_named_objects_is_a_rule_of_its_own() -> None:
    """Limited by `resourceNames`, it must not widen to all objects nor narrow the others."""
    expected = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["kerf"], "verbs": ["get"]},
    ]
    assert expected == rules([Access("get", LEASES, names=("kerf",)), Access("create", LEASES)])


def test_the_roles_are_bound_to_their_service_account() -> None:
    """The cluster-wide one and the one of Kerf's own namespace, under one name, in the order to apply them."""
    account, wide, wide_binding, own, own_binding = roles("kerf-system", "kerf")

    kinds = [obj["kind"] for obj in (account, wide, wide_binding, own, own_binding)]
    assert ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] == kinds
    subject = [{"kind": "ServiceAccount", "name": "kerf", "namespace": "kerf-system"}]
    assert subject == wide_binding["subjects"] == own_binding["subjects"]
    assert ("ClusterRole", "Role") == (wide_binding["roleRef"]["kind"], own_binding["roleRef"]["kind"])
    namespaces = [obj["metadata"].get("namespace") for obj in (account, wide, wide_binding, own, own_binding)]
    assert ["kerf-system", None, None, "kerf-system", "kerf-system"] == namespaces


def test_the_role_is_what_the_modules_declare() -> None:
    """Writes of the writer and the recorder in the cluster; leases and the history of usage in Kerf's own namespace
    only; no wildcard."""
    _, wide, _, own, _ = roles("kerf-system", "kerf")

    granted = _granted(wide)
    assert (["create"], ["create"], ["patch"]) == (
        granted["pods/eviction"],
        granted["events"],
        granted["nodeclaims/status"],
    )
    assert {"create", "delete", "get", "patch"} <= set(granted["nodeclaims"])
    assert {"configmaps", "leases"} == set(_granted(own))
    assert ["create", "get", "list", "patch"] == _granted(own)["configmaps"]
    assert ["list"] == granted["pods.metrics.k8s.io"] == granted["nodes.metrics.k8s.io"]
    assert ["list"] == granted["leases"]
    assert "*" not in {word for verbs in granted.values() for word in verbs} | set(granted)
    assert not {"create", "update"} & set(granted["nodes"] + granted["pods"])


def test_an_access_to_one_namespace_is_in_a_role_of_that_namespace() -> None:
    """Kerf's own wherever that is, and any other by its name."""
    own, elsewhere = Access("get", PODS, namespace=OWN), Access("patch", LEASES, namespace="kube-node-lease")
    made = grants([elsewhere, own], "kerf", {"name": "kerf", "namespace": "here"})

    places = [(each["kind"], each["metadata"]["namespace"]) for each in made]
    assert [(kind, place) for place in ("here", "kube-node-lease") for kind in ("Role", "RoleBinding")] == places
    assert [{"pods": ["get"]}, {"leases": ["patch"]}] == [_granted(each) for each in made if "rules" in each]
    assert {"here"} == {each["subjects"][0]["namespace"] for each in made if "subjects" in each}


def test_the_acted_out_cloud_makes_nodes_only_where_it_is_asked_for() -> None:
    """A cluster with a real cloud grants Kerf nothing on its account."""
    without, with_kwok = roles("n", "kerf"), roles("n", "kerf", "kwok")

    assert (False, True) == tuple("create" in _granted(made[1])["nodes"] for made in (without, with_kwok))
    assert {"n", None} == {each["metadata"].get("namespace") for each in without}
    assert {"n", None, "kube-node-lease"} == {each["metadata"].get("namespace") for each in with_kwok}


def test_a_dry_run_may_change_nothing_but_its_own_lease() -> None:
    """Everywhere it reads, posts events and asks who asks it; its Lease is not that of those who act, nor the
    cloud its own."""
    _, wide, _, own, _ = roles("n", "kerf", "kwok", is_dry_run=True)
    _, _, _, acting, _ = roles("n", "kerf")

    beyond = {target for target, verbs in _granted(wide).items() if not set(verbs) <= {"get", "list", "watch"}}
    assert {"events", "tokenreviews", "subjectaccessreviews"} == beyond
    assert [None, ["kerf-dry-run-leader-election"]] == [rule.get("resourceNames") for rule in own["rules"]]
    assert [None, None, ["kerf-leader-election"]] == [rule.get("resourceNames") for rule in acting["rules"]]


def test_who_takes_no_part_in_an_election_needs_no_lease() -> None:
    """Then nothing of Kerf's own namespace is needed but the history of usage."""
    wanted = needed(elects=False)

    assert {"configmaps"} == {each.resource.plural for each in wanted if each.namespace == OWN}
    assert set(wanted) < set(needed())


def test_an_error_names_the_rule_that_would_allow_it() -> None:
    """The line that a `forbidden` shows is the rule of a role."""
    (rule,) = rules([Access("create", PODS, "eviction")])

    assert 'apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]' == Access("create", PODS, "eviction").rule
    assert {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]} == rule


def test_who_asks_for_decisions_gets_an_account_that_can_do_nothing_else() -> None:
    """Its token may travel; people get its token, the Lease's holder and the way to the pod, in one namespace."""
    account, may_ask, binding, people = decision_roles("here", "left")

    assert [{"nonResourceURLs": ["/debug/decisions"], "verbs": ["get"]}] == may_ask["rules"]
    assert [{"kind": "ServiceAccount", **account["metadata"]}] == binding["subjects"]
    assert ("Role", "here") == (people["kind"], people["metadata"]["namespace"])
    assert {"leases": ["get"], "pods/proxy": ["get"], "serviceaccounts/token": ["create"]} == _granted(people)
    assert [["left-decisions"]] == [r["resourceNames"] for r in people["rules"] if "token" in r["resources"][0]]


def test_kerf_itself_may_review_who_asks_it() -> None:
    """Both when it acts and in a dry run; it may get no decisions of another."""
    for is_dry_run in (False, True):
        wide = _granted(roles("kerf-system", "kerf", is_dry_run=is_dry_run)[1])

        assert ["create"] == wide["tokenreviews"] == wide["subjectaccessreviews"]
