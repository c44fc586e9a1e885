"""What people call a kind: `deploy`, `deployments.apps`, `Deployment`."""

from collections.abc import Iterable, Iterator

from kube.objects import Object
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.discovery_documents import AGGREGATED
from kubectl.errors import UserError


async def find(client: Client, name: str) -> Resource:
    """The kind of this name in its preferred version.

    Raises:
        UserError: there is none, or the API server is too old.
        KubeError: the API server could not be asked.
    """
    groups: list[Object] = []
    for path in ("/api", "/apis"):
        answer = await client.read(path, accept=AGGREGATED)
        if answer.get("kind") != "APIGroupDiscoveryList":
            raise UserError(
                "the API server is too old to list all its kinds at once: it needs Kubernetes 1.27 or newer"
            )
        groups += answer.get("items") or []
    found = matching(name, groups)
    if found is None:
        raise UserError(f"the cluster knows no kind {name!r}", hint="see all of them: kubectl api-resources")
    return found


def matching(name: str, groups: Iterable[Object]) -> Resource | None:
    """The first that is called so; the core group comes first."""
    wanted, _, group = name.lower().partition(".")
    for resource, names in _served(groups):
        if wanted in names and (not group or f"{resource.group}.".startswith(f"{group}.")):
            return resource
    return None


def _served(groups: Iterable[Object]) -> Iterator[tuple[Resource, set[str]]]:
    for group in groups:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in (group.get("versions") or [])[:1]:
            for entry in version.get("resources") or []:
                kind = (entry.get("responseKind") or {}).get("kind") or ""
                plural = entry.get("resource") or ""
                names = {plural, entry.get("singularResource") or "", kind.lower(), *(entry.get("shortNames") or [])}
                yield (
                    Resource(name, version.get("version") or "", kind, plural, entry.get("scope") == "Namespaced"),
                    names,
                )
