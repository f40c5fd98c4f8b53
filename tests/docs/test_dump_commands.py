"""The commands with which the pages show how a cluster is dumped, as they stand, against a server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.canned import kubeconfig, serving
from tests.cli.test_snapshot import answering
from tests.docs.test_documents_run import ROOT

PAGES = ("README.md", "docs/reference/cli/snapshot.md")
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    if "kerf snapshot" in block
]


@pytest.mark.parametrize("page, block", BLOCKS, ids=[page for page, _ in BLOCKS])
def test_a_cluster_is_dumped_as_the_page_says(tmp_path: Path, page: str, block: str) -> None:
    """Line by line in a shell; 3 says that pods are left, which is no failure."""
    (tmp_path / "kerf").symlink_to(Path(sys.executable).with_name("kerf"))
    with serving(answering()) as server:
        path = f"{tmp_path}:{os.environ['PATH']}"
        environment = {**os.environ, "KUBECONFIG": kubeconfig(tmp_path, server), "PATH": path}
        for line in block.splitlines():
            command = ["sh", "-c", line]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 3), done.stderr


def test_the_readme_and_the_reference_show_it() -> None:
    """A page that no longer does is no test that passes."""
    assert set(PAGES) == {page for page, _ in BLOCKS}
