"""What a cluster does with objects, nodes, pods and workloads as far as Kerf or a person who watches it can notice.

Each rule is tried twice: on the in-memory cluster by `test_cluster.py` beside this file, and on a real one (Kubernetes
1.36, kwok's nodes) by `tests/controlplane/test_cluster_rules.py`. Where the two differ the in-memory one is wrong.
"""

from tests.conformance import eviction_rules, gate_rules, object_rules, scheduling_rules, workload_rules

RULES = (*object_rules.RULES, *scheduling_rules.RULES, *eviction_rules.RULES, *workload_rules.RULES, *gate_rules.RULES)
