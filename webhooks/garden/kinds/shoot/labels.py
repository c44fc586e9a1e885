"""Labels by which the extensions of a Shoot find it, and the check that those extensions are registered.

Reads `CONTROLLER_REGISTRATIONS`.
"""

from collections.abc import Iterator
from itertools import chain

from gardener.garden.domains import UNMANAGED
from kube.objects import mappings, text
from webhooks.garden.common.extensions import (
    CONTAINER_RUNTIME,
    DNS_RECORD,
    EXTENSION,
    NETWORKING,
    OPERATING_SYSTEM_CONFIG,
    PROVIDER,
    Need,
    globally_enabled,
    needs_workers,
    set_extension_labels,
    unregistered,
)
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.dns import primary, providers
from webhooks.garden.shoot_spec.fields import Pool, image_of, pools_of, workers_of


def set_labels(write: Write) -> None:
    """Set the labels. An image that this request fills in gets its label with the next request."""
    set_extension_labels(write.new, _labels(write))


def _labels(write: Write) -> Iterator[str]:
    spec = write.spec
    provider, networking = spec.get("provider") or {}, spec.get("networking") or {}
    yield PROVIDER + (provider.get("type") or "")
    if network := networking.get("type"):
        yield NETWORKING + network
    for provider in providers(spec) if spec.get("dns") else ():
        if provider.get("type") not in {None, "", UNMANAGED}:
            yield DNS_RECORD + text(provider.get("type"))
    for extension in _extensions(write):
        yield EXTENSION + extension
    for worker in workers_of(write):
        cri, machine = worker.get("cri") or {}, worker.get("machine") or {}
        for runtime in cri.get("containerRuntimes") or ():
            yield CONTAINER_RUNTIME + text(runtime.get("type"))
        image = machine.get("image") or {}
        if name := image.get("name"):
            yield OPERATING_SYSTEM_CONFIG + name


def _extensions(write: Write) -> set[str]:
    """Types of the extensions that all Shoots have, and of its own, except disabled ones."""
    for_all = globally_enabled(write.garden, workerless=not workers_of(write))
    own = {text(each.get("type")): each.get("disabled") is True for each in write.spec.get("extensions") or ()}
    if not own:
        return for_all
    return for_all - {kind for kind, off in own.items() if off} | {kind for kind, off in own.items() if not off}


# --- what must be registered

_OF_PROVIDERS = (
    ("ControlPlane", "controlplane type"),
    ("Infrastructure", "infrastructure type"),
    ("Worker", "worker type"),
)


def extension_errors(write: Write) -> Iterator[Finding]:
    """The extensions that it needs are registered."""
    yield from unregistered(write.garden, "Shoot", chain(_needs(write), *map(_needs_of_pool, pools_of(write))))
    if workers_of(write):
        return
    for index, extension in enumerate(mappings(write.spec.get("extensions"))):
        if needs_workers(write.garden, kind := text(extension.get("type"))):
            path = f"spec.extensions[{index}].type"
            message = f'given Shoot is workerless and uses non-supported extension type: {path} ("{kind}")'
            yield Denial(message, path)


def _needs(write: Write) -> Iterator[Need]:
    spec = write.spec
    if workers_of(write):
        provider, networking = spec.get("provider") or {}, spec.get("networking") or {}
        for kind, what in _OF_PROVIDERS:
            yield kind, provider.get("type") or "", what, "spec.provider.type"
        yield "Network", networking.get("type") or "", "networking type", "spec.networking.type"
    chosen = primary(spec) if spec.get("dns") else None
    if chosen is not None and chosen.get("type") != UNMANAGED:
        path = f"spec.dns.providers[{providers(spec).index(chosen)}].type"
        yield "DNSRecord", text(chosen.get("type")), "dns provider type", path
    for index, extension in enumerate(spec.get("extensions") or ()):
        yield "Extension", text(extension.get("type")), "extension type", f"spec.extensions[{index}].type"


def _needs_of_pool(pool: Pool) -> Iterator[Need]:
    cri = pool.worker.get("cri") or {}
    for index, runtime in enumerate(cri.get("containerRuntimes") or ()):
        where = f"{pool.path}.cri.containerRuntimes[{index}].type"
        yield "ContainerRuntime", text(runtime.get("type")), "container runtime type", where
    image = image_of(pool.worker).get("name") or ""
    yield "OperatingSystemConfig", image, "operating system type", f"{pool.path}.machine.image.name"
