"""`kerf hami-extender`: what it says when it cannot begin. What it does is tested with a real kube-scheduler."""

from pathlib import Path

import pytest

from tests.cli.program import kerf


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("--address", "8080"), "--address: expected HOST:PORT, got '8080'"),
        (("--address", "127.0.0.1:70000"), "--address: expected HOST:PORT, got '127.0.0.1:70000'"),
        (("--tls-cert", "c.pem"), "--tls-cert and --tls-key: expected both or neither"),
        (("--tls-cert", "c.pem", "--tls-key", "k.pem"), "--tls-cert c.pem, --tls-key k.pem: cannot be used"),
        (("--ties", "last"), "'last' is not one of"),
    ],
)
def test_a_wrong_flag_is_named(arguments: tuple[str, ...], told: str) -> None:
    """Exit 2, before anything is asked of a cluster."""
    done = kerf("hami-extender", *arguments)

    assert 2 == done.returncode
    assert told in done.stderr


def test_without_a_cluster_it_ends_with_4(tmp_path: Path) -> None:
    """One line that names the file."""
    done = kerf("hami-extender", "--kubeconfig", str(tmp_path / "none"))

    assert (4, f"error: kubeconfig {tmp_path / 'none'}: no such file\n") == (done.returncode, done.stderr)


def test_it_is_not_among_the_commands_of_the_help() -> None:
    """It is for trying and testing; it has a help text of its own."""
    assert "hami-extender" not in kerf("--help").stdout
    assert "--url-file" in kerf("hami-extender", "--help").stdout
