"""Prerequisites of pods in a Shoot with workers: information about the Shoot, policies, priorities and tolerations."""

from collections.abc import Iterator

from components.inputs import Inputs
from components.manifest import manifest
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from gardener import keys
from gardener.garden.shoots import workers
from kube.objects import Object, key, mapping, mappings, spec, text
from kube.paths import at, mappings_at
from kube.resources import CONFIG_MAPS, PRIORITY_CLASSES, SERVICE_ACCOUNTS

INFO = "shoot-info"
"""Name of a ConfigMap."""
_PRIORITIES = (600, 700, 800, 900)
_LEAST_PRIORITY = 999_999_000
_CONTROLLERS = (
    *("attachdetach-controller", "bootstrap-signer", "certificate-controller", "clusterrole-aggregation-controller"),
    *("controller-discovery", "cronjob-controller", "daemon-set-controller", "default", "deployment-controller"),
    *("disruption-controller", "endpoint-controller", "endpointslice-controller", "endpointslicemirroring-controller"),
    *("ephemeral-volume-controller", "expand-controller", "generic-garbage-collector", "horizontal-pod-autoscaler"),
    *("job-controller", "legacy-service-account-token-cleaner", "metadata-informers", "namespace-controller"),
    *("node-controller", "persistent-volume-binder", "pod-garbage-collector", "pv-protection-controller"),
    *("pvc-protection-controller", "replicaset-controller", "replication-controller", "resource-claim-controller"),
    *("resourcequota-controller", "root-ca-cert-publisher", "route-controller", "service-account-controller"),
    *("service-cidrs-controller", "service-controller", "shared-informers", "statefulset-controller"),
    *("storage-version-garbage-collector", "storage-version-migrator-controller", "token-cleaner"),
    *("tokens-controller", "ttl-after-finished-controller", "ttl-controller"),
    "validatingadmissionpolicy-status-controller",
)
"""ServiceAccounts of the controller manager, and the default one: pods get their tokens only on request."""


def objects(inputs: Inputs) -> Iterator[Object]:
    yield _info(inputs)
    for name in _CONTROLLERS:
        kept = {keys.KEEP_OBJECT: "true"}
        yield made(SERVICE_ACCOUNTS, name, namespace=KUBE_SYSTEM, annotations=kept, automountServiceAccountToken=False)
    yield from manifest(__file__, "policies.yaml")
    for each in _PRIORITIES:
        described = "PriorityClass for Shoot system components"
        yield made(
            PRIORITY_CLASSES, f"gardener-shoot-system-{each}", value=_LEAST_PRIORITY + each, description=described
        )


def _info(inputs: Inputs) -> Object:
    shoot, networks = inputs.shoot, inputs.networks
    requested, window = spec(shoot), mapping(at(spec(shoot), "maintenance", "timeWindow"))
    found = {
        "domain": text(at(requested, "dns", "domain")),
        "extensions": ",".join(sorted(text(each.get("type")) for each in mappings(requested.get("extensions")))),
        "kubernetesVersion": text(at(requested, "kubernetes", "version")),
        "maintenanceBegin": text(window.get("begin")),
        "maintenanceEnd": text(window.get("end")),
        "projectName": inputs.project,
        "provider": text(at(requested, "provider", "type")),
        "region": text(requested.get("region")),
        "shootName": key(shoot).name,
    }
    for name, network in (("pod", networks.pods), ("service", networks.services), ("node", networks.nodes)):
        found |= {f"{name}Network": network, f"{name}Networks": network}
    always = ("extensions",)
    data = {name: value for name, value in found.items() if value or name in always}
    return made(CONFIG_MAPS, INFO, namespace=KUBE_SYSTEM, data=data)


# --- scheduling


def tolerations(shoot: Object) -> list[Object]:
    """Tolerations of system components for the taints of pools that they may run on."""
    found = dict[tuple[str, str, str], Object]()
    for pool in workers(spec(shoot)):
        if at(pool, "systemComponents", "allow") is False:
            continue
        for taint in mappings_at(pool, "taints"):
            name, value, effect = (text(taint.get(field)) for field in ("key", "value", "effect"))
            found[name, value, effect] = {
                "key": name,
                "operator": "Equal" if value else "Exists",
                **({"value": value} if value else {}),
                "effect": effect,
            }
    return [found[each] for each in sorted(found)]
