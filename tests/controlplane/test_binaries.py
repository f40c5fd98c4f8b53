"""Where the programs of the control plane are looked for, and the ports they get."""

import socket
from pathlib import Path

import pytest

from tools.controlplane.process import Ports
from tools.controlplane.server import Binaries, ControlPlane, ControlPlaneError, hami_extender


def folder_with(folder: Path, *names: str) -> Path:
    """A folder in which files of these names are."""
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_what_is_not_there_is_named_as_its_file_is(tmp_path: Path) -> None:
    """`missing` has the names in the order of the fields."""
    found = Binaries.find({}, folder_with(tmp_path / "cache", "etcd", "kubectl", "kwok", "stages"))

    assert ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "helm") == found.missing
    assert tmp_path / "cache" / "kubectl" == found.kubectl


def test_the_folder_of_envtest_wins_and_the_cache_has_the_rest(tmp_path: Path) -> None:
    """KUBEBUILDER_ASSETS has three programs; the others come from the next folder that has them."""
    envtest = folder_with(tmp_path / "envtest", "etcd")
    ours = folder_with(tmp_path / "ours", "etcd", "kwok")
    cache = folder_with(tmp_path / "cache", "etcd", "kwok", "helm")

    found = Binaries.find({"KUBEBUILDER_ASSETS": str(envtest), "KERF_CONTROLPLANE_ASSETS": str(ours)}, cache)
    assert (envtest / "etcd", ours / "kwok", cache / "helm") == (found.etcd, found.kwok, found.helm)


def test_a_program_named_by_itself_wins_over_every_folder(tmp_path: Path) -> None:
    """TEST_ASSET_ETCD names one file; where it is not there, no other takes its place."""
    cache = folder_with(tmp_path / "cache", "etcd")
    own = folder_with(tmp_path / "own", "my-etcd") / "my-etcd"

    assert own == Binaries.find({"TEST_ASSET_ETCD": str(own)}, cache).etcd
    assert Binaries.find({"TEST_ASSET_ETCD": str(tmp_path / "gone")}, cache).etcd is None


def test_a_start_without_a_program_says_which_and_what_to_do() -> None:
    """No traceback from a missing file: the name and the command that builds it."""
    with pytest.raises(ControlPlaneError, match=r"etcd: expected a program, got none \(hint: run `make controlplane`"):
        ControlPlane(Binaries()).start()


def test_the_extender_is_verified_only_with_a_certificate() -> None:
    """As in HAMi's chart, https without one trusts whoever answers; http needs nothing."""
    trust = [
        hami_extender("http://127.0.0.1:1").get("tlsConfig"),
        hami_extender("https://127.0.0.1:1").get("tlsConfig"),
        hami_extender("https://127.0.0.1:1", ca_file=Path("/ca.pem")).get("tlsConfig"),
    ]
    assert [None, {"insecure": True}, {"caFile": "/ca.pem"}] == trust


def test_a_reserved_port_is_not_given_twice() -> None:
    """From the moment it is chosen, not from the moment a program listens there."""
    ports = Ports()
    port = ports.reserve()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))

    ports.release()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
