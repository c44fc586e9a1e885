"""Copies in the seed of inputs from the garden: a Shoot that leaves needs no others.

The garden may have lost what the Shoot refers to: objects were deleted by force, or not restored from a backup. A name
whose provider is unknown stays as it is until its DNSRecord is deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent.gardenlet.shoot.main.rules.domains import Served, own_domain
from components import dns_records
from gardener.api.extensions import CLUSTERS, DNS_RECORDS
from kube.objects import Key, Object, key, mapping, mappings, spec, string_map, text
from kube.paths import at
from kube.resources import SECRETS
from kube.runtime.client import Client

_NAME = "api."
"""Start of the names of API servers."""


@dataclass(frozen=True, slots=True)
class Remains:
    seed: Client
    shoot: Object

    async def profile(self) -> Object:
        """The CloudProfile in the Cluster object; empty if there is none."""
        live = await self.seed.find(CLUSTERS, self._namespace)
        return mapping(spec(live or {}).get("cloudProfile"))

    async def internal(self, project: str) -> Served:
        """The internal name, of the DNSRecord, or as advertised. Args: project: name of the Project."""
        names = [*_advertised(self.shoot), dns_records.internal_host(key(self.shoot).name, project, "invalid")]
        return await self._served(dns_records.INTERNAL, names[0])

    async def external(self) -> Served | None:
        return await self._served(dns_records.EXTERNAL, dns_records.external_host(own_domain(self.shoot)))

    async def exposure_class(self) -> Object | None:
        """An ExposureClass without handler: the gateway of the Shoot is not known."""
        return {"metadata": {"name": text(spec(self.shoot).get("exposureClassName"))}}

    @property
    def _namespace(self) -> str:
        return text(at(self.shoot, "status", "technicalID"))

    async def _served(self, role: str, host: str) -> Served:
        name = dns_records.name(key(self.shoot).name, role)
        live = spec(await self.seed.find(DNS_RECORDS, Key(self._namespace, name)) or {})
        reference = mapping(live.get("secretRef"))
        place = Key(text(reference.get("namespace")), text(reference.get("name")))
        secret = await self.seed.find(SECRETS, place) if reference else None
        return Served(
            host=text(live.get("name")) or host,
            provider=text(live.get("type")) if secret is not None else "",
            zone=text(live.get("zone")),
            credentials=string_map((secret or {}).get("data")),
        )


def _advertised(shoot: Object) -> Iterator[str]:
    """Internal names of the API server in the status."""
    urls = {each.get("name"): text(each.get("url")) for each in mappings(at(shoot, "status", "advertisedAddresses"))}
    for name in ("internal", "service-account-issuer"):
        host = urlsplit(urls.get(name, "")).hostname or ""
        if host.startswith(_NAME):
            yield host
