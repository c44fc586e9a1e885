from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from kube.names import dns_subdomain_problems
from kube.validation import FieldError, duplicate, invalid, invalid_for, not_supported, required
from webhooks.handlers.extension_validation.containerd import CRIConfig, cri_errors
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, need
from webhooks.handlers.extension_validation.rules.typed import GoName, Quantity, Time, Typed, Uint32, as_json

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
