"""The file that `--config` of `kerf run` names: one key a setting, in YAML."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from kerf.errors import ConfigError

_NOTHING = ("", "~", "null")
_KINDS = {yaml.ScalarNode: "text", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}


def settings_in(path: str) -> Iterator[tuple[str, str, str]]:
    """(place, key, value) in order of the file. Every value is text, because `follow: off` does not mean false."""
    named = f"--config {path}"
    try:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"{named}: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ConfigError(f"{named}{line}: expected YAML with one key a setting: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{named}: expected YAML with one key a setting, got {type(error).__name__}") from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{named}: expected one key a setting, such as `batch-idle: 2s`, got {_KINDS[type(root)]}")
    for key, value in root.value:
        place = f"{named}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{place}: expected the name of a setting, got {_KINDS[type(key)]}")
        if not isinstance(value, yaml.ScalarNode) or (value.style is None and value.value in _NOTHING):
            got = "nothing" if isinstance(value, yaml.ScalarNode) else _KINDS[type(value)]
            raise ConfigError(f"{place}: {key.value}: expected a text, a number or true/false, got {got}")
        yield place, key.value, value.value
