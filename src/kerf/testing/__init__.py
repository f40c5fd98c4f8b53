"""For tests of Kerf and of cloud providers: builders of model values."""
