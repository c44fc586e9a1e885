"""What a Seed must be, and what may not change while it is used."""

from collections.abc import Iterator

from kube.objects import text, texts
from kube.paths import at
from webhooks.garden.common import seed_spec
from webhooks.garden.common.extensions import Need, unregistered
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.write import Write


def spec_errors(write: Write) -> Iterator[Finding]:
    yield from seed_spec.spec_errors(write.spec, "spec")
    yield from seed_spec.completeness_errors(write.spec, "spec")


def extensions_registered(write: Write) -> Iterator[Finding]:
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
