"""Terms of an EC2NodeClass as filters of EC2, and as words."""

from collections.abc import Iterable, Sequence

from kerf.clouds.aws.nodeclass.model import Pairs

ANY = "*"
MOST_VALUES = 200
"""EC2 takes so many values in the filters of one call (Amazon EC2 API Reference, "Filter", 2026-11)."""

Filter = dict[str, object]


def filter_of(name: str, values: Iterable[str]) -> Filter:
    """One filter; any of the values fits."""
    return {"Name": name, "Values": list(values)}


def tag_filters(tags: Pairs) -> list[Filter]:
    """Filters that all have to fit; `*` asks for the key alone."""
    return [filter_of("tag-key", [key]) if value == ANY else filter_of(f"tag:{key}", [value]) for key, value in tags]


def words_of(**texts: str | Pairs) -> str:
    """What a term asks for, e.g. `name nodes, tag team=ml`; `_` in a name is a space."""
    said = []
    for name, given in texts.items():
        if isinstance(given, str):
            said += [f"{name.replace('_', ' ')} {given}"] if given else []
        else:
            said += [f"tag {key}={value}" for key, value in given]
    return ", ".join(said)


def either(terms: Sequence[str]) -> str:
    """The words of terms, of which one has to fit: at most five of them."""
    more = [f"one of {len(terms) - 5} more terms"] if len(terms) > 5 else []
    return "; or ".join([*terms[:5], *more])
