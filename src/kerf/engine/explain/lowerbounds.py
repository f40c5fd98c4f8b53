"""What a lower bound takes no notice of, in words: with it the pods may cost more, and never less."""

from kerf.model.lowerbound import Ignored

_TEXTS = {
    Ignored.OTHER_PODS: "what pods ask of where other pods run: spread and affinity",
    Ignored.LIMITS: "limits of NodePools",
    Ignored.MIN_VALUES: "minValues of NodePools",
    Ignored.OTHER_PRICES: "that an instance type costs more in some zones or capacity types",
    Ignored.RESERVATIONS: "how many instances a reservation has",
    Ignored.BUDGET: "prices that would prove more: the search for them was ended",
}


def ignored_text(ignored: Ignored) -> str:
    """The end of a sentence that begins `the bound ignores`."""
    return _TEXTS[ignored]
