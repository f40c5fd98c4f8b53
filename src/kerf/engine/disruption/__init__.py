"""Which nodes may go, which go first, and why the others stay.

`first` asks each method in turn (`emptiness`, `consolidation`, `pricecaps`), `keeping` says why a node stays.
"""
