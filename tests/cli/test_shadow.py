"""`kerf shadow`: the nodes of a cluster beside those that Kerf would buy for their pods."""

from tests.cli.program import CLUSTER, POOL_000, ROOT, files, kerf


def test_the_fleet_is_compared_from_files() -> None:
    """A row for each side, and what it comes to."""
    lines = kerf("shadow", *files(CLUSTER)).stdout.splitlines()

    assert ["NODES", "PER", "HOUR", "TYPES"] == lines[0].split()
    assert "now   2      2.012     2 x g5.xlarge on-demand" == lines[1]
    assert "Kerf  1      1.006     1 x g5.xlarge on-demand" == lines[2]
    assert "2 pods: Kerf's nodes cost 1.006 USD/h less, 50 %" == lines[4]


def test_json_has_the_same_figures() -> None:
    """Without a cluster there is no leader to ask."""
    data = kerf("shadow", *files(CLUSTER), "-o", "json").data

    assert ("ShadowReport", 2, 1, 1.006, None) == (
        data["kind"],
        data["present"]["nodes"],
        data["planned"]["nodes"],
        data["planned"]["perHour"],
        data["seen"],
    )


def test_a_cluster_without_nodes_says_so() -> None:
    """There is nothing to compare."""
    assert "no node of a NodePool in the input\n" == kerf("shadow", *files(POOL_000)).stdout


GROUPS, POOLS = "examples/eks-nodegroups/cluster.yaml", "examples/eks-nodegroups/nodepools.yaml"


def test_nodes_of_node_groups_are_compared_on_demand() -> None:
    """They have no NodePool; their price is that of their type on demand, and of spot where EKS says so."""
    lines = kerf("shadow", *files(GROUPS, POOLS), "--all-nodes").stdout.splitlines()
    spot = (ROOT / GROUPS).read_text(encoding="utf-8").replace("ON_DEMAND", "SPOT")
    priced = kerf("nodes", "-f", "-", "-o", "json", stdin=spot).data["items"]

    assert "now   4      3.192     2 x g5.2xlarge on-demand, 2 x m5.2xlarge on-demand" == lines[1]
    assert "4 pods: Kerf's nodes cost 0.6915 USD/h less, 21 %" == lines[4]
    assert [("spot", True)] * 4 == [(node["capacityType"], "perHour" in node) for node in priced]


def test_a_pod_keeps_the_model_of_its_card_unless_it_is_released() -> None:
    """A T4 has the room of an A10G for these pods at half the price, and is slower, which is said."""
    compared = ("shadow", *files(GROUPS, POOLS), "--all-nodes")
    kept, released = kerf(*compared).stdout, kerf(*compared, "--any-gpu").stdout

    assert "Kerf  3      2.5005    1 x c6a.large on-demand, 2 x g5.2xlarge on-demand" in kept
    assert "Kerf  3      1.5805    1 x c6a.large on-demand, 2 x g4dn.2xlarge on-demand" in released
    assert "note: pods may go to cards of other models here, which may be slower\n" in released
    assert "other models" not in kept


def test_it_is_said_of_which_nodes_the_model_of_the_cards_is_not_known() -> None:
    """Neither their type nor a label says it, so the default could not keep it: no comparison is made in silence."""
    known = (ROOT / GROUPS).read_text(encoding="utf-8")
    odd = known.replace("node.kubernetes.io/instance-type: g5.2xlarge", "node.kubernetes.io/instance-type: own.gpu")
    given = ("-f", "-", *files(POOLS), "--all-nodes")
    said, released = (kerf("shadow", *given, *flags, stdin=odd).stdout for flags in ((), ("--any-gpu",)))
    data = kerf("shadow", *given, "-o", "json", stdin=odd).data
    text = "nothing says the model of their cards: pods of them may go to cards of any model here, which may be slower"

    assert "g4dn.2xlarge" in said
    assert f"note: of 2 nodes ({', '.join(data['unknownModels'])}) {text}" in said
    assert 2 == len(data["unknownModels"])
    assert "nothing says the model" not in released
    assert "nothing says the model" not in kerf("shadow", *given, stdin=known).stdout


def test_a_cluster_of_node_groups_alone_says_what_to_type() -> None:
    """Without the flag there is nothing to compare; without a NodePool there is nothing to buy."""
    alone = kerf("shadow", *files(GROUPS)).stdout
    done = kerf("shadow", *files(GROUPS), "--all-nodes")
    unpooled = done.stdout

    assert "hint: --all-nodes compares the nodes of node groups too" in alone
    assert 3 == done.returncode
    assert "4 pods: 4 would get no place, so the two prices cannot be compared\n" in unpooled
    assert "hint: kerf plan, with their workloads instead of the pods, says why\n" in unpooled


def test_a_price_that_nothing_says_is_unknown_and_not_0() -> None:
    """In each list of nodes, in their sums, and beside the cost of a plan, which has no such nodes."""
    odd = (ROOT / GROUPS).read_text(encoding="utf-8").replace("m5.2xlarge", "own.big")
    given = ("-f", "-", *files(POOLS))
    said = "the price of 2 nodes is not known (own.big)"
    plan, nodes = (kerf(command, *given, stdin=odd).stdout for command in ("plan", "nodes"))
    listed = kerf("nodes", *given, "-o", "json", stdin=odd).data["items"]

    assert f"note: 4 nodes of no NodePool are not in the cost: 2.424 USD/h, and {said}\n" in plan
    assert f"4 nodes, 2.424 USD/h; {said}\n" in nodes
    assert [None, None, 1.212, 1.212] == [each["perHour"] for each in listed]
    assert "unknown" in kerf("top", *given, stdin=odd).stdout
    assert "price unknown" in kerf("explain", "node/ip-10-0-1-10.ec2.internal", *given, stdin=odd).stdout
    assert (
        f"4 pods: {said}, so the two prices cannot be compared\n"
        in kerf("shadow", "--all-nodes", *given, stdin=odd).stdout
    )
