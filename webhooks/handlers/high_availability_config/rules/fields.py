"""What high-availability-config touches of each kind."""

from kube.objects import Object
from webhooks.rules.shapes import METADATA, Int32, Shape, Strings

_NODE_SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": str}]}]}
_POD_SPEC = {
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR}},
    "tolerations": [{"key": str, "effect": str}],
    "topologySpreadConstraints": [{"topologyKey": str, "matchLabelKeys": [str]}],
}
_WORKLOAD_SPEC = {
    "replicas": Int32,
    "selector": {"matchLabels": Strings},
    "template": {"metadata": {"labels": Strings}, "spec": _POD_SPEC},
}
_WORKLOAD = {"metadata": METADATA, "spec": _WORKLOAD_SPEC, "status": Object}
_BOUNDS = {"minReplicas": Int32, "maxReplicas": Int32}
_HPA = {"metadata": METADATA, "spec": _BOUNDS, "status": Object}
_HVPA = {"metadata": METADATA, "spec": {"hpa": {"template": {"spec": _BOUNDS}}}}

DEPLOYMENT = Shape("apps/v1", "Deployment", _WORKLOAD)
STATEFUL_SET = Shape("apps/v1", "StatefulSet", _WORKLOAD)
HPAS = {version: Shape(f"autoscaling/{version}", "HorizontalPodAutoscaler", _HPA) for version in ("v2beta1", "v2")}
HVPA = Shape("autoscaling.k8s.io/v1alpha1", "Hvpa", _HVPA)
