"""Operating system of Nodes: files and units there, and the configuration of containerd."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from gardener.api.extensions.operating_system_config import OPERATING_SYSTEM_CONFIG as DEFINITION
from kube.names import dns_subdomain_problems
from kube.validation import FieldError, duplicate, forbidden, invalid, invalid_for, not_supported, required, shown
from webhooks.handlers.extension_validation.kind import Kind, need
from webhooks.handlers.extension_validation.rules.go_types import typed
from webhooks.handlers.extension_validation.rules.typed import as_json
from webhooks.handlers.extension_validation.rules.urls import Url, parse_url

# --- the configuration of containerd


_CGROUP_DRIVERS = ("cgroupfs", "systemd")
_CAPABILITIES = ("push", "pull", "resolve")
_OPERATIONS = ("add", "remove")
_SCHEMES = ("http", "https")
_ANY_UPSTREAM = "_default"
_FORM = "; desired format: https://host[:port]"
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_HIGHEST_PORT = 65535


def cri_errors(path: str, config: Any, *, purpose: str) -> Iterator[FieldError]:
    if config.cgroupDriver is not None and config.cgroupDriver not in _CGROUP_DRIVERS:
        yield not_supported(f"{path}.cgroupDriver", config.cgroupDriver, _CGROUP_DRIVERS)
    if config.containerd is None:
        return
    path += ".containerd"
    if purpose == "provision":
        detail = "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'"
        yield forbidden(path, detail)
        return
    yield from need(f"{path}.sandboxImage", config.containerd.sandboxImage)
    yield from _registry_errors(f"{path}.registries", config.containerd.registries or ())
    for index, plugin in enumerate(config.containerd.plugins or ()):
        yield from _plugin_errors(f"{path}.plugins[{index}]", plugin)


def _registry_errors(path: str, registries: Sequence[Any]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, registry in enumerate(registries):
        where = f"{path}[{index}]"
        if registry.upstream in seen:
            yield duplicate(f"{where}.upstream", registry.upstream)
        seen.add(registry.upstream)
        if registry.upstream != _ANY_UPSTREAM:
            yield from invalid_for(f"{where}.upstream", registry.upstream, _host_and_port_problems(registry.upstream))
        if registry.server is not None:
            yield from _url_errors(f"{where}.server", registry.server, schemes=_SCHEMES)
        for number, host in enumerate(registry.hosts or ()):
            yield from _url_errors(f"{where}.hosts[{number}].url", host.url)
            for position, capability in enumerate(host.capabilities or ()):
                if capability not in _CAPABILITIES:
                    yield not_supported(f"{where}.hosts[{number}].capabilities[{position}]", capability, _CAPABILITIES)


def _host_and_port_problems(text: str) -> Iterator[str]:
    host, colon, port = text.rpartition(":")
    if colon and _DIGITS.fullmatch(port):
        if not _PORT.fullmatch(port) or int(port) > _HIGHEST_PORT:
            yield f"port '{port}' is not valid, valid port must be in the range [1, {_HIGHEST_PORT}]"
    else:
        host = text
    yield from dns_subdomain_problems(host)


def _url_errors(path: str, text: str, *, schemes: Sequence[str] = ()) -> Iterator[FieldError]:
    try:
        url: Url = parse_url(text)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if schemes and url.scheme not in schemes:
        yield not_supported(path, url.scheme, schemes)
    if not url.host:
        yield invalid(path, url.host, f"host must be provided{_FORM}")


def _plugin_errors(path: str, plugin: Any) -> Iterator[FieldError]:
    if plugin.op is not None and plugin.op not in _OPERATIONS:
        yield not_supported(f"{path}.op", plugin.op, _OPERATIONS)
    if not plugin.path:
        yield required(f"{path}.path", "must provide a path")
    if plugin.values is None:
        return
    if plugin.op == "remove":
        yield forbidden(f"{path}.values", "values must not be specified when 'remove' operation is used")
    elif not isinstance(plugin.values, dict):
        yield invalid(f"{path}.values", shown(plugin.values), "provided values must be given in json format")


# --- the kind


_PURPOSES = ("provision", "reconcile")
_ENCODINGS = ("", "b64")
_ONE_CONTENT = "either 'secretRef', 'inline' or 'imageRef' must be provided"


_RESERVED, _ROTATION = "*v1beta1.KubeletConfigReserved", "inPlaceUpdates.credentialsRotation"
_FILES_AND_UNITS = {
    "files[].content.imageRef": "*FileContentImageRef",
    "files[].content.inline": "*FileContentInline",
    "files[].content.secretRef": "*FileContentSecretRef",
    "files[].permissions": "*uint32",
    "units[].command": "*UnitCommand",
}
_DECLARED = {
    "criConfig": "*CRIConfig",
    "criConfig.cgroupDriver": "*CgroupDriverName",
    "criConfig.containerd": "*ContainerdConfig",
    "criConfig.containerd.plugins[].op": "*PluginPathOperation",
    "criConfig.containerd.plugins[].values": "*v1.JSON",
    "criConfig.containerd.registries[].hosts[].caCerts": "CACerts",
    "inPlaceUpdates": "*InPlaceUpdates",
    "inPlaceUpdates.kubelet.evictionHard": "*v1beta1.KubeletConfigEviction",
    "inPlaceUpdates.kubelet.kubeReserved": _RESERVED,
    "inPlaceUpdates.kubelet.systemReserved": _RESERVED,
    _ROTATION: "*CredentialsRotation",
    f"{_ROTATION}.certificateAuthorities": "*CARotation",
    f"{_ROTATION}.serviceAccountKey": "*ServiceAccountKeyRotation",
    **_FILES_AND_UNITS,
    **{f"status.extension{path[0].upper()}{path[1:]}": declaration for path, declaration in _FILES_AND_UNITS.items()},
}


def _errors(config: Any) -> Iterator[FieldError]:
    spec, status = config.spec, config.status
    files, more_files = spec.files or [], status.extensionFiles or []
    paths = {file.path for file in (*files, *more_files)}
    if spec.purpose and spec.purpose not in _PURPOSES:
        yield not_supported("spec.purpose", spec.purpose, _PURPOSES)
    if spec.criConfig is not None:
        yield from cri_errors("spec.criConfig", spec.criConfig, purpose=spec.purpose)
    yield from _unit_errors("spec.units", spec.units or [], paths)
    yield from _file_errors("spec.files", files)
    yield from _unit_errors("status.extensionUnits", status.extensionUnits or [], paths)
    yield from _file_errors("status.extensionFiles", more_files)
    yield from _repeated_paths(("spec.files", files), ("status.extensionFiles", more_files))


def _unit_errors(path: str, units: Sequence[Any], files: set[str]) -> Iterator[FieldError]:
    for index, unit in enumerate(units):
        where = f"{path}[{index}]"
        yield from need(f"{where}.name", unit.name)
        for number, drop_in in enumerate(unit.dropIns or ()):
            yield from need(f"{where}.dropIns[{number}].name", drop_in.name)
            yield from need(f"{where}.dropIns[{number}].content", drop_in.content)
        for number, file in enumerate(unit.filePaths or ()):
            if file not in files:
                detail = "'filePath' requires a matching 'path' in 'spec.files'"
                yield invalid(f"{where}.filePaths[{number}]", file, detail)


def _file_errors(path: str, files: Sequence[Any]) -> Iterator[FieldError]:
    for index, file in enumerate(files):
        where = f"{path}[{index}]"
        yield from need(f"{where}.path", file.path)
        yield from _content_errors(f"{where}.content", file.content)
        if file.hostName is not None:
            yield from invalid_for(f"{where}.hostName", file.hostName, dns_subdomain_problems(file.hostName))


def _content_errors(path: str, content: Any) -> Iterator[FieldError]:
    given = [each for each in (content.secretRef, content.inline, content.imageRef) if each is not None]
    if not given:
        yield required(path, _ONE_CONTENT)
    elif len(given) > 1:
        yield invalid(path, as_json(content), f"{_ONE_CONTENT}, not multiple at the same time")
    elif (secret := content.secretRef) is not None:
        yield from need(f"{path}.secretRef.name", secret.name)
        yield from need(f"{path}.secretRef.dataKey", secret.dataKey)
    elif (inline := content.inline) is not None:
        if inline.encoding not in _ENCODINGS:
            yield not_supported(f"{path}.inline.encoding", inline.encoding, _ENCODINGS)
        yield from need(f"{path}.inline.data", inline.data)
    else:
        yield from need(f"{path}.imageRef.image", content.imageRef.image)
        yield from need(f"{path}.imageRef.filePathInImage", content.imageRef.filePathInImage)


def _repeated_paths(*lists: tuple[str, Sequence[Any]]) -> Iterator[FieldError]:
    """Refuse repeated paths: one may occur once for every host, or once for all hosts."""
    hosts: dict[str, set[str | None]] = {}
    for path, files in lists:
        for index, file in enumerate(files):
            if not file.path:
                continue
            others = hosts.setdefault(file.path, set())
            if others and (file.hostName is None or None in others or file.hostName in others):
                yield duplicate(f"{path}[{index}].path", file.path)
            others.add(file.hostName)


OPERATING_SYSTEM_CONFIG = Kind(
    typed=typed(DEFINITION, _DECLARED, status=("extensionUnits", "extensionFiles")),
    resource=DEFINITION.resource,
    noun="operatingsystemconfig",
    required=("spec.purpose",),
    errors=_errors,
    immutable=("spec.type", "spec.purpose"),
)
