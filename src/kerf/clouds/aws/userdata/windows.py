"""Windows: PowerShell that calls `Start-EKSBootstrap.ps1` of the image, after the user's own commands."""

from kerf.clouds.aws.userdata.facts import NodeFacts
from kerf.clouds.aws.userdata.flags import kubelet_flags, safe

_SCRIPT = r'[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"'


def render(facts: NodeFacts) -> str:
    """The script. Raises Unusable where a value could end its quotes."""
    cluster, dns = facts.cluster, facts.kubelet.cluster_dns
    call = f"-EKSClusterName '{safe(cluster.name)}' -APIServerEndpoint '{safe(cluster.endpoint)}'"
    if cluster.ca_bundle:
        call += f" -Base64ClusterCA '{safe(cluster.ca_bundle)}'"
    call += f" -KubeletExtraArgs '{kubelet_flags(facts)}'"
    if dns:
        call += f" -DNSClusterIP '{safe(dns[0])}'"
    custom = [facts.custom] if facts.custom else []
    return "\n".join(["<powershell>", *custom, _SCRIPT, f"& $EKSBootstrapScriptFile {call}", "</powershell>"])
