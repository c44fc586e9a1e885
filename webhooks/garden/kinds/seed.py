"""Seeds: clusters in which the control planes of Shoots run."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import CONTROLLER_REGISTRATIONS, SHOOTS
from gardener.api.garden.seed import SEED as DEFINITION
from gardener.garden.seed_graph import of_seed
from gardener.garden.seeds import with_reserved_capacity
from kube.objects import text, texts
from kube.paths import at
from webhooks.garden.common import operations, seed_spec
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.extensions import DNS_RECORD, PROVIDER, Need, set_extension_labels, unregistered
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.metadata import allowed_operations, operation_not_overwritten
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.seed_references import reading_rights
from webhooks.garden.common.write import Write


def reserve_capacity(write: Write) -> None:
    write.new["spec"] = with_reserved_capacity(write.own_spec())


def label_extensions(write: Write) -> None:
    providers = (at(write.spec, "provider", "type"), at(write.spec, "backup", "provider"))
    wanted = {PROVIDER + each for each in providers if each}
    if dns := at(write.spec, "dns", "provider", "type"):
        wanted.add(DNS_RECORD + dns)
    set_extension_labels(write.new, wanted)


def spec_errors(write: Write) -> Iterator[Finding]:
    yield from seed_spec.spec_errors(write.spec, "spec")
    yield from seed_spec.completeness_errors(write.spec, "spec")


def extensions_registered(write: Write) -> Iterator[Finding]:
    """The extensions that it needs are registered."""
    provider, backup, dns = (
        text(at(write.spec, *path))
        for path in (("provider", "type"), ("backup", "provider"), ("dns", "provider", "type"))
    )
    needs: list[Need] = [
        ("ControlPlane", provider, "provider type", "spec.provider.type"),
        ("BackupBucket", backup, "backup bucket type", "spec.backup.provider"),
        ("BackupEntry", backup, "backup entry type", "spec.backup.provider"),
    ]
    if write.spec.get("ingress"):
        needs.append(("DNSRecord", dns, "DNS provider type", "spec.dns.provider.type"))
    yield from unregistered(write.garden, "Seed", needs)


def zones_in_use(write: Write) -> Iterator[Finding]:
    path = ("provider", "zones")
    removed = sorted(set(texts(at(write.old_spec, *path))) - set(texts(at(write.spec, *path))))
    if removed and shoots_on(write.garden, write.name):
        listed = " ".join(removed)
        message = f"cannot remove zones [{listed}] from Seed {write.name} as there are Shoots scheduled to this Seed"
        yield Denial(message, "spec.provider.zones")


def in_use(write: Write) -> Iterator[Finding]:
    if shoots_on(write.garden, write.name):
        yield Denial(f"cannot delete seed {write.name} since it is still used by shoot(s)")


CONSUMED = (keys.OPERATION_RECONCILE,)
KEPT = (
    keys.OPERATION_RENEW_ACCESS_SECRETS,
    keys.OPERATION_RENEW_KUBECONFIG,
    keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS,
)

SEED = Kind(
    definition=DEFINITION,
    defaults=(reserve_capacity, label_extensions),
    asks=operations.on(consumed=CONSUMED, kept=KEPT),
    checks=(spec_errors, allowed_operations(*CONSUMED, *KEPT)),
    references=(extensions_registered,),
    changes=(zones_in_use, operation_not_overwritten),
    rights=(reading_rights(of_seed, "spec"),),
    deletions=(in_use,),
    reads=(CONTROLLER_REGISTRATIONS, SHOOTS),
)
