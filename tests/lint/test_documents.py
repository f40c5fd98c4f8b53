"""Findings on the manifests of documents 000 to 004, as people see them.

`KERF_UPDATE=1` writes the golden output; the diff is part of the review.
"""

import contextlib
import io
import os
from pathlib import Path

import pytest

from kerf.cli.main import run

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "documents"
DOCUMENTS = {
    "000": ("examples/000-gpu-pools/pool.yaml", "examples/000-gpu-pools/workload.yaml"),
    "001": ("examples/001-migrate/provisioner.yaml", "tests/lint/documents"),
    "002": ("examples/002-batch",),
    "003": (
        "examples/003-hami/nodeoverlay.yaml",
        "examples/003-hami/unlabelled.yaml",
        "examples/003-hami/workload.yaml",
        "examples/003-hami/large.yaml",
    ),
    "004": ("examples/004-ack/nodepool.yaml", "examples/004-ack/workload.yaml", "examples/004-ack/wrong-label.yaml"),
}
"""The files of each document; those of 001 that no example has are here as its authors wrote them."""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_found_in_a_document(document: str) -> None:
    """Each line of it that is wrong is named, with its figures and what to do instead."""
    out, golden = io.StringIO(), FOLDER / f"{document}.out"
    with contextlib.redirect_stdout(out), contextlib.chdir(ROOT):
        code = run(["lint", *DOCUMENTS[document]])

    if os.environ.get("KERF_UPDATE"):
        golden.write_text(out.getvalue(), encoding="utf-8")
    assert 3 == code
    assert golden.read_text(encoding="utf-8") == out.getvalue()
