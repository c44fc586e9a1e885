"""Numbers that every StatefulSet and HorizontalPodAutoscaler has in its status, once an API server has seen it.

The original writes them as zeros where they are missing, whatever else it changes, and so do we, to answer as it does.
It means nothing in a cluster: API servers send objects that have them, and take no status from an admission patch.
"""

from typing import Any

from kube.objects import Object

_NUMBERS = {
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "HorizontalPodAutoscaler": {"desiredReplicas": 0},
}


def completed(obj: Object, kind: str) -> Object:
    status: dict[str, Any] = obj.get("status") or {}
    missing = {name: zero for name, zero in _NUMBERS.get(kind, {}).items() if status.get(name) is None}
    return {**obj, "status": {**status, **missing}} if missing else obj
