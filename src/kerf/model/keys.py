"""The keys of annotations, labels, taints and limits in Kerf's own domain.

A key in it that Kerf does not know does nothing, so a typing error is silent unless it is looked for.
"""

DOMAIN = "kerf.dev/"
_NAMES = (
    "admitted-by assumed-claim booking-namespaces buffer-namespaces cordoned cost-per-hour drifted"
    " device-plugin-configs eviction follow gpu-sharing hami-mode interrupt"
    " kwok-instance lead-times lint-ignore max-launches-per-minute"
    " max-price-per-gpu-hour max-price-per-hour mig-configs min-nodes observed-devices opportunistic"
    " opportunistic-namespaces overloaded-by pinned planned-offering planned-pods planned-price planned-rounds"
    " pod-group pod-group-min pods-seen predicted-devices prewarm prewarm-cronjobs prewarm-namespaces"
    " registered-less rejected relabelled replace-expired replaced-by replaces"
    " reserved-for restart-cost run-for usage-history window window-namespaces"
)
KNOWN_KEYS = frozenset(f"{DOMAIN}{name}" for name in _NAMES.split())
CLOUD_TAGS = frozenset({f"{DOMAIN}claim-uid", f"{DOMAIN}nodeclass-hash", f"{DOMAIN}owned"})
"""Keys of tags of what Kerf makes in a cloud; in a manifest they do nothing."""
