"""Removal of settings that a version of Kubernetes forbids from the spec of a Shoot, so that the update is valid.

Each repair belongs to the minor version that requires it first, and is done when the control plane reaches that. Its
text goes to the status of the Shoot.

A component does not start with a feature gate or admission plugin that it does not know. The tables of this package
have a line for each name: the first minor version with it, none for the oldest of the tables; and the last one, none
for the newest. They were taken from the sources of these versions of Kubernetes, all components together. So was the
table of API versions, but it has only those that ended.

Fields of the spec that newer versions of the garden API forbid from a version of Kubernetes on are in `settings.csv`,
each with its source. They are removed for all versions of the garden's API server.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

from gardener.api.garden import CLOUD_PROFILES
from gardener.garden.shoots import workers
from gardener.garden.versions import Version, parse_version
from kube.objects import Object, integer, key, mapping, mappings, text, texts
from kube.paths import at, mapping_at
from kube.quantities import added

# --- feature gates and admission plugins by version


OLDEST, NEWEST = (1, 25), (1, 36)
"""Oldest and newest version in the tables."""
Minor = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Table:
    """Versions by name. Args: spans: the first and the last minor version that knows a name."""

    spans: Mapping[str, tuple[Minor, Minor]]

    def unknown(self, names: Iterable[str], version: Version) -> list[str]:
        """Names that this version does not know, sorted.

        No name counts as unknown before the oldest version. Later versions than the newest know names that are not
        listed.
        """
        return sorted(name for name in names if self._is_unknown(name, (version.major, version.minor)))

    def _is_unknown(self, name: str, minor: Minor) -> bool:
        if minor < OLDEST:
            return False
        span = self.spans.get(name)
        if span is None:
            return minor <= NEWEST
        first, last = span
        return minor < first or (minor > last and last != NEWEST)


@cache
def feature_gates() -> Table:
    return _read("feature_gates.csv")


@cache
def admission_plugins() -> Table:
    return _read("admission_plugins.csv")


@cache
def api_versions() -> Table:
    """API versions, and resources of them that ended earlier."""
    return _read("api_versions.csv")


@cache
def ended_api_versions() -> Mapping[str, Minor]:
    """Last version of Kubernetes that knows an API version, by group and version, or group, version and resource."""
    return {name: last for name, (_, last) in api_versions().spans.items() if last != NEWEST}


def _read(file: str) -> Table:
    return Table({line["name"]: (_minor(line["first"], OLDEST), _minor(line["last"], NEWEST)) for line in _lines(file)})


def _lines(file: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(resources.files(__package__).joinpath(file).read_text().splitlines())


class Setting(NamedTuple):
    """A field of the spec that is forbidden from a version of Kubernetes on."""

    path: str
    since: Minor
    reason: str
    source: str


@cache
def settings() -> Sequence[Setting]:
    return [
        Setting(line["setting"], _minor(line["since"], OLDEST), line["reason"], line["source"])
        for line in _lines("settings.csv")
    ]


def _minor(written: str, default: Minor) -> Minor:
    parsed = parse_version(written)
    return default if parsed is None else (parsed.major, parsed.minor)


# --- repairs


_LIMITED_SWAP, _UNLIMITED_SWAP = "LimitedSwap", "UnlimitedSwap"
_SWAP_LIMITED_SINCE: Minor = (1, 30)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Update of the control plane from one version to another one."""

    old: Version
    new: Version

    def reaches(self, minor: Minor) -> bool:
        return self.old[:2] < minor <= self.new[:2]


Texts = Iterator[str]
Change = Callable[[Object, str], Texts]
"""Changes the spec of a Shoot in place, for the new version of the control plane; yields the changes in words."""


def pool_version(spec: Object, worker: Object) -> str:
    """Version of Kubernetes."""
    return text(at(worker, "kubernetes", "version")) or text(at(spec, "kubernetes", "version"))


def all_repairs(spec: Object, crossing: Crossing) -> Texts:
    """Repair the spec in place. Args: spec: with all new versions."""
    new = text(at(spec, "kubernetes", "version"))
    for since, change in _REPAIRS:
        if crossing.reaches(since):
            yield from change(spec, new)
    for setting in settings():
        if crossing.reaches(setting.since) and _remove(spec, setting):
            yield _forbidden(f"spec.{setting.path}", setting)
    yield from _system_reserved_of_pools(spec)
    yield from _known_names(spec)
    yield from _limited_swap(spec, crossing)


def _no_static_token(spec: Object, _: str) -> Texts:
    kubernetes = mapping_at(spec, "kubernetes")
    if kubernetes.get("enableStaticTokenKubeconfig") is True:
        kubernetes["enableStaticTokenKubeconfig"] = False
        yield (
            "EnableStaticTokenKubeconfig is set to false. Reason: The static token kubeconfig can no longer be enabled "
            "for Shoot clusters using Kubernetes version 1.27 and higher"
        )


def _a_worker_per_zone(spec: Object, version: str) -> Texts:
    for worker in workers(spec):
        maximum, zones = integer(worker.get("maximum")), len(texts(worker.get("zones")))
        # A pool that is switched off stays off.
        if at(worker, "systemComponents", "allow") is not False and 0 < maximum < zones:
            worker["maximum"] = zones
            yield (
                f'Maximum of worker-pool "{text(worker.get("name"))}" upgraded from {maximum} to {zones}. Reason: '
                "Maximum number of workers of a worker group must be greater or equal to its number of zones for "
                f'updating Kubernetes to "{version}"'
            )


_REPAIRS: tuple[tuple[Minor, Change], ...] = (
    ((1, 27), _no_static_token),
    ((1, 27), _a_worker_per_zone),
)


# --- settings that are forbidden


def _remove(spec: Object, setting: Setting) -> bool:
    """Whether the spec had the setting. Its value is moved if it has a new place, so that its meaning stays."""
    change = _MOVED.get(setting.path, _removed_at(setting.path))
    return change(spec)


def _forbidden(path: str, setting: Setting) -> str:
    since = ".".join(map(str, setting.since))
    return f"Removed {path}. Reason: it is forbidden from Kubernetes version {since} on, {setting.reason}"


def _removed_at(path: str) -> Callable[[Object], bool]:
    *parents, field = path.split(".")

    def remove(spec: Object) -> bool:
        return mapping_at(spec, *parents).pop(field, None) is not None

    return remove


def _reserve_for_kube(kubelet: Object) -> bool:
    written = kubelet.pop("systemReserved", None)
    if system := mapping(written):
        kube = mapping(kubelet.get("kubeReserved"))
        kubelet["kubeReserved"] = {**kube, **{name: _sum(kube.get(name), amount) for name, amount in system.items()}}
    return written is not None


def _sum(one: object, other: object) -> object:
    if one is None or not isinstance(one, str | int) or not isinstance(other, str | int):
        return other
    try:
        return added(one, other)
    except ValueError:
        return other


def _start_with_taints(spec: Object) -> bool:
    autoscaler = mapping_at(spec, "kubernetes", "clusterAutoscaler")
    ignored = autoscaler.pop("ignoreTaints", None)
    if ignored:
        autoscaler["startupTaints"] = list(dict.fromkeys([*texts(autoscaler.get("startupTaints")), *texts(ignored)]))
    return ignored is not None


def _refer_to_profile(spec: Object) -> bool:
    name = spec.pop("cloudProfileName", None)
    if name and not mapping(spec.get("cloudProfile")):
        spec["cloudProfile"] = {"kind": CLOUD_PROFILES.kind, "name": name}
    return name is not None


def refer_to_credentials(spec: Object, crossing: Crossing, replacement: Callable[[], Object | None]) -> Object | None:
    """The CredentialsBinding that replaces the SecretBinding; None if that stays.

    Args: replacement: finds it; only called if it is needed.
    """
    setting = next(each for each in settings() if each.path == _SECRET_BINDING)
    if not crossing.reaches(setting.since) or not spec.get(_SECRET_BINDING) or spec.get(_CREDENTIALS_BINDING):
        return None
    binding = replacement()
    if binding is not None:
        del spec[_SECRET_BINDING]
        spec[_CREDENTIALS_BINDING] = key(binding).name
    return binding


def credentials_text(binding: Object) -> str:
    setting = next(each for each in settings() if each.path == _SECRET_BINDING)
    return f'{_forbidden(f"spec.{_SECRET_BINDING}", setting)}: "{key(binding).name}"'


def _refer_to_dns_credentials(spec: Object) -> bool:
    """Remove a name that duplicates a reference to credentials: an API server that forbids the former has both."""
    providers = [each for each in mappings(at(spec, "dns", "providers")) if each.get("credentialsRef")]
    removed = [each.pop("secretName", None) for each in providers]
    return any(name is not None for name in removed)


_SECRET_BINDING, _CREDENTIALS_BINDING = "secretBindingName", "credentialsBindingName"
_SYSTEM_RESERVED = "kubernetes.kubelet.systemReserved"
_MOVED: Mapping[str, Callable[[Object], bool]] = {
    _SYSTEM_RESERVED: lambda spec: _reserve_for_kube(mapping_at(spec, "kubernetes", "kubelet")),
    "kubernetes.clusterAutoscaler.ignoreTaints": _start_with_taints,
    "cloudProfileName": _refer_to_profile,
    _SECRET_BINDING: lambda _: False,
    "dns.providers[].secretName": _refer_to_dns_credentials,
}


def _system_reserved_of_pools(spec: Object) -> Texts:
    setting = next(each for each in settings() if each.path == _SYSTEM_RESERVED)
    for path, worker in _pools(spec):
        version = parse_version(pool_version(spec, worker))
        if version is None or version[:2] < setting.since:
            continue
        if _reserve_for_kube(mapping_at(worker, "kubernetes", "kubelet")):
            yield _forbidden(f"{path}.systemReserved", setting)


# --- names that a version does not know


_GATED = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")
_PLUGINS = "spec.kubernetes.kubeAPIServer.admissionPlugins"
_API_VERSIONS = "spec.kubernetes.kubeAPIServer.runtimeConfig"


def _known_names(spec: Object) -> Texts:
    kubernetes, version = mapping_at(spec, "kubernetes"), text(at(spec, "kubernetes", "version"))
    for component in _GATED:
        yield from _known_feature_gates(mapping(kubernetes.get(component)), f"spec.kubernetes.{component}", version)
    for path, worker in _pools(spec):
        yield from _known_feature_gates(mapping_at(worker, "kubernetes", "kubelet"), path, pool_version(spec, worker))
    yield from _known_plugins(mapping(kubernetes.get("kubeAPIServer")), version)
    yield from _known_api_versions(mapping(kubernetes.get("kubeAPIServer")), version)


def _pools(spec: Object) -> Iterator[tuple[str, Object]]:
    """Pools with the path of their kubelet settings."""
    for index, worker in enumerate(workers(spec)):
        yield f"spec.provider.workers[{index}].kubernetes.kubelet", worker


def _known_feature_gates(component: Object, path: str, version: str) -> Texts:
    present = mapping(component.get("featureGates"))
    unknown = _unknown(feature_gates(), present, version)
    if unknown:
        kept = {name: value for name, value in present.items() if name not in unknown}
        _set(component, "featureGates", kept)
        yield _removed("feature gates", f"{path}.featureGates", version, unknown)


def _known_plugins(api_server: Object, version: str) -> Texts:
    plugins = mappings(api_server.get("admissionPlugins"))
    unknown = _unknown(admission_plugins(), {text(each.get("name")): each for each in plugins}, version)
    if unknown:
        _set(api_server, "admissionPlugins", [each for each in plugins if each.get("name") not in unknown])
        yield _removed("admission plugins", _PLUGINS, version, unknown)


def _known_api_versions(api_server: Object, version: str) -> Texts:
    present, parsed = mapping(api_server.get("runtimeConfig")), parse_version(version)
    unknown = sorted(name for name in present if parsed is not None and _has_ended(name, parsed))
    if unknown:
        _set(api_server, "runtimeConfig", {name: value for name, value in present.items() if name not in unknown})
        yield _removed("API versions", _API_VERSIONS, version, unknown)


def _has_ended(name: str, version: Version) -> bool:
    """Whether an API version, or a resource of it, has ended."""
    return any(
        version[:2] > last and (name == ended or name.startswith(f"{ended}/"))
        for ended, last in ended_api_versions().items()
    )


def _unknown(table: Table, names: Object, version: str) -> list[str]:
    parsed = parse_version(version)
    return table.unknown(names, parsed) if parsed is not None else []


def _set(holder: Object, field: str, value: Object | list[Object]) -> None:
    if value:
        holder[field] = value
    else:
        del holder[field]


def _removed(what: str, path: str, version: str, names: list[str]) -> str:
    return (
        f'Removed {what} from "{path}" because they are not supported in Kubernetes version "{version}": '
        f"{', '.join(names)}"
    )


def _limited_swap(spec: Object, crossing: Crossing) -> Texts:
    if crossing.reaches(_SWAP_LIMITED_SINCE):
        yield from _limit_swap(mapping_at(spec, "kubernetes", "kubelet"), "spec.kubernetes.kubelet")
    for path, worker in _pools(spec):
        version = parse_version(pool_version(spec, worker))
        if version is not None and version[:2] >= _SWAP_LIMITED_SINCE:
            yield from _limit_swap(mapping_at(worker, "kubernetes", "kubelet"), path)


def _limit_swap(kubelet: Object, path: str) -> Texts:
    swap = mapping(kubelet.get("memorySwap"))
    if swap.get("swapBehavior") == _UNLIMITED_SWAP:
        swap["swapBehavior"] = _LIMITED_SWAP
        yield (
            f"{path}.memorySwap.swapBehavior is set to '{_LIMITED_SWAP}'. Reason: '{_UNLIMITED_SWAP}' cannot be used "
            "for Kubernetes version 1.30 and higher."
        )
