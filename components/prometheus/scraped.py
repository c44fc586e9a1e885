"""Scrape configuration and computed series of each Prometheus server of a seed, with its resources."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from components import monitors
from components.monitors import (
    AGGREGATE,
    ANNOTATED,
    CACHE,
    OF_COMPONENTS,
    SEED,
    drop,
    federation,
    keep,
    pod_monitor,
    rules,
    scrape_config,
    service_monitor,
)
from components.parts import GARDEN, made
from components.prometheus import computed
from components.prometheus.servers import Server, Values, name_of
from gardener import keys
from kube.objects import Object
from kube.resources import NETWORK_POLICIES
from kube.yaml import Dumper

_KUBELET, _NODE_EXPORTER = 10250, 16909
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_OF_CONTAINERS = (
    *("cpu_cfs_periods_total", "cpu_cfs_throttled_periods_total", "cpu_cfs_throttled_seconds_total"),
    *("cpu_usage_seconds_total", "fs_inodes_total", "fs_limit_bytes", "fs_reads_bytes_total", "fs_usage_bytes"),
    *("fs_writes_bytes_total", "last_seen", "memory_cache", "memory_mapped_file", "memory_rss", "memory_usage_bytes"),
    *("memory_working_set_bytes", "oom_events_total"),
)
_OF_NETWORKS = ("network_receive_bytes_total", "network_transmit_bytes_total")
_NODE_INTERFACES = ("eth0", "ens.+", "tunl0")
"""Network interfaces of a node that lead outside."""
_POD_INTERFACES = (".{5,}", "tun0", "en.+")
"""Network interfaces in a Pod's network that belong to the node, or to a tunnel."""
_OF_VOLUMES = ("available_bytes", "capacity_bytes", "used_bytes")


def cache(values: Values) -> Server:
    return Server(
        name=CACHE,
        memory="1G",
        volume=10,
        keeps={"retention": "1d", "retentionSize": "5GB"},
        jobs=yaml.dump([_cadvisor(), _kubelet()], Dumper=Dumper, sort_keys=False, width=1000),
        more=[
            service_monitor(
                CACHE,
                "node-exporter",
                namespace="kube-system",
                selects={"component": "node-exporter"},
                endpoint={"metricRelabelings": [keep("node_(cpu|filesystem|load|memory|network|pressure|time)_?.*")]},
            ),
            *_egress(values),
            rules(CACHE, "recording-rules", computed.of_namespaces()),
            rules(CACHE, "metering", computed.metering()),
            rules(CACHE, "metering-stateful", computed.metered()),
        ],
    )


def seed(_: Values) -> Server:
    in_extensions = keep("extension-.+", "__meta_kubernetes_namespace")
    return Server(
        name=SEED,
        memory="400Mi",
        volume=100,
        keeps={"retentionSize": "85GB"},
        reaches=[
            f"{keys.NETWORKING_PREFIX}to-all-shoots-vpa-recommender-tcp-8942",
            f"{keys.NETWORKING_PREFIX}to-extensions-all-seed-scrape-targets",
        ],
        more=[
            pod_monitor(
                SEED,
                "garden",
                namespaceSelector={"matchNames": [GARDEN]},
                endpoint={"relabelings": list(ANNOTATED)},
            ),
            pod_monitor(
                SEED,
                "extensions",
                namespaceSelector={"any": True},
                endpoint={"relabelings": [in_extensions, *ANNOTATED]},
            ),
            federation(
                SEED,
                "cadvisor",
                targets=[_address(CACHE)],
                matches=[f'{{job="cadvisor",namespace=~"{OF_COMPONENTS}"}}'],
            ),
            scrape_config(
                SEED,
                "prometheus",
                staticConfigs=[{"targets": ["localhost:9090"]}],
                relabelings=[{"action": "replace", "targetLabel": "job", "replacement": name_of(SEED)}],
            ),
        ],
    )


def aggregate(values: Values) -> Server:
    shoots = {"app": "prometheus", "name": "shoot", "role": "monitoring"}
    return Server(
        name=AGGREGATE,
        memory="1G",
        volume=20,
        keeps={"retention": "30d", "retentionSize": "15GB"},
        reaches=[
            f"{keys.NETWORKING_PREFIX}to-{each}"
            for each in (
                "all-istio-ingresses-all-seed-scrape-targets",
                "all-shoots-prometheus-shoot-tcp-9090",
                "istio-system-all-seed-scrape-targets",
            )
        ],
        external_labels={"seed": values.seed},
        more=[
            federation(AGGREGATE, "prometheus", targets=[_address(CACHE), _address(SEED)], matches=computed.AGGREGATED),
            service_monitor(
                AGGREGATE,
                "shoot-prometheus",
                selects=shoots,
                namespaceSelector={"any": True},
                endpoint={
                    "port": "web",
                    "path": "/federate",
                    "params": {"match[]": ['{__name__=~"shoot:.+"}', "ALERTS"]},
                    "honorLabels": True,
                    "honorTimestamps": False,
                },
            ),
            rules(AGGREGATE, "metering-stateful", computed.metered_by_day()),
            rules(AGGREGATE, "seed", computed.alerts()),
        ],
    )


def _address(server: str) -> str:
    return f"{name_of(server)}.{GARDEN}.svc:80"


# --- nodes


def _egress(values: Values) -> Iterator[Object]:
    """Policies for traffic to nodes, which policies of namespaces don't cover."""
    targets = {"kube-system-node-exporter": _NODE_EXPORTER, "kubelet": _KUBELET}
    for target, port in targets.items() if values.nodes else ():
        to = {"to": [{"ipBlock": {"cidr": values.nodes}}], "ports": [{"protocol": "TCP", "port": port}]}
        spec = {"podSelector": {"matchLabels": {monitors.SERVER: CACHE}}, "policyTypes": ["Egress"], "egress": [to]}
        yield made(
            NETWORK_POLICIES, f"egress-from-cache-prometheus-to-{target}-tcp-{port}", namespace=GARDEN, spec=spec
        )


def _of_nodes(job: str, *relabelings: Object, **fields: Any) -> Object:
    """Scrape config of all kubelets, by their internal addresses."""
    address = {"source_labels": ["__meta_kubernetes_node_address_InternalIP"], "target_label": "instance"}
    labels = [
        address,
        {"action": "labelmap", "regex": "__meta_kubernetes_node_label_(.+)"},
        {"target_label": "type", "replacement": "seed"},
    ]
    return {
        "job_name": job,
        "honor_labels": False,
        "scheme": "https",
        "tls_config": {"ca_file": f"{_ACCOUNT}/ca.crt", "insecure_skip_verify": False},
        "bearer_token_file": f"{_ACCOUNT}/token",
        "kubernetes_sd_configs": [{"role": "node"}],
        **fields,
        "relabel_configs": labels,
        "metric_relabel_configs": [_as_configured(each) for each in relabelings],
    }


def _kubelet() -> Object:
    return _of_nodes("kubelet", keep(f"kubelet_volume_stats_({'|'.join(_OF_VOLUMES)})"))


def _cadvisor() -> Object:
    """Scrape config of containers, the network of their Pods, and services of nodes in the form of containers."""
    measured = f"container_({'|'.join((*_OF_CONTAINERS, *_OF_NETWORKS))})"
    of_node = f"container_network.+;;(?:(?:{'|'.join(_NODE_INTERFACES)});/|eth0;/.+)"
    of_pod = f"container_network.+;POD;(?:{'|'.join(_POD_INTERFACES)})"
    of_service = {"action": "replace", "sourceLabels": ["id"], "regex": r"/system\.slice/(.+)\.service"}
    return _of_nodes(
        "cadvisor",
        keep(measured),
        *({**of_service, "targetLabel": label, "replacement": "$1"} for label in ("systemd_service_name", "container")),
        # The container POD only has metrics of a Pod's network that matter.
        drop(f"POD;container_({'|'.join(_OF_CONTAINERS)})", "container", "__name__"),
        # Series without a container are slices of the node: only their network is of interest.
        keep(f"{of_node}|.+;.+;.*;.*", "__name__", "container", "interface", "id"),
        drop(of_pod, "__name__", "container", "interface"),
        {
            "sourceLabels": ["__name__", "id"],
            "regex": "container_network.+;/",
            "targetLabel": "host_network",
            "replacement": "true",
        },
        {"action": "labeldrop", "regex": "id"},
        metrics_path="/metrics/cadvisor",
        honor_timestamps=False,
    )


def _as_configured(relabeling: Mapping[str, Any]) -> Object:
    """Relabeling in Prometheus' own format: `source_labels`, not `sourceLabels`."""
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): value for name, value in relabeling.items()}
