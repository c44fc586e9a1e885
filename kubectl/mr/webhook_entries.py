"""Entries of webhook configurations that are ours, and whether their servers answer."""

import asyncio
import base64
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gardener.keys import GROUP
from kube.objects import Object, key
from kube.resources import ENDPOINT_SLICES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from kube.runtime.client import Client, Selection

_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Entry:
    configuration: str
    name: str
    service: tuple[str, str] | None
    """Namespace and name."""
    url: str
    ca_bundle: bytes

    @property
    def address(self) -> str:
        if self.service is not None:
            return f"Service {self.service[0]}/{self.service[1]}"
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


async def read(client: Client) -> list[Entry]:
    """Entries of all webhook configurations."""
    found: list[Entry] = []
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for configuration in await client.list(kind):
            found += entries_of(configuration)
    return found


def entries_of(configuration: Object) -> list[Entry]:
    """Entries that are ours by their names: all end in the same domain."""
    return [
        _entry(configuration, webhook)
        for webhook in configuration.get("webhooks") or []
        if (webhook.get("name") or "").endswith(f".{GROUP}")
    ]


def _entry(configuration: Object, webhook: Object) -> Entry:
    client_config = webhook.get("clientConfig") or {}
    service = client_config.get("service")
    return Entry(
        configuration=key(configuration).name,
        name=webhook["name"],
        service=(service.get("namespace") or "", service.get("name") or "") if service else None,
        url=client_config.get("url") or "",
        ca_bundle=base64.b64decode(client_config.get("caBundle") or ""),
    )


def by_address(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.address, []).append(entry)
    return found


async def problem_with(client: Client, entry: Entry) -> str:
    """Reason why the server can't be reached, as far as visible from here; empty if it can."""
    if entry.service is None:
        return await _problem_with_url(entry)
    namespace, name = entry.service
    selection = Selection(namespace=namespace, label_selector=f"kubernetes.io/service-name={name}")
    slices = await client.list(ENDPOINT_SLICES, selection)
    endpoints = [endpoint for found in slices for endpoint in found.get("endpoints") or []]
    ready = [endpoint for endpoint in endpoints if (endpoint.get("conditions") or {}).get("ready") is not False]
    return "" if ready else "the Service has no endpoint that is ready"


async def _problem_with_url(entry: Entry) -> str:
    """Try a TLS handshake, with the trust that the API server has."""
    parts = urlsplit(entry.url)
    try:
        trust = ssl.create_default_context(cadata=entry.ca_bundle.decode() if entry.ca_bundle else None)
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=trust)
        writer.transport.abort()
    except TimeoutError:
        return f"no answer within {_SECONDS:.0f} s"
    except (OSError, ValueError) as error:
        return str(error)
    return ""
