"""Writes in the audit logs of both API servers, with user and time."""

from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from campaign.manifests import Place
from campaign.oracles import Write
from devcluster.cluster import Cluster

_WRITES = {"create", "update", "patch", "delete", "deletecollection"}
_WRITES_SHOWN = 40
_REVIEWS = {"tokenreviews", "subjectaccessreviews"}
"""Questions that are put by writes; nothing is stored."""


def writes(clusters: dict[str, Cluster], *, users: Collection[str], since: float) -> list[Write]:
    """By these users, in the order in which they came."""
    found = [
        write
        for name, cluster in clusters.items()
        for event in _events(cluster.audit_log)
        if (write := _write(name, event)) is not None and write.user in users and write.at >= since
    ]
    return sorted(found, key=lambda write: write.at)


def writes_to(clusters: dict[str, Cluster], place: Place) -> list[str]:
    """All writes to an object, the last ones."""
    found = [
        write
        for event in _events(clusters[place.cluster].audit_log)
        if (write := _write(place.cluster, event)) is not None
        and (write.namespace, write.name) == (place.namespace, place.name)
        and write.resource.partition("/")[0] == place.resource.plural
    ]
    moments = sorted(found, key=lambda write: write.at)[-_WRITES_SHOWN:]
    return [f"{datetime.fromtimestamp(write.at).time()} {write}" for write in moments]


def _write(cluster: str, event: dict[str, Any]) -> Write | None:
    if event["verb"] not in _WRITES or event["stage"] != "ResponseComplete":
        return None
    target = event.get("objectRef") or {}
    resource = target.get("resource") or ""
    if resource in _REVIEWS:
        return None
    if target.get("subresource"):
        resource += "/" + target["subresource"]
    return Write(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        user=event["user"].get("username") or "",
        verb=event["verb"],
        cluster=cluster,
        resource=resource,
        namespace=target.get("namespace") or "",
        name=target.get("name") or "",
        status=(event.get("responseStatus") or {}).get("code") or 0,
    )


def _events(log: Path) -> Iterator[dict[str, Any]]:
    """Of the log and those it was rotated to."""
    for file in sorted(log.parent.glob(f"{log.stem}*{log.suffix}")):
        with file.open("rb") as lines:
            for line in lines:
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue  # an API server that was killed while it wrote
