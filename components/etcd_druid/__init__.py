"""The operator of Etcds, which runs the etcd clusters of Shoots."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.manifest import manifest, without
from components.parts import in_seed
from components.seed_component import SeedComponent, SeedInputs
from gardener.api.kinds import SERVICE_MONITORS
from kube.objects import Object
from kube.paths import at

NAME = "etcd-druid"
_ARGUMENTS = (
    "--enable-leader-election=true",
    "--ignore-operation-annotation=false",
    "--disable-etcd-serviceaccount-automount=true",
)
_FLAGS = (
    ("workers", ("etcdController", "workers"), 50),
    ("custodian-workers", ("custodianController", "workers"), 10),
    ("compaction-workers", ("backupCompactionController", "workers"), 3),
    ("enable-backup-compaction", ("backupCompactionController", "enableBackupCompaction"), False),
    ("etcd-events-threshold", ("backupCompactionController", "eventsThreshold"), 1_000_000),
    ("metrics-scrape-wait-duration", ("backupCompactionController", "metricsScrapeWaitDuration"), "1m0s"),
    ("active-deadline-duration", ("backupCompactionController", "activeDeadlineDuration"), None),
)
"""Flag, path of its value in the configuration, and the default."""


def _objects(inputs: SeedInputs) -> list[Object]:
    arguments = [*_ARGUMENTS, *_flags(inputs.config.etcd_config or {})]
    contents = manifest(__file__, image=inputs.images.etcd_druid, arguments=arguments)
    return in_seed(NAME, contents if inputs.serves(SERVICE_MONITORS) else without(contents, SERVICE_MONITORS.kind))


def _flags(config: Mapping[str, Any]) -> Iterator[str]:
    for name, path, default in _FLAGS:
        value = at(dict(config), *path)
        value = default if value is None else value
        if value is not None:
            yield f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
    if features := at(dict(config), "featureGates"):
        yield f"--feature-gates={','.join(f'{name}={str(on).lower()}' for name, on in sorted(features.items()))}"


COMPONENT = SeedComponent(
    name=NAME,
    title="ETCD Druid",
    images=["etcd_druid"],
    objects=_objects,
    asks_for=[SERVICE_MONITORS],
    is_of_garden=True,
)
