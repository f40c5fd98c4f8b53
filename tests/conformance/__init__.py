import pytest

# So that a rule that is broken says what it saw, as a test does.
for _module in ("cluster", "object_rules", "scheduling_rules", "eviction_rules", "workload_rules"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")
