"""Shoot: a Kubernetes cluster that Gardener makes and runs."""

from gardener import conditions
from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import SHOOTS
from gardener.api.garden.common import DNS_LABEL
from gardener.api.garden.shoot.spec import SPEC
from gardener.api.garden.shoot.status import STATUS
from gardener.api.schema import rule


def _condition(column: str, of: str) -> Column:
    return Column(column, f'.status.conditions[?(@.type=="{of}")].status', priority=1, description=f"Condition {of}.")


SHOOT = Definition(
    resource=SHOOTS,
    description="A Kubernetes cluster: its control plane runs on a Seed, its worker nodes on an infrastructure.",
    name=DNS_LABEL,
    rules=[
        rule(
            "!self.metadata.name.contains('--')", "name may not contain two consecutive hyphens", field="metadata.name"
        )
    ],
    fields={"spec*": SPEC, "status": STATUS},
    has_operation=True,
    selectable=(
        "spec.seedName",
        "status.seedName",
        "spec.cloudProfileName",
        "spec.cloudProfile.name",
        "spec.cloudProfile.kind",
    ),
    columns=(
        Column("CloudProfile", ".spec.cloudProfile.name"),
        Column("Provider", ".spec.provider.type"),
        Column("Region", ".spec.region"),
        Column("Seed", ".spec.seedName", priority=1),
        Column("K8S Version", ".spec.kubernetes.version"),
        Column("Hibernate", ".spec.hibernation.enabled", "boolean", description="Whether hibernation is requested."),
        Column("Hibernated", ".status.hibernated", "boolean", description="Whether the cluster is hibernated."),
        Column("Last Operation", ".status.lastOperation.type"),
        Column("State", ".status.lastOperation.state"),
        Column(
            "Progress",
            ".status.lastOperation.progress",
            "integer",
            description="Progress of the last operation; percent.",
        ),
        Column("Status", r".metadata.labels.shoot\.gardener\.cloud/status"),
        Column("Purpose", ".spec.purpose", priority=1),
        Column("Gardener Version", ".status.gardener.version", priority=1),
        _condition("APIServer", conditions.API_SERVER_AVAILABLE),
        _condition("Control", conditions.CONTROL_PLANE_HEALTHY),
        _condition("Observability", conditions.OBSERVABILITY_COMPONENTS_HEALTHY),
        _condition("Nodes", conditions.EVERY_NODE_READY),
        _condition("System", conditions.SYSTEM_COMPONENTS_HEALTHY),
        AGE,
    ),
)
