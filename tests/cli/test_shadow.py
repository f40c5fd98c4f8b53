"""`kerf shadow`: the nodes of a cluster beside those that Kerf would buy for their pods."""

from tests.cli.program import CLUSTER, POOL_000, files, kerf


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
