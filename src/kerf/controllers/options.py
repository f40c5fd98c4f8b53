"""How the controllers plan, as the settings say."""

from kerf.config import Settings
from kerf.engine.options import Options
from kerf.model.defaultspread import default_spread_of
from kerf.model.policies import AUTO


def options_of(settings: Settings, *, follows: bool = False) -> Options:
    """The options; only where what is bought is acted on it matters how the plan is followed."""
    return Options(
        settings.strategy,
        settings.follow if follows else AUTO,
        with_bound=False,
        preferences=settings.preference_policy,
        default_spread=default_spread_of(settings.default_spread) or (),
        min_values=settings.min_values_policy,
    )
