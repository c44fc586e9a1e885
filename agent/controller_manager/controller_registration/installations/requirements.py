"""Extensions that a Seed needs, and ControllerRegistrations that provide them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gardener import conditions
from gardener.garden.domains import UNMANAGED, Domain, is_below
from gardener.garden.extensions import Extension, needed_by_seed, provided
from gardener.garden.shoots import workers
from kube.objects import Object, condition, is_deleting, labels, mappings, matches_label_selector, spec, text
from kube.paths import at, mapping_at, mappings_at


@dataclass(frozen=True, slots=True)
class ShootRequirements:
    """Requirements of a Shoot to its Seed; the same for most Shoots of a Seed."""

    extensions: frozenset[Extension]
    disabled: frozenset[str]
    """Types of extensions enabled for all Shoots that this one disables."""
    is_workerless: bool


# --- requirements


def requirements_of_shoot(shoot: Object, default_domains: Sequence[Domain]) -> ShootRequirements:
    whole = spec(shoot)
    listed = mappings(whole.get("extensions"))
    disabled = frozenset(text(each.get("type")) for each in listed if each.get("disabled") is True)
    pools = workers(whole)
    needed = {("Extension", text(each.get("type"))) for each in listed} - {("Extension", each) for each in disabled}
    needed |= set(_of_pools(whole, pools)) if pools else set()
    needed |= {("DNSRecord", each) for each in _dns_providers(whole, default_domains)}
    return ShootRequirements(
        extensions=frozenset(Extension(kind, of_type) for kind, of_type in needed if of_type),
        disabled=disabled,
        is_workerless=not pools,
    )


def _of_pools(whole: Object, pools: Iterable[Object]) -> Iterator[tuple[str, str]]:
    provider = text(mapping_at(whole, "provider").get("type"))
    for kind in ("ControlPlane", "Infrastructure", "Worker"):
        yield kind, provider
    yield "Network", text(mapping_at(whole, "networking").get("type"))
    for pool in pools:
        yield "OperatingSystemConfig", text(at(pool, "machine", "image", "name"))
        for runtime in mappings_at(pool, "cri", "containerRuntimes"):
            yield "ContainerRuntime", text(runtime.get("type"))


def _dns_providers(whole: Object, default_domains: Sequence[Domain]) -> Iterator[str]:
    """Types of the primary provider, and of the provider of the default domain that the Shoot's domain is below."""
    for provider in mappings_at(whole, "dns", "providers"):
        if provider.get("primary") is True and provider.get("type") != UNMANAGED:
            yield text(provider.get("type"))
    domain = text(at(whole, "dns", "domain"))
    serving = next((each.provider for each in default_domains if is_below(domain, each.domain)), UNMANAGED)
    if serving != UNMANAGED:
        yield serving


def needed_extensions(
    seed: Object,
    *,
    shoots: Collection[ShootRequirements],
    buckets: Iterable[str],
    entries: Iterable[str],
    registrations: Iterable[Object],
    internal_domain: Domain | None,
) -> set[Extension]:
    """All extensions that the Seed needs.

    `shoots` are the requirements of Shoots that are on the Seed or leave it; `buckets` are the provider types of its
    BackupBuckets, `entries` those of the buckets of its BackupEntries.
    """
    needed = {Extension("BackupBucket", each) for each in buckets}
    needed |= {Extension("BackupEntry", each) for each in entries}
    if not is_deleting(seed):
        needed |= set(needed_by_seed(seed))
    if shoots:
        needed |= set(_for_shoots(seed, internal_domain))
    enabled = list(_globally_enabled(registrations))
    for shoot in shoots:
        needed |= shoot.extensions
        needed |= {
            Extension("Extension", each)
            for each, supports_workerless in enabled
            if each not in shoot.disabled and (supports_workerless or not shoot.is_workerless)
        }
    return {each for each in needed if each.type}


def _for_shoots(seed: Object, internal_domain: Domain | None) -> Iterator[Extension]:
    """Extensions that every Shoot needs."""
    yield Extension("ControlPlane", text(at(seed, "spec", "provider", "type")))
    backup = text(at(seed, "spec", "backup", "provider"))
    yield Extension("BackupBucket", backup)
    yield Extension("BackupEntry", backup)
    if internal_domain is not None and internal_domain.provider != UNMANAGED:
        yield Extension("DNSRecord", internal_domain.provider)


def _globally_enabled(registrations: Iterable[Object]) -> Iterator[tuple[str, bool]]:
    """Types, with whether they support workerless Shoots."""
    for registration in registrations:
        for each in mappings_at(registration, "spec", "resources"):
            if each.get("kind") == "Extension" and each.get("globallyEnabled") is True:
                yield text(each.get("type")), each.get("workerlessSupported") is True


# --- providers


@dataclass(frozen=True, slots=True)
class ChosenRegistrations:
    registrations: frozenset[str]
    problems: tuple[str, ...]
    """Messages about required ControllerRegistrations that are missing, selectors that can't be evaluated (their
    installations stay), and needed extensions without a provider.
    """
    is_complete: bool
    """Whether all needed extensions are provided."""


def missing(needed: Iterable[Extension], registrations: Iterable[Object]) -> list[Extension]:
    """Extensions that no registration provides."""
    return sorted(set(needed) - {each for registration in registrations for each in provided(registration)})


def wanted_registrations(
    seed: Object,
    *,
    needed: Collection[Extension],
    registrations: Mapping[str, Object],
    required: Iterable[str],
    has_shoots: bool,
) -> ChosenRegistrations:
    """ControllerRegistrations that provide a needed extension, that are `required` since their extensions still have
    objects in the Seed, or whose policy demands an installation.
    """
    named = {
        name
        for name, registration in registrations.items()
        if _by_policy(registration, seed, has_shoots=has_shoots)
        or any(each in needed for each in provided(registration))
    }
    lacking = missing(needed, registrations.values())
    problems = [
        f'need to install an extension controller for "{each}" but no appropriate ControllerRegistration found'
        for each in lacking
    ]
    problems += [
        f"ControllerRegistration with name {name} not found" for name in sorted(set(required) - registrations.keys())
    ]
    wanted = set()
    for name in sorted(named | (set(required) & registrations.keys())):
        try:
            if _selects(registrations[name], seed):
                wanted.add(name)
        except ValueError as error:
            problems.append(f"spec.deployment.seedSelector of ControllerRegistration {name}: {error}")
            wanted.add(name)
    return ChosenRegistrations(frozenset(wanted), tuple(problems), is_complete=not lacking)


def _by_policy(registration: Object, seed: Object, *, has_shoots: bool) -> bool:
    match at(registration, "spec", "deployment", "policy"):
        case "Always":
            return not is_deleting(registration) and not is_deleting(seed)
        case "AlwaysExceptNoShoots":
            return not is_deleting(registration) and has_shoots
        case _:
            return False


def _selects(registration: Object, seed: Object) -> bool:
    """Whether the registration selects the Seed.

    Raises:
        ValueError: the selector is invalid.
    """
    selector = at(registration, "spec", "deployment", "seedSelector")
    return selector is None or matches_label_selector(selector, labels(seed))


def is_required(installation: Object) -> bool:
    """Whether the Seed still has objects of the extensions that it installs."""
    found = condition(installation, conditions.REQUIRED)
    return found is not None and found.get("status") == "True"
