"""Documents to model and back: reading files, decoding, expansion of workloads to pods, encoding."""
