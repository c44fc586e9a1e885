"""Domain of a Shoot, and its DNS provider.

Every Shoot gets a domain below a default domain of the garden; users with their own domain supply its provider, the
primary one. Both are settled when the Shoot gets its Seed. Reads `SECRETS`, `PROJECTS`, `SHOOTS`.
"""

from collections.abc import Iterator
from itertools import islice

from gardener.api.garden import SHOOTS
from gardener.garden.domains import (
    UNMANAGED,
    domain_and_parents,
    domains,
    is_below,
    is_public_suffix,
    is_served,
    parent_domains,
)
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, key, mappings, metadata, text
from kube.paths import mapping_at
from kube.validation import FieldError, duplicate, forbidden, invalid, invalid_for, required
from webhooks.garden.common.domains import default_domains, internal_domain
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import project_name, seed_name
from webhooks.rules.shapes import child

_DOMAIN, _PROVIDERS = "spec.dns.domain", "spec.dns.providers"


def domain_of(shoot_spec: Object) -> str:
    return text(mapping_at(shoot_spec, "dns").get("domain"))


def providers(shoot_spec: Object) -> list[Object]:
    return mappings(mapping_at(shoot_spec, "dns").get("providers"))


def primary(shoot_spec: Object) -> Object | None:
    return next((each for each in providers(shoot_spec) if each.get("primary") is True), None)


def is_unmanaged(shoot_spec: Object) -> bool:
    chosen = primary(shoot_spec) or next(iter(providers(shoot_spec)), {})
    return chosen.get("type") == UNMANAGED


# --- mutation


def set_dns(write: Write) -> None:
    """Set the domain once there is a Seed, and a primary provider for a domain that is not ours."""
    if write.is_deleting or not write.spec.get("seedName"):
        return
    if write.is_update and write.old_spec.get("seedName"):
        _keep_primary(write)
        return
    ours = [each.domain for each in default_domains(write.garden)]
    project = project_name(write)
    if not domain_of(write.spec) and not is_unmanaged(write.spec) and ours and project and write.name:
        child(write.own_spec(), "dns")["domain"] = f"{write.name}.{project}.{ours[0]}"
    domain, found = domain_of(write.spec), providers(write.spec)
    if domain and found and not is_unmanaged(write.spec) and not primary(write.spec) and not _is_default(domain, ours):
        found[0]["primary"] = True


def _keep_primary(write: Write) -> None:
    """Keep the primary flag of a provider that loses only this flag."""
    before = primary(write.old_spec)
    if before is not None and primary(write.spec) is None:
        for each in providers(write.spec):
            if _identity(each) == _identity(before):
                each["primary"] = True
                return


def _identity(provider: Object) -> tuple[str, str]:
    return text(provider.get("type")), text(provider.get("secretName"))


def _is_default(domain: str, ours: list[str]) -> bool:
    return any(is_below(domain, each) for each in ours)


# --- form


def dns_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    if not write.spec.get("dns"):
        return
    domain = domain_of(write.spec)
    if domain:
        yield from invalid_for(_DOMAIN, domain, dns_subdomain_problems(domain))
    chosen = primary(write.spec)
    if chosen is not None and chosen.get("type") not in {None, UNMANAGED} and not domain:
        yield required(_DOMAIN, f'domain must be set when primary provider type is not set to "{UNMANAGED}"')
    seen: set[tuple[str, str]] = set()
    primaries = 0
    for index, provider in enumerate(providers(write.spec)):
        path = f"{_PROVIDERS}[{index}]"
        primaries += provider.get("primary") is True
        if provider.get("primary") is True and primaries > 1:
            yield forbidden(f"{path}.primary", "multiple primary DNS providers are not supported")
        yield from _provider_errors(path, provider)
        identity = _identity(provider)
        if all(identity):
            name = f"{identity[1]}-{identity[0]}"
            yield from invalid_for(path, name, dns_subdomain_problems(name))
            if identity in seen:
                yield duplicate(path, name)
        seen.add(identity)


def _provider_errors(path: str, provider: Object) -> Iterator[FieldError]:
    kind, secret = text(provider.get("type")), text(provider.get("secretName"))
    if kind == UNMANAGED and secret:
        yield invalid(f"{path}.secretName", secret, f'secretName must not be set when type is "{UNMANAGED}"')
    if secret and not kind:
        yield required(f"{path}.type", "type must be set when secretName is set")


# --- with the garden's domains


def public_suffix_errors(write: Write) -> Iterator[Finding]:
    """Refuse a domain below which all may have domains."""
    domain = domain_of(write.spec)
    if domain and _is_open(write) and is_public_suffix(domain):
        yield forbidden(_DOMAIN, f"{domain} is a public suffix - use a domain below it")


def domain_errors(write: Write) -> Iterator[Finding]:
    """The domain fits the domains of the garden and those of other Shoots. With a Seed there is one."""
    spec = write.spec
    domain, seed = domain_of(spec), spec.get("seedName")
    if not domain and not seed:
        return
    ours = [each.domain for each in default_domains(write.garden)]
    if domain:
        yield from _default_domain_errors(write, domain, ours)
    if seed:
        if not domain and not is_unmanaged(spec):
            detail = f"shoot domain field {_DOMAIN} must be set if provider != {UNMANAGED} and assigned to a seed"
            yield required(_DOMAIN, detail)
        yield from _secondary_errors(spec)
    if domain:
        yield from _taken(write, domain)


def _default_domain_errors(write: Write, domain: str, ours: list[str]) -> Iterator[Finding]:
    if _is_default(domain, ours) and primary(write.spec) is not None:
        detail = "primary dns provider must not be set when default domain is used"
        yield invalid(_PROVIDERS, providers(write.spec), detail)
    if _is_open(write):
        yield from _scheme_errors(write, domain, ours)
        yield from _domain_of_all(write, domain, ours)


def _is_open(write: Write) -> bool:
    """Whether the domain is not settled yet."""
    return write.is_create or not seed_name(write.old) or not domain_of(write.old_spec)


def _domain_of_all(write: Write, domain: str, ours: list[str]) -> Iterator[Finding]:
    """Refuse domains that contain domains of other users."""
    internal = internal_domain(write.garden)
    everybodys = [*ours, *([] if internal is None else [internal.domain])]
    if is_public_suffix(domain):
        return
    if any(each == domain or is_below(each, domain) for each in everybodys):
        yield forbidden(_DOMAIN, "it contains a default domain of the garden - use another one")
    elif internal is not None and is_below(domain, internal.domain) and not _is_default(domain, ours):
        yield forbidden(_DOMAIN, "it is below the internal domain of the garden - use another one")


def _scheme_errors(write: Write, domain: str, ours: list[str]) -> Iterator[Finding]:
    project = project_name(write)
    below = [each for each in ours if is_below(domain, each)]
    if below and all(domain != f"{write.name}.{project}.{each}" for each in below):
        detail = "<shoot-name>.<project-name>.<default-domain>"
        yield invalid(_DOMAIN, domain, f"shoot uses a default domain but does not match expected scheme: {detail}")


def _secondary_errors(shoot_spec: Object) -> Iterator[FieldError]:
    for index, provider in enumerate(providers(shoot_spec)):
        if provider.get("primary") is not True and not is_unmanaged(shoot_spec):
            for field in ("type", "secretName"):
                if not provider.get(field):
                    yield required(
                        f"{_PROVIDERS}[{index}].{field}", f"non-primary DNS providers must specify a {field}"
                    )


def _taken(write: Write, domain: str) -> Iterator[Finding]:
    """Refuse a domain if another Shoot of the garden has it, or one above or below it.

    In other projects, domains above and below count only if they are served: a Shoot that names another user's domain
    does not keep its owner from using it. Below default domains, names cannot collide.
    """
    own, garden = Key(write.namespace, write.name), write.garden
    same = list(garden.by(SHOOTS, domains, domain))
    around: list[Object] = []
    if not _is_default(domain, [each.domain for each in default_domains(garden)]):
        parents = islice(domain_and_parents(domain), 1, None)
        above = (shoot for each in parents for shoot in garden.by(SHOOTS, domains, each))
        around = [shoot for shoot in (*garden.by(SHOOTS, parent_domains, domain), *above) if _counts(write, shoot)]
    if any(key(shoot) != own for shoot in (*same, *around)):
        yield Denial(
            f"the domain {domain} is used by another shoot, or contains or is contained in such a domain", _DOMAIN
        )


def _counts(write: Write, shoot: Object) -> bool:
    return metadata(shoot).get("namespace") == write.namespace or is_served(shoot)


# --- changes


def dns_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: with a Seed, the primary provider and its type stay."""
    before = primary(write.old_spec) if seed_name(write.old) else None
    if before is None:
        return
    now = primary(write.spec)
    if now is None:
        yield forbidden(_PROVIDERS, "removing a primary provider is not allowed")
    elif now.get("type") != before.get("type"):
        yield forbidden(_PROVIDERS, "changing primary provider type is not allowed")
