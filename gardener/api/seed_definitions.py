"""The CustomResourceDefinitions that a seed serves, by the program that uses them.

Each stage is a function without arguments, so a seed's definitions are known without a cluster. ManagedResource is not
among them: its definition is written by hand, and installed together with the resource manager.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from gardener.api import fluent_bit, istio, machines, monitoring, open_telemetry, vertical_pod_autoscaler
from gardener.api.definition import Definition, custom_resource_definition
from gardener.api.druid.definitions import DEFINITIONS as DRUID
from gardener.api.extensions.definitions import DEFINITIONS as EXTENSIONS
from kube.objects import Object


class Stage(StrEnum):
    EXTENSIONS = "extensions"
    MACHINES = "machines"
    DRUID = "druid"
    VERTICAL_POD_AUTOSCALER = "vertical-pod-autoscaler"
    ISTIO = "istio"
    FLUENT_BIT = "fluent-bit"
    MONITORING = "monitoring"
    OPEN_TELEMETRY = "open-telemetry"


DEFINITIONS: Mapping[Stage, Sequence[Definition]] = {
    Stage.EXTENSIONS: EXTENSIONS,
    Stage.MACHINES: machines.DEFINITIONS,
    Stage.DRUID: DRUID,
    Stage.VERTICAL_POD_AUTOSCALER: vertical_pod_autoscaler.DEFINITIONS,
    Stage.ISTIO: istio.DEFINITIONS,
    Stage.FLUENT_BIT: fluent_bit.DEFINITIONS,
    Stage.MONITORING: monitoring.DEFINITIONS,
    Stage.OPEN_TELEMETRY: open_telemetry.DEFINITIONS,
}

OPEN: frozenset[Stage] = frozenset({Stage.ISTIO, Stage.FLUENT_BIT, Stage.MONITORING, Stage.OPEN_TELEMETRY})
"""Kinds of other projects; existing definitions stay, since those of the projects are more precise."""


def custom_resource_definitions(stage: Stage) -> list[Object]:
    return [custom_resource_definition(one) for one in DEFINITIONS[stage]]
