"""What else pods could ask, and pools could allow."""
