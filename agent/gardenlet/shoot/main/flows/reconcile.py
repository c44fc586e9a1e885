"""The flow that creates a Shoot's cluster, changes it, hibernates it, and wakes it."""

from agent.gardenlet.flow.graph import Graph
from agent.gardenlet.shoot.main.flows import extensions, not_built, workers
from agent.gardenlet.shoot.main.flows.completion import with_completion
from agent.gardenlet.shoot.main.flows.components import tasks_of
from agent.gardenlet.shoot.main.flows.hibernation import HIBERNATION
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.skipping import asleep
from agent.gardenlet.shoot.main.tasks import (
    backup,
    encryption,
    etcd,
    exposure,
    foundation,
    infrastructure,
    restarts,
    service_accounts,
    shoot_objects,
)
from components.registry import COMPONENTS

_TASKS = tasks_of(
    foundation.NAMESPACE,
    foundation.IDENTITY,
    foundation.KEYS,
    foundation.REFERENCED,
    infrastructure.CREDENTIALS,
    infrastructure.INFRASTRUCTURE,
    # --- exposure of the API server
    exposure.SERVICE,
    exposure.AT_GATEWAY,
    exposure.ADVERTISED,
    exposure.INTERNAL_NAME,
    exposure.EXTERNAL_NAME,
    # --- etcd and its backups
    backup.SOURCE_ENTRY,
    backup.ENTRY,
    backup.COPY,
    backup.COPY.gone(["copied"]),
    etcd.UNIT,
    backup.SOURCE_ENTRY_GONE,
    # --- components
    extensions.deploys(
        "extensions-before",
        "before kube-apiserver",
        Stage.BEFORE_API_SERVER,
        ["secrets", "referenced", "infrastructure-ready"],
        asleep,
    ),
    *COMPONENTS,
    foundation.CLIENT_AUTHORITY,
    # --- access to the cluster
    service_accounts.RENEWAL,
    shoot_objects.ACCESS,
    shoot_objects.CONNECTION,
    restarts.CONTROLLERS,
    # --- in the cluster
    *encryption.TASKS,
    service_accounts.NEW_SECRETS,
    service_accounts.OLD_SECRETS,
    extensions.deploys(
        "extensions-after", "after kube-apiserver", Stage.AFTER_API_SERVER, ["referenced", "connection"], asleep
    ),
    *workers.AFTER_API_SERVER,
    extensions.STALE,
    *not_built.IN_SEED,
    *HIBERNATION,
)

RECONCILE: Graph[ShootOperation] = Graph(
    "Shoot cluster reconciliation",
    with_completion(
        [*_TASKS],
        after=[
            *("access", "client-authority", "controller-manager-ready", "machine-controller-manager-stopped"),
            *("unlabel-encrypted", "old-token-secrets"),
        ],
    ),
)

RESTORE: Graph[ShootOperation] = Graph("Shoot cluster restoration", list(RECONCILE.tasks.values()))
"""The same flow, for a Shoot that has moved here."""
