"""Fields of a live object that stay when its manifest is written, kind by kind.

Outside metadata the manifest determines the object; a field that it lacks is removed or gets its default. But some
kinds have fields that other controllers, or the API server, fill in; the modules here define those. The caller decides
on labels, annotations and owners.

Arguments are never changed. Results share parts with them: only the mappings along a changed path are new.
"""

from collections.abc import Callable

from kube.merge import filled_in, injected, node, pod, service, workloads
from kube.merge.options import MergeError, MergeOptions
from kube.objects import Object, group_of

__all__ = ["MergeError", "MergeOptions", "with_kept_fields"]

_KINDS: dict[tuple[str, str], Callable[[Object, Object, MergeOptions], Object]] = {
    ("apps", "Deployment"): workloads.merge_deployment,
    ("extensions", "Deployment"): workloads.merge_deployment,
    ("apps", "StatefulSet"): workloads.merge_stateful_set,
    ("extensions", "StatefulSet"): workloads.merge_stateful_set,
    ("apps", "DaemonSet"): workloads.merge_pod_template,
    ("batch", "Job"): workloads.merge_job,
    ("batch", "CronJob"): workloads.merge_cron_job,
    ("", "Service"): service.merge,
    ("", "ServiceAccount"): filled_in.merge_service_account,
    ("", "Pod"): pod.merge,
    ("", "Node"): node.merge,
    ("", "Secret"): filled_in.merge_secret,
    ("", "ConfigMap"): filled_in.merge_config_map,
    ("", "Endpoints"): filled_in.merge_endpoints,
    ("", "PersistentVolume"): filled_in.merge_persistent_volume,
    ("", "PersistentVolumeClaim"): filled_in.merge_persistent_volume_claim,
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): filled_in.merge_vertical_pod_autoscaler,
    ("coordination.k8s.io", "Lease"): filled_in.merge_lease,
    ("discovery.k8s.io", "EndpointSlice"): filled_in.merge_endpoint_slice,
    ("rbac.authorization.k8s.io", "Role"): filled_in.merge_role,
    ("rbac.authorization.k8s.io", "ClusterRole"): filled_in.merge_cluster_role,
    ("rbac.authorization.k8s.io", "RoleBinding"): filled_in.merge_role_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): filled_in.merge_role_binding,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): injected.merge_webhook_configuration,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): injected.merge_webhook_configuration,
    ("apiregistration.k8s.io", "APIService"): injected.merge_api_service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): injected.merge_custom_resource_definition,
}


def with_kept_fields(result: Object, live: Object, options: MergeOptions) -> Object:
    """Object to write, with the fields that stay from the live one.

    Args:
        result: the manifest, with the metadata to write.
        live: as the API server has it; on creation the manifest itself.
        options: the field manager, and the fields that are left to autoscalers.

    Raises:
        MergeError: the kind needs a rule that does not support this manifest.
    """
    rule = _KINDS.get((group_of(result.get("apiVersion") or ""), result.get("kind") or ""))
    return result if rule is None else rule(result, live, options)
