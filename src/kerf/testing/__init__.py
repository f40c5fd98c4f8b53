"""For tests of Kerf and of cloud providers: builders of model values, and the checks every provider must pass."""
