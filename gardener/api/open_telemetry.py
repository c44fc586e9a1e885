"""The kinds of the OpenTelemetry operator, which runs collectors of logs, metrics and traces.

The operator validates their fields: here they are open.
"""

from collections.abc import Sequence

from gardener.api.definition import AGE, Column, Definition, Scale, open_fields
from kube.resources import Resource

_ENDPOINT = Column("Endpoint", ".spec.exporter.endpoint")
_IMAGE, _VERSION = Column("Image", ".status.image"), Column("Version", ".status.version")
_MANAGEMENT = Column("Management", ".spec.managementState")


def _definition(
    kind: str,
    plural: str,
    description: str,
    columns: Sequence[Column],
    *,
    version: str = "v1alpha1",
    short_names: tuple[str, ...] = (),
    scale: Scale | None = None,
) -> Definition:
    return Definition(
        resource=Resource("opentelemetry.io", version, kind, plural, True, short_names),
        description=description,
        fields=open_fields("the operator"),
        columns=columns,
        scale=scale,
    )


DEFINITIONS: tuple[Definition, ...] = (
    _definition(
        "ClusterObservability",
        "clusterobservabilities",
        "Collectors for a whole cluster.",
        (_ENDPOINT, Column("Phase", ".status.phase"), AGE),
    ),
    _definition(
        "Instrumentation",
        "instrumentations",
        "Libraries that record what programs in Pods do.",
        (
            AGE,
            _ENDPOINT,
            Column("Sampler", ".spec.sampler.type"),
            Column("Sampler Arg", ".spec.sampler.argument"),
        ),
        short_names=("otelinst", "otelinsts"),
    ),
    _definition(
        "OpAMPBridge",
        "opampbridges",
        "Connection to a server that manages collectors.",
        (AGE, _VERSION, Column("Endpoint", ".spec.endpoint")),
    ),
    _definition(
        "OpenTelemetryCollector",
        "opentelemetrycollectors",
        "Collectors with one configuration.",
        (
            Column("Mode", ".spec.mode"),
            _VERSION,
            Column("Ready", ".status.scale.statusReplicas"),
            AGE,
            _IMAGE,
            _MANAGEMENT,
        ),
        version="v1beta1",
        short_names=("otelcol", "otelcols"),
        scale=Scale(".spec.replicas", ".status.scale.replicas", ".status.scale.selector"),
    ),
    _definition(
        "TargetAllocator",
        "targetallocators",
        "Distribution of scrape targets over collectors.",
        (AGE, _IMAGE, _MANAGEMENT),
    ),
)
