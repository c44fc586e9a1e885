"""Quotas: limits of the resources of Shoots."""

from collections.abc import Iterator

from gardener.api.garden.quota import QUOTA as DEFINITION
from kube.objects import mapping
from kube.validation import invalid
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write

METRICS = frozenset(("cpu", "gpu", "loadbalancer", "memory", "storage.premium", "storage.standard"))


def metric_names(write: Write) -> Iterator[Finding]:
    for name, value in mapping(write.spec.get("metrics")).items():
        if name not in METRICS:
            yield invalid(f"spec.metrics[{name}]", value, f"{name} is no supported quota metric")


QUOTA = Kind(definition=DEFINITION, checks=(metric_names,))
