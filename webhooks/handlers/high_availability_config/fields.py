"""What high-availability-config touches of each kind."""

from kube.objects import Object
from webhooks.shapes import Fields, Int32, Metadata, Shape, Strings


class _Expression(Fields):
    key: str | None = None


class _Term(Fields):
    match_expressions: list[_Expression] | None = None


class _NodeSelector(Fields):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(Fields):
    required_during_scheduling_ignored_during_execution: _NodeSelector | None = None


class _Affinity(Fields):
    node_affinity: _NodeAffinity | None = None


class _Toleration(Fields):
    key: str | None = None
    effect: str | None = None


class _Constraint(Fields):
    topology_key: str | None = None
    match_label_keys: list[str] | None = None


class _PodSpec(Fields):
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] | None = None
    topology_spread_constraints: list[_Constraint] | None = None


class _TemplateMetadata(Fields):
    labels: Strings | None = None


class _Template(Fields):
    metadata: _TemplateMetadata | None = None
    spec: _PodSpec | None = None


class _Selector(Fields):
    match_labels: Strings | None = None


class _WorkloadSpec(Fields):
    replicas: Int32 | None = None
    selector: _Selector | None = None
    template: _Template | None = None


class _Workload(Fields):
    metadata: Metadata | None = None
    spec: _WorkloadSpec | None = None
    status: Object | None = None


class _Bounds(Fields):
    min_replicas: Int32 | None = None
    max_replicas: Int32 | None = None


class _HPA(Fields):
    metadata: Metadata | None = None
    spec: _Bounds | None = None
    status: Object | None = None


class _HPATemplate(Fields):
    spec: _Bounds | None = None


class _HPAOfHVPA(Fields):
    template: _HPATemplate | None = None


class _HVPASpec(Fields):
    hpa: _HPAOfHVPA | None = None


class _HVPA(Fields):
    metadata: Metadata | None = None
    spec: _HVPASpec | None = None


DEPLOYMENT = Shape("apps/v1", "Deployment", _Workload)
STATEFUL_SET = Shape("apps/v1", "StatefulSet", _Workload)
HPAS = {version: Shape(f"autoscaling/{version}", "HorizontalPodAutoscaler", _HPA) for version in ("v2beta1", "v2")}
HVPA = Shape("autoscaling.k8s.io/v1alpha1", "Hvpa", _HVPA)
