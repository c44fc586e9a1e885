"""The operating system of Nodes: what is written and started there, and the configuration of containerd."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from kube.names import dns_subdomain_problems
from kube.validation import FieldError, duplicate, forbidden, invalid, invalid_for, not_supported, required, shown
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, need
from webhooks.handlers.extension_validation.rules.typed import GoName, Quantity, Raw, Time, Typed, Uint32, as_json
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


class PluginConfig(Typed):
    op: Annotated[str | None, GoName(type="v1alpha1.PluginPathOperation")] = None
    path: list[str] | None = None
    values: Annotated[Raw, GoName(type="v1.JSON")] = None


class RegistryHost(Typed):
    url: str = ""
    capabilities: list[str] | None = None
    ca_certs: Annotated[list[str] | None, GoName("CACerts")] = None


class RegistryConfig(Typed):
    upstream: str = ""
    server: str | None = None
    hosts: list[RegistryHost] | None = None
    readiness_probe: bool | None = None


class ContainerdConfig(Typed):
    registries: list[RegistryConfig] | None = None
    sandbox_image: str = ""
    plugins: list[PluginConfig] | None = None


class CRIConfig(Typed):
    name: str = ""
    cgroup_driver: Annotated[str | None, GoName(type="v1alpha1.CgroupDriverName")] = None
    containerd: ContainerdConfig | None = None


def cri_errors(path: str, config: CRIConfig, *, purpose: str) -> Iterator[FieldError]:
    if config.cgroup_driver is not None and config.cgroup_driver not in _CGROUP_DRIVERS:
        yield not_supported(f"{path}.cgroupDriver", config.cgroup_driver, _CGROUP_DRIVERS)
    if config.containerd is None:
        return
    path += ".containerd"
    if purpose == "provision":
        detail = "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'"
        yield forbidden(path, detail)
        return
    yield from need(f"{path}.sandboxImage", config.containerd.sandbox_image)
    yield from _registry_errors(f"{path}.registries", config.containerd.registries or ())
    for index, plugin in enumerate(config.containerd.plugins or ()):
        yield from _plugin_errors(f"{path}.plugins[{index}]", plugin)


def _registry_errors(path: str, registries: Sequence[RegistryConfig]) -> Iterator[FieldError]:
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


def _plugin_errors(path: str, plugin: PluginConfig) -> Iterator[FieldError]:
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


class DropIn(Typed):
    name: str = ""
    content: str = ""


class Unit(Typed):
    name: str = ""
    command: Annotated[str | None, GoName(type="v1alpha1.UnitCommand")] = None
    enable: bool | None = None
    content: str | None = None
    drop_ins: list[DropIn] | None = None
    file_paths: list[str] | None = None


class FileContentSecretRef(Typed):
    name: str = ""
    data_key: str = ""


class FileContentInline(Typed):
    encoding: str = ""
    data: str = ""


class FileContentImageRef(Typed):
    image: str = ""
    file_path_in_image: str = ""


class FileContent(Typed):
    secret_ref: FileContentSecretRef | None = None
    inline: FileContentInline | None = None
    transmit_unencoded: bool | None = None
    image_ref: FileContentImageRef | None = None


class File(Typed):
    path: str = ""
    permissions: Uint32 | None = None
    content: FileContent = FileContent()
    host_name: str | None = None


class KubeletConfigEviction(Typed):
    package = "v1beta1"

    memory_available: str | None = None
    image_fs_available: Annotated[str | None, GoName("ImageFSAvailable")] = msgspec.field(
        name="imageFSAvailable", default=None
    )
    image_fs_inodes_free: Annotated[str | None, GoName("ImageFSInodesFree")] = msgspec.field(
        name="imageFSInodesFree", default=None
    )
    node_fs_available: Annotated[str | None, GoName("NodeFSAvailable")] = msgspec.field(
        name="nodeFSAvailable", default=None
    )
    node_fs_inodes_free: Annotated[str | None, GoName("NodeFSInodesFree")] = msgspec.field(
        name="nodeFSInodesFree", default=None
    )


class KubeletConfigReserved(Typed):
    package = "v1beta1"

    cpu: Annotated[Quantity | None, GoName("CPU", "resource.Quantity")] = None
    memory: Annotated[Quantity | None, GoName(type="resource.Quantity")] = None
    ephemeral_storage: Annotated[Quantity | None, GoName(type="resource.Quantity")] = None
    pid: Annotated[Quantity | None, GoName("PID", "resource.Quantity")] = None


class KubeletConfig(Typed):
    version: str = ""
    cpu_manager_policy: Annotated[str | None, GoName("CPUManagerPolicy")] = None
    eviction_hard: KubeletConfigEviction | None = None
    kube_reserved: KubeletConfigReserved | None = None
    system_reserved: KubeletConfigReserved | None = None


class CARotation(Typed):
    last_initiation_time: Time | None = None


class ServiceAccountKeyRotation(Typed):
    last_initiation_time: Time | None = None


class CredentialsRotation(Typed):
    certificate_authorities: CARotation | None = None
    service_account_key: ServiceAccountKeyRotation | None = None


class InPlaceUpdates(Typed):
    operating_system_version: str = ""
    kubelet: KubeletConfig = KubeletConfig()
    credentials_rotation: CredentialsRotation | None = None


class OperatingSystemConfigSpec(DefaultSpec):
    cri_config: CRIConfig | None = None
    purpose: str = ""
    units: list[Unit] | None = None
    files: list[File] | None = None
    in_place_updates: InPlaceUpdates | None = None


class OperatingSystemConfigStatus(Typed):
    extension_units: list[Unit] | None = None
    extension_files: list[File] | None = None


class OperatingSystemConfig(Resource):
    spec: OperatingSystemConfigSpec = OperatingSystemConfigSpec()
    status: OperatingSystemConfigStatus = OperatingSystemConfigStatus()


def _errors(config: OperatingSystemConfig) -> Iterator[FieldError]:
    spec, status = config.spec, config.status
    files, more_files = spec.files or [], status.extension_files or []
    paths = {file.path for file in (*files, *more_files)}
    if spec.purpose and spec.purpose not in _PURPOSES:
        yield not_supported("spec.purpose", spec.purpose, _PURPOSES)
    if spec.cri_config is not None:
        yield from cri_errors("spec.criConfig", spec.cri_config, purpose=spec.purpose)
    yield from _unit_errors("spec.units", spec.units or [], paths)
    yield from _file_errors("spec.files", files)
    yield from _unit_errors("status.extensionUnits", status.extension_units or [], paths)
    yield from _file_errors("status.extensionFiles", more_files)
    yield from _repeated_paths(("spec.files", files), ("status.extensionFiles", more_files))


def _unit_errors(path: str, units: Sequence[Unit], files: set[str]) -> Iterator[FieldError]:
    for index, unit in enumerate(units):
        where = f"{path}[{index}]"
        yield from need(f"{where}.name", unit.name)
        for number, drop_in in enumerate(unit.drop_ins or ()):
            yield from need(f"{where}.dropIns[{number}].name", drop_in.name)
            yield from need(f"{where}.dropIns[{number}].content", drop_in.content)
        for number, file in enumerate(unit.file_paths or ()):
            if file not in files:
                detail = "'filePath' requires a matching 'path' in 'spec.files'"
                yield invalid(f"{where}.filePaths[{number}]", file, detail)


def _file_errors(path: str, files: Sequence[File]) -> Iterator[FieldError]:
    for index, file in enumerate(files):
        where = f"{path}[{index}]"
        yield from need(f"{where}.path", file.path)
        yield from _content_errors(f"{where}.content", file.content)
        if file.host_name is not None:
            yield from invalid_for(f"{where}.hostName", file.host_name, dns_subdomain_problems(file.host_name))


def _content_errors(path: str, content: FileContent) -> Iterator[FieldError]:
    match content.secret_ref, content.inline, content.image_ref:
        case None, None, None:
            yield required(path, _ONE_CONTENT)
        case FileContentSecretRef() as secret, None, None:
            yield from need(f"{path}.secretRef.name", secret.name)
            yield from need(f"{path}.secretRef.dataKey", secret.data_key)
        case None, FileContentInline() as inline, None:
            if inline.encoding not in _ENCODINGS:
                yield not_supported(f"{path}.inline.encoding", inline.encoding, _ENCODINGS)
            yield from need(f"{path}.inline.data", inline.data)
        case None, None, FileContentImageRef() as image:
            yield from need(f"{path}.imageRef.image", image.image)
            yield from need(f"{path}.imageRef.filePathInImage", image.file_path_in_image)
        case _:
            yield invalid(path, as_json(content), f"{_ONE_CONTENT}, not multiple at the same time")


def _repeated_paths(*lists: tuple[str, Sequence[File]]) -> Iterator[FieldError]:
    """A path may stand once for every host, or once for all hosts."""
    hosts: dict[str, set[str | None]] = {}
    for path, files in lists:
        for index, file in enumerate(files):
            if not file.path:
                continue
            others = hosts.setdefault(file.path, set())
            if others and (file.host_name is None or None in others or file.host_name in others):
                yield duplicate(f"{path}[{index}].path", file.path)
            others.add(file.host_name)


OPERATING_SYSTEM_CONFIG = Kind(
    typed=OperatingSystemConfig,
    resource=OPERATING_SYSTEM_CONFIGS,
    noun="operatingsystemconfig",
    required=("spec.purpose",),
    errors=_errors,
    immutable=("spec.type", "spec.purpose"),
)
