"""Computations of the Prometheus servers of a seed: series by namespace, usage of Shoots, and alerts.

Shoots are metered in three steps: current usage; sums since the creation of the server's volume; and increases a day,
which tolerate the loss of a volume.
"""

from collections.abc import Sequence

from components.monitors import OF_COMPONENTS, OF_SHOOTS
from kube.objects import Object

_SHOOTS = f'namespace=~"{OF_SHOOTS}"'
_COMPONENTS = f'namespace=~"{OF_COMPONENTS}"'
_MINUTE = 60
"""Seconds between two evaluations."""
_UNAVAILABLE, _RESTARTS = "kube_deployment_status_replicas_unavailable", "kube_pod_container_status_restarts_total"
_REQUESTS = "kube_pod_container_resource_requests"
_VOLUME = "kubelet_volume_stats"
AGGREGATED: Sequence[str] = (
    '{__name__=~"(namespace|namespace_pod|seed|metering):.+"}',
    "up",
    f'{{__name__=~"{_UNAVAILABLE}|{_RESTARTS}",{_COMPONENTS}}}',
    f'{{__name__=~"{_VOLUME}_(available|capacity)_bytes",namespace="garden"}}',
)
"""Selectors of the series that are aggregated in one server."""
_METERED = {
    "cpu_cores": f"namespace:container_cpu_usage_seconds:rate5m{{{_SHOOTS}}}",
    "memory_bytes": f"namespace:container_memory_working_set_bytes:sum{{{_SHOOTS}}}",
    "cpu_requests_cores": f'sum by (namespace) ({_REQUESTS}{{resource="cpu",{_SHOOTS}}})',
    "memory_requests_bytes": f'sum by (namespace) ({_REQUESTS}{{resource="memory",{_SHOOTS}}})',
    "volume_requests_bytes": (
        f"sum by (namespace) (kube_persistentvolumeclaim_resource_requests_storage_bytes{{{_SHOOTS}}})"
    ),
    "sent_bytes": f"namespace:container_network_transmit_bytes:rate5m{{{_SHOOTS}}}",
}
"""Amounts of a Shoot's control plane, by namespace."""


def _series(**expressions: str) -> list[Object]:
    return [{"record": name.replace("__", ":"), "expr": expr} for name, expr in expressions.items()]


def of_namespaces() -> list[Object]:
    containers = '{container!="",pod!=""}'
    cpu, memory = (
        "namespace_pod:container_cpu_usage_seconds:rate5m",
        "namespace_pod:container_memory_working_set_bytes:sum",
    )
    return _series(
        namespace_pod__container_cpu_usage_seconds__rate5m=(
            f"sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{containers}[5m]))"
        ),
        namespace_pod__container_memory_working_set_bytes__sum=(
            f"sum by (namespace, pod) (container_memory_working_set_bytes{containers})"
        ),
        namespace__container_cpu_usage_seconds__rate5m=f"sum by (namespace) ({cpu})",
        namespace__container_memory_working_set_bytes__sum=f"sum by (namespace) ({memory})",
        namespace__container_network_receive_bytes__rate5m=_network("receive"),
        namespace__container_network_transmit_bytes__rate5m=_network("transmit"),
        seed__nodes__count="count(kube_node_info)",
        seed__nodes_ready__count='sum(kube_node_status_condition{condition="Ready",status="true"})',
        seed__allocatable__sum="sum by (resource) (kube_node_status_allocatable)",
        seed__requests__sum=f"sum by (resource) ({_REQUESTS})",
    )


def _network(direction: str) -> str:
    return f'sum by (namespace) (rate(container_network_{direction}_bytes_total{{pod!="",host_network!="true"}}[5m]))'


def metering() -> list[Object]:
    """Current usage by control planes of Shoots, with the uid of the Shoot."""
    uid = "annotation_shoot_gardener_cloud_uid"
    of_shoot = (
        f"* on (namespace) group_left ({uid}) max by (namespace, {uid}) (kube_namespace_annotations{{{_SHOOTS}}})"
    )
    return [{"record": f"metering:{name}:sum", "expr": f"({expr}) {of_shoot}"} for name, expr in _METERED.items()]


def metered() -> list[Object]:
    """Sum of the usage over time, which each evaluation continues: amounts times seconds."""
    found = list[Object]()
    for name in _METERED:
        total, now = f"metering:{name}_seconds:total", f"{_MINUTE} * metering:{name}:sum"
        found.append({"record": total, "expr": f"({total} + {now}) or {now}"})
    return found


def metered_by_day() -> list[Object]:
    return [
        {"record": f"metering:{name}_seconds:increase1d", "expr": f"increase(metering:{name}_seconds:total[1d])"}
        for name in _METERED
    ]


def alerts() -> list[Object]:
    return [
        _alert(
            "SeedNodesNotReady",
            "seed:nodes:count - seed:nodes_ready:count > 0",
            minutes=15,
            summary="{{ $value }} nodes of the seed are not ready.",
        ),
        _alert(
            "SeedComponentUnavailable",
            f"{_UNAVAILABLE}{{{_COMPONENTS}}} > 0",
            minutes=15,
            summary="Deployment {{ $labels.namespace }}/{{ $labels.deployment }} has Pods that are not available.",
        ),
        _alert(
            "SeedComponentRestarts",
            f"increase({_RESTARTS}{{{_COMPONENTS}}}[1h]) > 5",
            minutes=5,
            summary="Container {{ $labels.container }} of {{ $labels.namespace }}/{{ $labels.pod }} restarts often.",
        ),
        _alert(
            "SeedVolumeAlmostFull",
            f"{_VOLUME}_available_bytes / {_VOLUME}_capacity_bytes < 0.05",
            minutes=60,
            summary="Volume {{ $labels.namespace }}/{{ $labels.persistentvolumeclaim }} has less than 5 % left.",
        ),
        _alert(
            "SeedTargetDown",
            "up == 0",
            minutes=30,
            summary="Prometheus gets no metrics of {{ $labels.instance }}, job {{ $labels.job }}.",
        ),
    ]


def _alert(name: str, expression: str, *, minutes: int, summary: str) -> Object:
    return {
        "alert": name,
        "expr": expression,
        "for": f"{minutes}m",
        "labels": {"severity": "warning", "type": "seed"},
        "annotations": {"summary": summary},
    }
