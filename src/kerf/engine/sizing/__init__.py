"""What workloads and pools might ask and allow instead, worked out by planning: behind `kerf advise` and what-if."""
