"""What depends on the version of Kubernetes that a cluster has."""

import re

from devcluster.cluster import Cluster


def minor_version(cluster: Cluster) -> int:
    """30 for Kubernetes 1.30."""
    found = re.match(r"\d+", cluster.api.get("/version")["minor"])
    assert found is not None
    return int(found[0])
