"""Objects into which controllers of Kubernetes write what a manifest leaves open, as people write them.

One for each such field that a default controller of kube-controller-manager, kube-scheduler or kube-apiserver fills in
outside of `status`. Together with one object of every kind (`kit.bundles.bundle`) they are all that those could quarrel about with
authors of manifests.
"""

from typing import Any

from kube.objects import Object

_RBAC = "rbac.authorization.k8s.io/v1"
_POD: Object = {"containers": [{"name": "c", "image": "registry.example.com/i:v1"}]}
_STORAGE: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def objects(namespace: str) -> list[Object]:
    """Those outside of namespaces have names that begin with the namespace's."""

    def placed(api_version: str, kind: str, name: str, **fields: Any) -> Object:
        meta = {"namespace": namespace, "name": name, **fields.pop("metadata", {})}
        return {"apiVersion": api_version, "kind": kind, **fields, "metadata": meta}

    def global_(api_version: str, kind: str, name: str, **fields: Any) -> Object:
        meta = {"name": f"{namespace}-{name}", **fields.pop("metadata", {})}
        return {"apiVersion": api_version, "kind": kind, **fields, "metadata": meta}

    def workload(name: str, **spec: Any) -> Object:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _POD}
        return {"selector": {"matchLabels": labels}, "template": template, **spec}

    aggregated = {"clusterRoleSelectors": [{"matchLabels": {f"{namespace}/aggregate": "true"}}]}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    return [
        # clusterrole-aggregation: the rules
        global_(_RBAC, "ClusterRole", "part", metadata={"labels": {f"{namespace}/aggregate": "true"}}, rules=rules),
        global_(_RBAC, "ClusterRole", "aggregated", aggregationRule=aggregated, rules=[]),
        global_(_RBAC, "ClusterRole", "aggregated-open", aggregationRule=aggregated),
        # serviceaccount-token: token, CA and namespace; the uid in an annotation
        placed("v1", "ServiceAccount", "robot"),
        placed(
            "v1",
            "Secret",
            "robot-token",
            type="kubernetes.io/service-account-token",
            metadata={"annotations": {"kubernetes.io/service-account.name": "robot"}},
        ),
        # persistentvolume-binder: the volume of the claim, the claim of the volume, and marks of both
        global_(
            "v1",
            "PersistentVolume",
            "volume",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
                "storageClassName": namespace,
            },
        ),
        placed("v1", "PersistentVolumeClaim", "claim", spec={**_STORAGE, "storageClassName": namespace}),
        # the same controller: the default class of a claim that came before it
        placed("v1", "PersistentVolumeClaim", "claim-open", spec=_STORAGE),
        # statefulset: owners of the claims of its Pods
        placed(
            "apps/v1",
            "StatefulSet",
            "web",
            spec=workload(
                "web",
                replicas=1,
                serviceName="web",
                persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
                volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": _STORAGE}],
            ),
        ),
        placed("v1", "PersistentVolumeClaim", "data-web-0", metadata={"labels": {"app": "web"}}, spec=_STORAGE),
        # replicaset, replication, job and the like adopt Pods that match; deployment adopts ReplicaSets
        placed("apps/v1", "ReplicaSet", "adopts", spec=workload("adopts", replicas=1)),
        placed("v1", "Pod", "adopted", metadata={"labels": {"app": "adopts"}}, spec=_POD),
        # horizontal-pod-autoscaling: replicas
        placed("apps/v1", "Deployment", "scaled", spec=workload("scaled", replicas=1)),
        placed(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "scaled",
            spec={
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
                "minReplicas": 2,
                "maxReplicas": 3,
            },
        ),
        # daemonset: nothing but status; its Pods are for all nodes, also for the one below
        placed("apps/v1", "DaemonSet", "everywhere", spec=workload("everywhere")),
        # job: what distinguishes its Pods from those of others
        placed("batch/v1", "Job", "once", spec={"template": {"spec": {**_POD, "restartPolicy": "Never"}}}),
        # endpoints: addresses of ready Pods
        placed("v1", "Service", "scaled", spec={"selector": {"app": "scaled"}, "ports": [{"port": 80}]}),
        placed("v1", "Endpoints", "scaled"),
        # node-lifecycle, node-ipam, ttl: taints, addresses of Pods, an annotation
        global_("v1", "Node", "node"),
        # leader: the holder, and when it reported so last
        placed("coordination.k8s.io/v1", "Lease", "election"),
        # service-cidr-controller: a finalizer
        global_("networking.k8s.io/v1", "ServiceCIDR", "addresses", spec={"cidrs": ["10.97.0.0/24"]}),
        # resourceclaim and scheduler: who uses it
        placed(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "device",
            spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": f"{namespace}-devices"}}]}},
        ),
        global_("resource.k8s.io/v1", "DeviceClass", "devices", spec={}),
    ]
