"""Objects that a Shoot names: they exist, and its author may use them.

Reads `SECRET_BINDINGS`, `CREDENTIALS_BINDINGS`, `EXPOSURE_CLASSES`, `SECRETS`, `CONFIG_MAPS`, `MANAGED_SEEDS`,
`NAMESPACED_CLOUD_PROFILES`.
"""

from collections.abc import Iterator

from gardener.api.garden import (
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    MANAGED_SEEDS,
    NAMESPACED_CLOUD_PROFILES,
    SECRET_BINDINGS,
    WORKLOAD_IDENTITIES,
)
from gardener.garden import users
from gardener.garden.managed_seeds import seed_template_path
from gardener.garden.shoots import zones_of_workers
from kube.objects import Key, Object, mapping, text, texts
from kube.paths import at, mapping_at
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.validation import forbidden, invalid
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Right, Write
from webhooks.garden.shoot_spec.dns import providers

_NAMED = (
    ("secretBindingName", SECRET_BINDINGS),
    ("credentialsBindingName", CREDENTIALS_BINDINGS),
    ("exposureClassName", EXPOSURE_CLASSES),
)
_KINDS = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


def existing(write: Write) -> Iterator[Finding]:
    """Bindings, exposure class, Secrets and ConfigMaps that it names exist."""
    spec, garden, namespace = write.spec, write.garden, write.namespace
    for field, resource in _NAMED:
        if name := spec.get(field):
            yield from exists(garden, f"spec.{field}", resource, name, namespace)
    for index, provider in enumerate(providers(spec) if spec.get("dns") else ()):
        path, name = f"spec.dns.providers[{index}].secretName", text(provider.get("secretName"))
        yield from exists(garden, path, SECRETS, name, namespace)
    for index, (kind, name) in enumerate(_resources(spec)):
        if kind is not None:
            yield from exists(garden, f"spec.resources[{index}]", kind, name, namespace)


def _resources(spec: Object) -> list[tuple[Resource | None, str]]:
    return [_resource(each.get("resourceRef") or {}) for each in spec.get("resources") or ()]


def _resource(reference: Object) -> tuple[Resource | None, str]:
    return _KINDS.get(text(reference.get("kind"))), text(reference.get("name"))


def reading_rights(write: Write) -> Iterator[Right]:
    """Rule for `rights`: users must be allowed to read objects given to extensions, and changed credentials."""
    if wanted := _resources(write.spec):
        before = _resources(write.old_spec)
        what = "shoot cannot reference a resource you are not allowed to read"
        for index, (resource, name) in enumerate(wanted):
            if resource is not None and (resource, name) not in before:
                yield _reading(resource, name, write.namespace, what, f"spec.resources[{index}]")
    if write.old_spec.get("credentialsBindingName") and write.changed("spec", "credentialsBindingName"):
        yield from _credential_rights(write)


def _credential_rights(write: Write) -> Iterator[Right]:
    what = "shoot cannot change to or from credentials you are not allowed to read"
    for spec in (write.old_spec, write.spec):
        if credentials := _credentials(write, spec):
            resource = WORKLOAD_IDENTITIES if credentials.get("kind") == WORKLOAD_IDENTITIES.kind else SECRETS
            name, namespace = text(credentials.get("name")), text(credentials.get("namespace"))
            yield _reading(resource, name, namespace, what, "spec.credentialsBindingName")


def _reading(resource: Resource, name: str, namespace: str, denial: str, path: str) -> Right:
    return Right(verb="get", resource=resource, name=name, namespace=namespace, denial=denial, path=path)


# --- bindings


def binding_of(write: Write, spec: Object) -> Object | None:
    """Return the SecretBinding or CredentialsBinding of a Shoot in this namespace."""
    if name := text(spec.get("credentialsBindingName")):
        return write.garden.get(CREDENTIALS_BINDINGS, name, write.namespace)
    name = text(spec.get("secretBindingName"))
    return write.garden.get(SECRET_BINDINGS, name, write.namespace) if name else None


def own_binding(write: Write) -> Object | None:
    return binding_of(write, write.spec)


def _credentials(write: Write, spec: Object) -> Object:
    """Reference to the Secret, or to the WorkloadIdentity, of the binding; with a kind."""
    binding = binding_of(write, spec)
    if binding is None:
        return {}
    secret = mapping(binding.get("secretRef"))
    return {"kind": SECRETS.kind, **secret} if secret else mapping(binding.get("credentialsRef"))


def binding_errors(write: Write) -> Iterator[Finding]:
    """The binding is for the infrastructure of the Shoot."""
    provider: Object = write.spec.get("provider") or {}
    wanted, types = provider.get("type") or "", text(at(own_binding(write) or {}, "provider", "type"))
    if types and wanted != types and wanted not in (each.strip() for each in types.split(",")):
        kind = "CredentialsBinding" if write.spec.get("credentialsBindingName") else "SecretBinding"
        detail = f'provider type in shoot must match provider type of referenced {kind}: "{types}"'
        error = invalid("spec.provider.type", wanted, detail)
        yield Denial(str(error), error.path)


def binding_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: a SecretBinding may be replaced by a CredentialsBinding of the same Secret."""
    if not write.old_spec.get("secretBindingName") or not write.spec.get("credentialsBindingName"):
        return
    before, now = _credentials(write, write.old_spec), _credentials(write, write.spec)
    if before and now and _identity(before) != _identity(now):
        detail = "must refer to the same Secret as secretBindingName did"
        yield forbidden("spec.credentialsBindingName", detail)


def _identity(reference: Object) -> tuple[str, ...]:
    return tuple(text(reference.get(field)) for field in ("kind", "namespace", "name"))


def profile_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: a NamespacedCloudProfile may replace its parent."""
    before, now = mapping(write.old_spec.get("cloudProfile")), mapping(write.spec.get("cloudProfile"))
    if now.get("kind") != NAMESPACED_CLOUD_PROFILES.kind or before.get("kind") in {None, now["kind"]}:
        return
    found = write.garden.need(NAMESPACED_CLOUD_PROFILES, text(now.get("name")), write.namespace)
    parent = text(at(found or {}, "spec", "parent", "name"))
    if found is not None and parent != before.get("name"):
        detail = (
            "cloud profile may only change to a NamespacedCloudProfile with it as parent; the parent of this "
            f"one is {parent}"
        )
        yield invalid("spec.cloudProfile", now, detail)


# --- Shoots that are Seeds


def _managed_seed(write: Write) -> Object | None:
    return next(iter(write.garden.by(MANAGED_SEEDS, users.shoots, Key(write.namespace, write.name))), None)


def still_seed(write: Write) -> Iterator[Finding]:
    """Rule for `deletions`."""
    if _managed_seed(write) is not None:
        message = "since it is still referenced by a managed seed"
        yield Denial(f"cannot delete shoot {write.namespace}/{write.name} {message}")


def fit_for_seed(write: Write) -> Iterator[Finding]:
    """If a Seed runs on the Shoot, it has what the Seed needs."""
    if _managed_seed(write) is None:
        return
    if at(write.spec, "addons", "nginxIngress", "enabled") is True:
        detail = "shoot ingress addon is not supported for managed seeds - use the managed seed ingress controller"
        yield Denial(f"spec.addons.nginxIngress.enabled: {detail}", "spec.addons.nginxIngress.enabled")
    if at(write.spec, "kubernetes", "verticalPodAutoscaler", "enabled") is not True:
        path = "spec.kubernetes.verticalPodAutoscaler.enabled"
        yield Denial(f"{path}: shoot VPA has to be enabled for managed seeds", path)


def seed_stays(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: settings that the Seed has taken from its Shoot stay."""
    managed = _managed_seed(write)
    if managed is None or write.is_deleting:
        return
    if write.changed("spec", "networking", "nodes"):
        yield Denial("spec.networking.nodes: field is immutable for managed seeds", "spec.networking.nodes")
    yield from _stays_awake(write, managed)
    template = seed_template_path(mapping_at(managed, "spec"))
    listed = texts(at(managed, "spec", *template, "spec", "provider", "zones"))
    given_up = set(zones_of_workers(write.old_spec)).difference(zones_of_workers(write.spec))
    if given_up.intersection(listed):
        detail = "shoot worker zone(s) must not be removed as long as registered in managedseed"
        yield Denial(f"spec.provider.workers: {detail}", "spec.provider.workers")


def _stays_awake(write: Write, managed: Object) -> Iterator[Finding]:
    """Refuse hibernation: its gardenlet runs in it, and so do the control planes of all Shoots of the Seed."""
    seed = text(mapping_at(managed, "metadata").get("name"))
    for field, is_set in (
        ("enabled", at(write.spec, "hibernation", "enabled") is True),
        ("schedules", bool(at(write.spec, "hibernation", "schedules"))),
    ):
        if is_set and write.changed("spec", "hibernation", field):
            path = f"spec.hibernation.{field}"
            detail = f"the cluster can't be hibernated, since it is seed {seed}; delete the ManagedSeed first"
            yield Denial(f"{path}: {detail}", path)
