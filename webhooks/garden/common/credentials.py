"""Rules shared by SecretBindings and CredentialsBindings: credentials and quotas that their author may read."""

from collections.abc import Iterator

from gardener.api.garden import QUOTAS
from kube.objects import Object, group_of, mapping, mappings, spec, text
from kube.resources import Resource
from webhooks.garden.common.extensions import PROVIDER, set_extension_labels
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Right, Write


def default_namespaces(write: Write, credentials: str) -> None:
    """Set namespaces of quotas and of the reference in field `credentials`."""
    for reference in (mapping(write.new.get(credentials)), *mappings(write.new.get("quotas"))):
        if reference and not reference.get("namespace"):
            reference["namespace"] = write.namespace


def label_provider(write: Write) -> None:
    types = text(mapping(write.new.get("provider")).get("type")).split(",")
    set_extension_labels(write.new, (f"{PROVIDER}{each.strip()}" for each in types if each.strip()))


def reading_right(write: Write, path: str, resource: Resource, reference: Object, what: str) -> Right:
    """Right to read a reference; `what` is the article and the kind, for the message."""
    return Right(
        verb="get",
        resource=resource,
        namespace=text(reference.get("namespace")),
        name=text(reference.get("name")),
        denial=f"{text(write.new.get('kind'))} cannot reference {what} you are not allowed to read",
        path=path,
    )


def quota_rights(write: Write) -> Iterator[Right]:
    if write.changed("quotas"):
        for index, quota in enumerate(mappings(write.new.get("quotas"))):
            yield reading_right(write, f"quotas[{index}]", QUOTAS, quota, "a quota")


def quota_errors(write: Write) -> Iterator[Finding]:
    """The Quotas exist, and no two have the same scope. Reads `QUOTAS`."""
    scopes: set[str] = set()
    for index, quota in enumerate(mappings(write.new.get("quotas"))):
        path, name, namespace = f"quotas[{index}]", text(quota.get("name")), text(quota.get("namespace"))
        yield from exists(write.garden, path, QUOTAS, name, namespace)
        found = write.garden.get(QUOTAS, name, namespace)
        scope = "" if found is None else scope_of(found)
        if scope and scope in scopes:
            yield Denial("only one quota per scope (project or credentials) can be assigned", path)
        scopes.add(scope)


def scope_of(quota: Object) -> str:
    """Return `project`, `credentials`, or an empty text if it is neither."""
    scope = mapping(spec(quota).get("scope"))
    match group_of(text(scope.get("apiVersion"))), text(scope.get("kind")):
        case "core.gardener.cloud", "Project":
            return "project"
        case ("", "Secret") | ("security.gardener.cloud", "WorkloadIdentity"):
            return "credentials"
        case _:
            return ""
