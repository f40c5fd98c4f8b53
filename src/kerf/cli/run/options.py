"""What a replica starts with: what the flags, variables and file of `kerf run` come to."""

from dataclasses import dataclass

NO_CLOUD = (
    "expected aws or kwok, got nothing (hint: aws launches EC2 instances; kwok launches nothing and acts out machines "
    "as Node objects, for a test cluster)"
)
"""What is said where nothing names the cloud."""


@dataclass(frozen=True)
class RunOptions:
    """What `kerf run` is given besides the settings of the controllers."""

    kubeconfig: str | None
    context: str | None
    cloud: str
    acted_out_on_real_cluster: bool
    catalog: str | None
    region: str | None
    cluster_name: str
    aws_endpoint: str
    interruption_queue: str
    namespace: str
    is_dry_run: bool
    elects: bool
    lease_s: float
    renew_s: float
    retry_s: float
    managed_selector: str
    metrics_address: str
    metrics_auth: bool
    health_address: str
    unready_s: float
    log_format: str
    log_level: str
