"""Documents to model and back: each folder is one kind's form, decoding and encoding."""
