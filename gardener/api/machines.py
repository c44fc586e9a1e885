"""The kinds of the machine-controller-manager, which creates machines for nodes.

The machine-controller-manager validates their fields: here they are open.
"""

from gardener.api.definition import AGE, Column, Definition, Scale
from gardener.api.extensions.common import PROTECTED
from gardener.api.kinds import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from gardener.api.schema import Schema, raw, string

_SPEC_AND_STATUS: dict[str, Schema] = {
    "spec": raw("Desired state of the object."),
    "status": raw("State that the machine-controller-manager reports."),
}


def _count(name: str, path: str) -> Column:
    return Column(name, path, "integer")


MACHINE_CLASS = Definition(
    resource=MACHINE_CLASSES,
    description="Template of machines, for one provider.",
    labels=PROTECTED,
    fields={
        "provider": string("Name of the provider."),
        "providerSpec*": raw("Settings that the provider knows."),
        "secretRef": raw("Secret with the user data, and credentials."),
        "credentialsSecretRef": raw("Secret with credentials, if they are apart."),
        "nodeTemplate": raw("Resources of a node, for scaling from zero."),
    },
)
MACHINE = Definition(
    resource=MACHINES,
    description="A machine.",
    labels=PROTECTED,
    fields=_SPEC_AND_STATUS,
    columns=(
        Column("Status", ".status.currentStatus.phase"),
        AGE,
        Column("Node", ".metadata.labels.node"),
        Column("ProviderID", ".spec.providerID", priority=1),
    ),
)
MACHINE_SET = Definition(
    resource=MACHINE_SETS,
    description="A number of equal machines.",
    labels=PROTECTED,
    fields=_SPEC_AND_STATUS,
    scale=Scale(".spec.replicas", ".status.replicas", ".status.labelSelector"),
    columns=(
        _count("Desired", ".spec.replicas"),
        _count("Current", ".status.replicas"),
        _count("Ready", ".status.readyReplicas"),
        AGE,
    ),
)
MACHINE_DEPLOYMENT = Definition(
    resource=MACHINE_DEPLOYMENTS,
    description="A number of equal machines, which are replaced bit by bit when their template changes.",
    labels=PROTECTED,
    fields=_SPEC_AND_STATUS,
    scale=Scale(".spec.replicas", ".status.replicas", ".status.labelSelector"),
    columns=(
        _count("Ready", ".status.readyReplicas"),
        _count("Desired", ".spec.replicas"),
        _count("Up-to-date", ".status.updatedReplicas"),
        _count("Available", ".status.availableReplicas"),
        AGE,
    ),
)

DEFINITIONS: tuple[Definition, ...] = (MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
