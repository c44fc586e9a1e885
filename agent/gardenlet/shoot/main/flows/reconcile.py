"""The flow that creates a Shoot's cluster, changes it, hibernates it, and wakes it."""

from agent.gardenlet.flow.graph import ONCE, Graph, Retry, Task
from agent.gardenlet.shoot.main.flows import extensions, workers
from agent.gardenlet.shoot.main.flows.completion import with_completion
from agent.gardenlet.shoot.main.flows.components import tasks_of
from agent.gardenlet.shoot.main.flows.hibernation import HIBERNATION
from agent.gardenlet.shoot.main.flows.when import any_of as _any
from agent.gardenlet.shoot.main.flows.when import asleep as _asleep
from agent.gardenlet.shoot.main.flows.when import no_backup as _no_backup
from agent.gardenlet.shoot.main.flows.when import no_copy as _no_copy
from agent.gardenlet.shoot.main.flows.when import no_gateways as _no_gateways
from agent.gardenlet.shoot.main.flows.when import no_waiting as _no_waiting
from agent.gardenlet.shoot.main.flows.when import not_built as _not_built
from agent.gardenlet.shoot.main.flows.when import not_restored as _not_restored
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import CLUSTER, HAS_TOKEN, STALE_EXTENSIONS
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    backup,
    encryption,
    etcd,
    exposure,
    foundation,
    restarts,
    service_accounts,
    shoot_objects,
    snapshots,
)
from agent.gardenlet.shoot.main.tasks.extensions import delete_stale
from components.registry import COMPONENTS
from components.results import ADDRESS, CLUSTER_IP, NAMESPACE

_asleep_or_no_waiting = _any(_asleep, _no_waiting)

_LONG = Retry(within=600.0)


_Task = Task[ShootOperation]

_FOUNDATION: list[_Task] = [
    Task("namespace", "Deploying Shoot namespace in Seed", foundation.namespace, provides=NAMESPACE),
    Task("identity", "Ensuring Shoot cluster identity", foundation.cluster_identity, after=["namespace"]),
    Task(
        "secrets",
        "Initializing secrets management",
        foundation.secrets,
        after=["namespace"],
        provides=CLUSTER,
        reads=[CLUSTER],
    ),
    Task("referenced", "Deploying referenced resources", foundation.referenced, after=["namespace"]),
    *workers.BEFORE_API_SERVER,
]

_EXPOSURE: list[_Task] = [
    Task(
        "service",
        "Deploying Kubernetes API server service in the Seed cluster",
        exposure.service,
        after=["namespace", "identity", "infrastructure-ready"],
        provides=CLUSTER_IP,
    ),
    Task(
        "address",
        "Waiting until Kubernetes API server service in the Seed cluster has reported readiness",
        exposure.wait_for_address,
        after=["service"],
        unless=_asleep,
        provides=ADDRESS,
        reads=[NAMESPACE],
    ),
    Task(
        "names-at-gateway",
        "Deploying Kubernetes API server service SNI settings in the Seed cluster",
        exposure.names_at_gateway,
        after=["service"],
        unless=_any(_asleep, _no_gateways),
        reads=[NAMESPACE, CLUSTER_IP],
    ),
    Task(
        "advertised",
        "Ensuring advertised addresses for the Shoot",
        exposure.advertise,
        after=["address"],
        unless=_asleep,
        retry=ONCE,
        reads=[ADDRESS],
    ),
    Task(
        "internal-name",
        "Deploying internal domain DNS record",
        exposure.internal_name,
        after=["referenced", "address"],
        unless=_asleep,
        retry=ONCE,
        reads=[ADDRESS],
    ),
    Task(
        "external-name",
        "Deploying external domain DNS record",
        exposure.external_name,
        after=["referenced", "address"],
        unless=_asleep,
        retry=ONCE,
        reads=[ADDRESS],
    ),
]

_ETCDS: list[_Task] = [
    Task(
        "source-entry",
        "Deploying source backup entry",
        backup.source_entry,
        after=["namespace"],
        unless=_no_copy,
        retry=ONCE,
    ),
    Task(
        "source-entry-ready",
        "Waiting until the source backup entry has been reconciled",
        backup.wait_for_source_entry,
        after=["source-entry"],
        unless=_any(_no_copy, _no_waiting),
        retry=ONCE,
    ),
    Task(
        "backup-entry",
        "Deploying backup entry",
        backup.entry,
        after=["namespace", "source-entry-ready"],
        unless=_no_backup,
        retry=ONCE,
    ),
    Task(
        "backup-entry-ready",
        "Waiting until the backup entry has been reconciled",
        backup.wait_for_entry,
        after=["backup-entry"],
        unless=_any(_no_backup, _no_waiting),
        retry=ONCE,
    ),
    Task(
        "copy",
        "Copying etcd backups to new seed's backup bucket",
        backup.copy,
        after=["secrets", "backup-entry-ready", "source-entry-ready"],
        unless=_no_copy,
        retry=ONCE,
    ),
    Task(
        "copied",
        "Waiting until etcd backups are copied",
        backup.wait_for_copy,
        after=["copy"],
        unless=_no_copy,
        retry=ONCE,
    ),
    Task(
        "copy-gone",
        "Destroying copy etcd backups task resource",
        backup.destroy_copy,
        after=["copied"],
        unless=_no_copy,
        retry=ONCE,
    ),
    Task(
        "etcd",
        "Deploying main and events etcd",
        etcd.deploy,
        after=["secrets", "credentials", "backup-entry-ready", "copy-gone"],
    ),
    Task(
        "etcd-ready",
        "Waiting until main and event etcd report readiness",
        etcd.wait,
        after=["etcd"],
        unless=_asleep_or_no_waiting,
        retry=ONCE,
    ),
    Task(
        "source-entry-gone",
        "Destroying source backup entry",
        backup.destroy_source_entry,
        after=["etcd-ready"],
        unless=_any(_not_restored, _no_backup),
        retry=ONCE,
    ),
]

_COMPONENTS: list[_Task] = [
    *extensions.deploys(
        "extensions-before",
        "before kube-apiserver",
        Stage.BEFORE_API_SERVER,
        ["secrets", "referenced", "infrastructure-ready"],
        _asleep,
    ),
    *(task for each in COMPONENTS for task in tasks_of(each)),
    Task(
        "client-authority",
        "Publishing the authority for client certificates",
        foundation.client_authority,
        after=["api-server-ready"],
    ),
]

_ACCESS: list[_Task] = [
    Task(
        "renew-tokens",
        "Renewing shoot access secrets after creation of new ServiceAccount signing key",
        service_accounts.renew,
        after=["api-server-ready", "resource-manager-ready"],
        unless=_any(_asleep, service_accounts.not_preparing),
        retry=ONCE,
    ),
    Task(
        "access",
        "Deploying Gardener shoot access resources",
        shoot_objects.access,
        after=["secrets", "resource-manager-ready", "address", "renew-tokens"],
        unless=_asleep,
        provides=HAS_TOKEN,
        reads=[ADDRESS],
    ),
    Task(
        "connection",
        "Initializing connection to Shoot",
        shoot_objects.connection,
        after=["api-server-ready", "access", "internal-name", "names-at-gateway"],
        unless=_asleep,
        retry=Retry(within=120.0),
        reads=[HAS_TOKEN],
    ),
    Task(
        "restart",
        "Restarting control plane pods",
        restarts.controllers,
        after=["controller-manager", "control-plane"],
        unless=restarts.not_asked,
    ),
]

_IN_CLUSTER: list[_Task] = [
    Task(
        "label-encrypted",
        "Labeling resources after modification of encryption config or to encrypt them with new ETCD encryption key",
        encryption.label,
        after=["connection"],
        unless=_any(_asleep, encryption.nothing_to_write),
        retry=_LONG,
    ),
    Task(
        "snapshot",
        "Snapshotting ETCD after modification of encryption config or resources are re-encrypted with new ETCD"
        " encryption key",
        snapshots.with_new_key,
        after=["label-encrypted"],
        unless=_any(_asleep, _no_backup, encryption.nothing_to_write),
        retry=_LONG,
    ),
    Task(
        "unlabel-encrypted",
        "Removing label from resources after modification of encryption config or rotation of ETCD encryption key",
        encryption.remove_label,
        after=["connection", "label-encrypted", "snapshot", "old-token-secrets"],
        unless=_any(_asleep, encryption.nothing_written),
        retry=_LONG,
    ),
    Task(
        "new-token-secrets",
        "Creating new ServiceAccount secrets after creation of new signing key",
        service_accounts.add_secrets,
        after=["connection", "controller-manager-ready"],
        unless=_any(_asleep, service_accounts.not_preparing),
        retry=_LONG,
    ),
    Task(
        "old-token-secrets",
        "Deleting old ServiceAccount secrets after rotation of signing key",
        service_accounts.delete_old_secrets,
        after=["connection", "controller-manager-ready"],
        unless=_any(_asleep, service_accounts.not_completing),
        retry=_LONG,
    ),
    *extensions.deploys(
        "extensions-after", "after kube-apiserver", Stage.AFTER_API_SERVER, ["referenced", "connection"], _asleep
    ),
    *workers.AFTER_API_SERVER,
    Task(
        "stale-extensions",
        "Deleting stale extension resources",
        delete_stale,
        after=["connection"],
        provides=STALE_EXTENSIONS,
    ),
    extensions.waits_until_gone(
        "stale-extensions-gone",
        "Waiting until stale extension resources are deleted",
        "stale-extensions",
        STALE_EXTENSIONS,
        _asleep_or_no_waiting,
    ),
]

_NOT_BUILT: list[_Task] = [
    _not_built(
        "trusted-ingress",
        "Deploying Kubernetes API server ingress with trusted certificate in the Seed cluster",
        after=["secrets"],
    ),
    _not_built("logging", "Deploying shoot logging stack in Seed", after=["secrets"]),
    _not_built("logging-dashboards", "Reconciling Plutono for Shoot in Seed for the logging stack", after=["logging"]),
    _not_built("alertmanager", "Reconciling Shoot Alertmanager", after=["connection"]),
    _not_built("prometheus", "Reconciling Shoot Prometheus", after=["connection"]),
    _not_built("blackbox-exporter", "Deploying control plane blackbox-exporter", after=["connection"]),
    _not_built(
        "monitoring-dashboards",
        "Reconciling Plutono for Shoot in Seed for the monitoring stack",
        after=["alertmanager", "prometheus"],
    ),
]

RECONCILE: Graph[ShootOperation] = Graph(
    "Shoot cluster reconciliation",
    with_completion(
        [*_FOUNDATION, *_EXPOSURE, *_ETCDS, *_COMPONENTS, *_ACCESS, *_IN_CLUSTER, *_NOT_BUILT, *HIBERNATION],
        after=[
            *("access", "client-authority", "controller-manager-ready", "machine-controller-manager-stopped"),
            *("unlabel-encrypted", "old-token-secrets"),
        ],
    ),
)

RESTORE: Graph[ShootOperation] = Graph("Shoot cluster restoration", list(RECONCILE.tasks.values()))
"""The same flow, for a Shoot that has moved here."""
