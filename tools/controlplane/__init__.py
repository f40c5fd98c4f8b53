"""A real control plane on loopback, and Kerf installed there: for tests, the playground and benchmarks."""
