"""The page of modules follows the code, and every module says what it is."""

from tools.document_modules import PAGE, ROOT, page


def test_the_page_of_modules_is_generated() -> None:
    """`python tools/document_modules.py` writes it."""
    assert page() == (ROOT / PAGE).read_text(encoding="utf-8")


def test_no_module_is_without_a_word() -> None:
    """A reader finds a line by what its module says it is."""
    assert [] == [line for line in page().splitlines() if line.endswith("|  |")]
