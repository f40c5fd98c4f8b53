"""What a shell proposes behind a flag."""

from typing import Any

from click.shell_completion import CompletionItem


def a_file(*asked: Any) -> list[CompletionItem]:
    """What a shell proposes for the name of a file: its own files."""
    return [CompletionItem(asked[2], type="file")]
