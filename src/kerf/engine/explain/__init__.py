"""Words for what was decided: reasons, notes, hints. Nothing here decides."""
