"""Readiness of a process, by the probe of its pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from kube.objects import Object, mapping, mappings, text
from localprocesses.local import HOST

_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Probe:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def probe_of(container: Object, port: int) -> Probe | None:
    """Return the probe at a local port; None if the process is ready as soon as it runs."""
    found = mapping(container.get("readinessProbe")) or mapping(container.get("livenessProbe"))
    request = mapping(found.get("httpGet"))
    if not request:
        return None
    headers = {text(each.get("name")): text(each.get("value")) for each in mappings(request.get("httpHeaders"))}
    scheme = "https" if text(request.get("scheme")).upper() == "HTTPS" else "http"
    # A path that does not begin with a slash would become a part of the host.
    return Probe(f"{scheme}://{HOST}:{port}/{text(request.get('path')).removeprefix('/')}", headers)


async def problem(session: aiohttp.ClientSession, probe: Probe | None) -> str:
    """Return the problem; empty if there is none. Like a kubelet, accept any certificate."""
    if probe is None:
        return ""
    try:
        async with session.get(
            probe.url,
            headers=dict(probe.headers),
            ssl=False,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=_SECONDS),
        ) as answer:
            return "" if answer.status < 400 else f"{probe.url} answers {answer.status}"
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        return f"{probe.url} does not answer: {type(error).__name__}"
