"""What a text in a ConfigMap may cost: little, whatever it stands for."""

import re
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import MOST_CHARACTERS, MOST_VALUES, document
from kerf.sharing.hami.family import Hami
from kerf.sharing.registry import configures, of_plugins, problem_in


def doubled(levels: int, first: str, more: str) -> str:
    """Each level holds the one below ten times, by aliases; `more` makes a level of the name of the one below."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} " + more % ", ".join([f"*a{n - 1}"] * 10) for n in range(1, levels)]
    return "\n".join((*lines, f"nvidia: *a{levels - 1}"))


HUGE = {
    "lists": (doubled(9, "[x, x]", "[%s]"), "values, aliases counted in full"),
    "mappings": (doubled(9, "{a: 1}", "{k: [%s]}"), "values, aliases counted in full"),
    "merges": (doubled(9, "{a: 1}", "{<<: [%s]}"), "values, aliases counted in full"),
    "itself": ("nvidia: &a {b: *a}", "the alias 'a' stands in itself"),
    "values": ("nvidia: [" + "1," * (MOST_VALUES + 1) + "]", "values, aliases counted in full"),
    "text": ("nvidia: {}\n" + "# x\n" * (MOST_CHARACTERS // 4), "characters, and 131072 are read"),
    "brackets": ("nvidia: " + "[" * 60_000, "nested too deeply"),
    "dashes": ("- " * 60_000, "nested too deeply"),
    "number": ("nvidia: {deviceSplitCount: 1" + ":59" * 40_000 + "}", "a number of 120001 digits"),
    "tagged number": ('nvidia: {deviceSplitCount: !!int "' + "9" * 9_000 + '"}', "a number of 9000 digits"),
    "key": ("nvidia: {? 0x" + "f" * 9_000 + " : 1}", "a number of 9002 digits"),
}


def config_map(text: str, namespace: str = "kube-system") -> ConfigMap:
    """HAMi's."""
    return ConfigMap(namespace, "hami-scheduler-device", {"device-config.yaml": text})


@pytest.mark.parametrize("text, reason", HUGE.values(), ids=list(HUGE))
def test_a_text_that_grows_is_refused_before_anything_is_made_of_it(text: str, reason: str) -> None:
    """With a reason, in an error that is short itself."""
    problem = problem_in([config_map(text)])

    assert problem is not None
    assert re.search(reason, str(problem))
    assert len(str(problem)) < 300


@pytest.mark.parametrize("text, reason", HUGE.values(), ids=list(HUGE))
def test_the_same_holds_for_the_maps_of_nvidias_plugins(text: str, reason: str) -> None:
    """Below the marks by which they are known."""
    del reason
    for marks in ("mig-configs: {}\n", "version: v1\nsharing: {}\n"):
        held = ConfigMap("gpu-operator", "custom-mig-config", {"config.yaml": marks + text})
        assert problem_in([held]) is not None


def test_aliases_within_reason_are_read() -> None:
    """One part used twice is what they are for."""
    text = "base: &base {deviceSplitCount: 7}\nnvidia: {<<: *base, defaultCores: 5}"

    config = Hami().configured([config_map(text)]).config
    assert (7, 5) == (config.split_count, config.default_cores)


def test_a_large_value_in_a_field_is_not_shown_in_full() -> None:
    """A list where a number belongs."""
    problem = problem_in([config_map("nvidia: {deviceSplitCount: [" + "x, " * 9_000 + "]}")])

    assert problem is not None
    assert len(str(problem)) < 250


TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc: \n-{", max_size=9),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text("abc", max_size=3), below, max_size=4),
)


@given(TEXTS, st.booleans())
def test_what_is_within_the_limits_is_read_as_pyyaml_reads_it(value: object, is_flow: bool) -> None:
    """Also with the aliases that its writer makes of parts that are one object."""
    text = yaml.safe_dump([value, value], default_flow_style=is_flow)

    assert yaml.safe_load(text) == document(config_map(text), "k", text).value


class Odd(dict[str, str]):
    """The data of a map that a reader of ours has a bug with."""

    def items(self) -> Iterator[tuple[str, str]]:  # type: ignore[override]
        """Fails."""
        raise ZeroDivisionError("a mistake of ours")


def test_our_own_mistake_is_the_error_of_that_map() -> None:
    """Callers know what to do with that: its last form counts."""
    problem = problem_in([ConfigMap("gpu-operator", "x", Odd(a="b"))])

    assert problem is not None
    assert "got <what Kerf fails at: ZeroDivisionError>" in str(problem)


def test_simulated_plugins_read_where_plugins_are() -> None:
    """A tenant's map counts only where no other is: then it is the only one that can be meant."""
    theirs, own = config_map("nvidia: {}", "team-a"), config_map("nvidia: {}")

    assert (own,) == of_plugins([theirs, own])
    assert (theirs,) == of_plugins([theirs])


def test_the_default_namespaces_are_those_of_charts_and_guides() -> None:
    """None of them is a tenant's, least of all `default`."""
    assert {"kube-system", "gpu-operator", "nvidia-device-plugin"} <= set(PLUGIN_NAMESPACES)
    assert "default" not in PLUGIN_NAMESPACES


@pytest.mark.parametrize(
    "held, expected",
    [
        (config_map("nvidia: {deviceSplitCount: 3}"), True),
        (config_map("nvidia: ["), True),
        (config_map("{}"), True),
        (ConfigMap("kube-system", "other", {"a": "b"}), False),
    ],
)
def test_a_map_configures_where_a_family_reads_it(held: ConfigMap, expected: bool) -> None:
    """Or tries to, and cannot; HAMi's with the defaults says that HAMi is there."""
    assert expected == configures(held)
