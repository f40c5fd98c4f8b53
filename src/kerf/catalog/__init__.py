"""Instance types, prices and cards, from dated files in the package: `load_market` is the way in."""

from kerf.catalog.select import is_known, known_types, load_market, provider_of, why_not_sold

__all__ = ["is_known", "known_types", "load_market", "provider_of", "why_not_sold"]
