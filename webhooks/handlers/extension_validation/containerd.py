"""The part of an OperatingSystemConfig that configures the container runtime."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from kube.names import dns_subdomain_problems
from kube.validation import FieldError, duplicate, forbidden, invalid, invalid_for, not_supported, required, shown
from webhooks.handlers.extension_validation.kind import need
from webhooks.handlers.extension_validation.rules.typed import GoName, Raw, Typed
from webhooks.handlers.extension_validation.rules.urls import Url, parse_url

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
