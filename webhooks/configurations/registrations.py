"""Which webhook is asked about what: rules, selectors, failure policy, time-out, in the order of the calls.

Two kinds of instances differ in their selectors. A *runtime* instance serves the cluster that it runs in, and looks
after all namespaces but those of the system. A *target* instance serves another cluster, and looks after nothing but
system components there.

Pods of the component itself are excluded wherever one of our webhooks could catch them: with the failure policy `Fail`
it would be asked whether it may start. The exception is the load balancing of API servers: its namespaces hold the pods
of other instances, which need it, and never those of the instance that serves them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from config.schema_webhooks import Webhooks
from webhooks.configurations.entries import (
    COMPONENT,
    DOMAIN,
    EVERYTHING,
    PODS,
    Instance,
    Mode,
    Registration,
    Rule,
    having,
    where,
    without,
)

COMBINED_PATHS = {Mode.RUNTIME: "/webhooks/pods", Mode.TARGET: "/webhooks/pods/target"}
"""The path says by whose selectors the handler has to choose; the server need not know what it is."""

_PROXY_INJECTION = "apiserver-proxy.networking.gardener.cloud/inject"
_DELETION_PROTECTED = "gardener.cloud/deletion-protected"

_EXTENSIONS = "extensions.gardener.cloud"
_EXTENSION_PLURALS = (
    "backupbuckets",
    "backupentries",
    "bastions",
    "containerruntimes",
    "controlplanes",
    "dnsrecords",
    "extensions",
    "infrastructures",
    "networks",
    "operatingsystemconfigs",
    "selfhostedshootexposures",
    "workers",
)
_VALIDATED = {  # plural -> kind in lower case, in the order of the entries
    "backupbuckets": "backupbucket",
    "backupentries": "backupentry",
    "bastions": "bastion",
    "containerruntimes": "containerruntime",
    "controlplanes": "controlplane",
    "dnsrecords": "dnsrecord",
    "etcds": "etcd",
    "extensions": "extension",
    "infrastructures": "infrastructure",
    "networks": "network",
    "operatingsystemconfigs": "operatingsystemconfig",
    "selfhostedshootexposures": "selfhostedshootexposure",
    "workers": "worker",
}

_WRITE = ("CREATE", "UPDATE")
_DELETE = ("DELETE",)


def mutating(webhooks: Webhooks, instance: Instance, *, combined: bool = False) -> list[Registration]:
    """The entries of the enabled mutating webhooks, in the order in which an API server calls them.

    Combined: with one entry instead of all those about pods, at the place of their first.
    """
    entries = _mutating(webhooks, instance)
    of_pods = [entry for entry in entries if entry.is_for_pods]
    if not combined or not of_pods:
        return entries
    at = entries.index(of_pods[0])
    others = [entry for entry in entries[at:] if not entry.is_for_pods]
    return [*entries[:at], _combined(of_pods, instance), *_left_out(of_pods, instance), *others]


def pods(webhooks: Webhooks, instance: Instance) -> list[Registration]:
    """The entries about pods, in their order: what the combined handler has to apply."""
    return [entry for entry in mutating(webhooks, instance) if entry.is_for_pods]


def _combined(entries: Sequence[Registration], instance: Instance) -> Registration:
    """The one entry in place of these: asked about whatever one of them may want, and as strict as the strictest."""
    namespaces, objects = entries[0].namespaces, entries[0].objects
    for entry in entries[1:]:
        namespaces, objects = namespaces.shared(entry.namespaces), objects.shared(entry.objects)
    return Registration(
        name="pods",
        handler="pods",
        path=COMBINED_PATHS[instance.mode],
        rules=(PODS,),
        namespaces=namespaces,
        objects=instance.not_ours & objects,
        failure_policy="Fail" if any(entry.failure_policy == "Fail" for entry in entries) else "Ignore",
        timeout_seconds=max(entry.timeout_seconds for entry in entries),
    )


def _left_out(entries: Iterable[Registration], instance: Instance) -> list[Registration]:
    """Entries for pods that are called as our own, but are none: the combined entry must not catch these."""
    same_name = where("app", "In", instance.app)
    return [
        replace(entry, objects=same_name & entry.objects)
        for entry in entries
        if entry.objects.shared(instance.not_ours) != instance.not_ours
    ]


def _mutating(webhooks: Webhooks, instance: Instance) -> list[Registration]:
    candidates: list[tuple[Any, list[Registration]]] = [
        (webhooks.token_invalidator, [_token_invalidator(instance)]),
        (webhooks.projected_token_mount, [_projected_token_mount(instance)]),
        (webhooks.high_availability_config, [_high_availability_config(instance)]),
        (webhooks.pod_scheduler_name, [_pod_scheduler_name(instance)]),
        (webhooks.seccomp_profile, [_seccomp_profile(instance)]),
        (webhooks.kubernetes_service_host, [_kubernetes_service_host(instance)]),
        (webhooks.pod_kube_apiserver_load_balancing, _load_balancing(instance)),
        (webhooks.system_components_config, [_system_components_config(instance)]),
        (webhooks.endpoint_slice_hints, [_endpoint_slice_hints(instance)]),
        (webhooks.pod_topology_spread_constraints, [_pod_topology_spread_constraints(instance)]),
        (webhooks.vpa_in_place_updates, [_vpa_in_place_updates(instance)]),
    ]
    return [_without_static_pods(entry) for block, entries in candidates if block.enabled for entry in entries]


def _without_static_pods(entry: Registration) -> Registration:
    """The mirror pod of a static pod has to be as its manifest; nobody may change it."""
    if not entry.is_for_pods:
        return entry
    return replace(entry, objects=entry.objects & where("static-pod", "NotIn", "true"))


def _token_invalidator(instance: Instance) -> Registration:
    return Registration(
        name="token-invalidator",
        handler="token-invalidator",
        path="/webhooks/invalidate-service-account-token-secret",
        rules=(Rule(_WRITE, "", ("v1",), ("secrets",)),),
        namespaces=instance.namespaces,
        objects=having(f"{DOMAIN}/purpose", "token-invalidator"),
    )


def _projected_token_mount(instance: Instance) -> Registration:
    return Registration(
        name="projected-token-mount",
        handler="projected-token-mount",
        path="/webhooks/mount-projected-service-account-token",
        rules=(PODS,),
        namespaces=instance.namespaces,
        objects=without(f"projected-token-mount.{DOMAIN}/skip") & instance.not_ours,
    )


def _high_availability_config(instance: Instance) -> Registration:
    prefix = f"high-availability-config.{DOMAIN}"
    return Registration(
        name="high-availability-config",
        handler="high-availability-config",
        path="/webhooks/high-availability-config",
        rules=(
            Rule(_WRITE, "apps", ("v1",), ("deployments", "statefulsets")),
            Rule(_WRITE, "autoscaling", ("v2beta1", "v2"), ("horizontalpodautoscalers",)),
            Rule(_WRITE, "autoscaling.k8s.io", ("v1alpha1",), ("hvpas",)),
        ),
        namespaces=instance.namespaces & having(f"{prefix}/consider", "true"),
        objects=instance.managed & without(f"{prefix}/skip"),
        match_policy="Equivalent",
    )


def _pod_scheduler_name(instance: Instance) -> Registration:
    return Registration(
        name="pod-scheduler-name",
        handler="pod-scheduler-name",
        path="/webhooks/default-pod-scheduler-name",
        rules=(PODS,),
        objects=instance.not_ours,
        failure_policy="Ignore",
    )


def _seccomp_profile(instance: Instance) -> Registration:
    return Registration(
        name="seccomp-profile",
        handler="seccomp-profile",
        path="/webhooks/seccomp-profile",
        rules=(PODS,),
        namespaces=instance.namespaces,
        objects=without(f"seccompprofile.{DOMAIN}/skip") & instance.not_ours,
    )


def _kubernetes_service_host(instance: Instance) -> Registration:
    injected = where(_PROXY_INJECTION, "NotIn", "disable")
    return Registration(
        name="kubernetes-service-host",
        handler="kubernetes-service-host",
        path="/webhooks/kubernetes-service-host",
        rules=(PODS,),
        namespaces=injected,
        objects=injected & instance.not_ours,
        failure_policy="Ignore",
        timeout_seconds=2,
        reinvocation_policy="Never",
    )


def _load_balancing(instance: Instance) -> list[Registration]:
    """Of the API servers of shoots, and of the virtual garden's."""
    of_shoots = Registration(
        name="pod-kube-apiserver-load-balancing",
        handler="pod-kube-apiserver-load-balancing",
        path="/webhooks/pod-kube-apiserver-load-balancing",
        rules=(PODS,),
        namespaces=having("gardener.cloud/role", "shoot"),
    )
    of_virtual_garden = replace(
        of_shoots,
        name="pod-virtual-garden-kube-apiserver-load-balancing",
        namespaces=having("kubernetes.io/metadata.name", "garden"),
        objects=where("app", "NotIn", COMPONENT) & instance.not_ours,
    )
    return [of_shoots, of_virtual_garden]


def _system_components_config(instance: Instance) -> Registration:
    prefix = f"system-components-config.{DOMAIN}"
    opted_in = having(f"{prefix}/consider", "true") if instance.mode is Mode.RUNTIME else EVERYTHING
    return Registration(
        name="system-components-config",
        handler="system-components-config",
        path="/webhooks/system-components-config",
        rules=(PODS,),
        namespaces=instance.namespaces & opted_in,
        objects=instance.managed & without(f"{prefix}/skip") & instance.not_ours,
    )


def _endpoint_slice_hints(instance: Instance) -> Registration:
    return Registration(
        name="endpoint-slice-hints",
        handler="endpoint-slice-hints",
        path="/webhooks/endpoint-slice-hints",
        rules=(Rule(_WRITE, "discovery.k8s.io", ("v1",), ("endpointslices",)),),
        namespaces=instance.namespaces,
        objects=having(f"endpoint-slice-hints.{DOMAIN}/consider", "true"),
        match_policy="Equivalent",
    )


def _pod_topology_spread_constraints(instance: Instance) -> Registration:
    return Registration(
        name="pod-topology-spread-constraints",
        handler="pod-topology-spread-constraints",
        path="/webhooks/pod-topology-spread-constraints",
        rules=(PODS,),
        namespaces=instance.namespaces,
        objects=instance.managed & instance.not_ours & without(f"topology-spread-constraints.{DOMAIN}/skip"),
    )


def _vpa_in_place_updates(instance: Instance) -> Registration:
    return Registration(
        name="vpa-in-place-updates",
        handler="vpa-in-place-updates",
        path="/webhooks/vpa-in-place-updates",
        rules=(Rule(_WRITE, "autoscaling.k8s.io", ("v1",), ("verticalpodautoscalers",)),),
        namespaces=instance.namespaces,
        objects=without(f"vpa-in-place-updates.{DOMAIN}/skip"),
        match_policy="Equivalent",
        reinvocation_policy="Never",
    )


def validating(webhooks: Webhooks, instance: Instance) -> list[Registration]:
    """The entries of the enabled validating webhooks; they protect source clusters, a target instance has none."""
    if instance.mode is Mode.TARGET:
        return []
    entries: list[Registration] = []
    if webhooks.crd_deletion_protection.enabled:
        entries += _deletion_protection()
    if webhooks.extension_validation.enabled:
        entries += _extension_validation()
    return entries


def not_registered(webhooks: Webhooks, instance: Instance) -> Iterable[str]:
    """The configuration keys of webhooks that are enabled and not made for such an instance."""
    if instance.mode is Mode.TARGET:
        if webhooks.crd_deletion_protection.enabled:
            yield "webhooks.crdDeletionProtection"
        if webhooks.extension_validation.enabled:
            yield "webhooks.extensionValidation"


def _deletion_protection() -> list[Registration]:
    of_definitions = Registration(
        name="crd-deletion-protection",
        handler="crd-deletion-protection",
        path="/webhooks/validate-crd-deletion",
        rules=(Rule(_DELETE, "apiextensions.k8s.io", ("v1beta1", "v1"), ("customresourcedefinitions",)),),
        objects=having(_DELETION_PROTECTED, "true"),
    )
    of_resources = replace(
        of_definitions,
        name="cr-deletion-protection",
        rules=(
            Rule(_DELETE, "druid.gardener.cloud", ("v1alpha1",), ("etcds",)),
            Rule(_DELETE, _EXTENSIONS, ("v1alpha1",), _EXTENSION_PLURALS),
        ),
        objects=EVERYTHING,
    )
    return [of_definitions, of_resources]


def _extension_validation() -> list[Registration]:
    def entry(plural: str, kind: str) -> Registration:
        group = "druid.gardener.cloud" if plural == "etcds" else _EXTENSIONS
        return Registration(
            name=f"validation.extensions.{plural}",
            handler="extension-validation",
            path=f"/validate-{group.replace('.', '-')}-v1alpha1-{kind}",
            rules=(Rule(_WRITE, group, ("v1alpha1",), (plural,)),),
        )

    return [entry(plural, kind) for plural, kind in _VALIDATED.items()]
