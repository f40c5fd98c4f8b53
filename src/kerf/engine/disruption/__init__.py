"""Which nodes may go, which go first, what comes in their place, and why the others stay.

`first` asks each method in turn (`repair`, `emptiness`, `staticdrift`, `drift`, `pricecaps`, `repacking`,
`consolidation`), `substitution` finds what holds the pods of nodes that go, `keeping` says why a node stays.
"""
