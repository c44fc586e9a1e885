"""Which workloads the webhook has to look at again."""

from collections.abc import Mapping
from typing import Any

from kube.objects import labels

CONSIDER = "high-availability-config.resources.gardener.cloud/consider"
"""Label of Namespaces whose workloads the webhook looks at."""
SKIP = "high-availability-config.resources.gardener.cloud/skip"
"""Label of workloads that it leaves alone."""

_HOST = "kubernetes.io/hostname"


def is_outdated(workload: Mapping[str, Any], *, several_nodes: bool) -> bool:
    """Whether the spread over hosts is as for the other number of Nodes."""
    if SKIP in labels(workload):
        return False
    pod_spec = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    constraints = pod_spec.get("topologySpreadConstraints") or []
    over_hosts = next((each for each in constraints if each.get("topologyKey") == _HOST), None)
    outdated = "ScheduleAnyway" if several_nodes else "DoNotSchedule"
    return over_hosts is not None and over_hosts.get("whenUnsatisfiable") == outdated
