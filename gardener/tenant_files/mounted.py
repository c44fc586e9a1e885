"""Files of a program of a control plane, checked before the program starts.

For programs that start it: none of the files in mounted ConfigMaps and Secrets, by any author, runs a command or
leads to a file outside of its mounts.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from posixpath import normpath
from typing import Any

from gardener.tenant_files.admission import plugin_configuration
from gardener.tenant_files.audit import audit_policy
from gardener.tenant_files.authentication import authentication
from gardener.tenant_files.encryption import check_encryption
from gardener.tenant_files.kubeconfigs import kubeconfig
from gardener.tenant_files.reading import Fields, UnusableFile, Versioned, decoded, demand_version, model
from kube.objects import mapping, text
from kube.paths import at

Files = Mapping[str, bytes]
"""Content by path."""


class _Plugin(Fields, frozen=True, kw_only=True):
    name: str
    path: str


class _Admission(Versioned, frozen=True, kw_only=True):
    plugins: list[_Plugin] | None = None


class _Connection(Fields, frozen=True, kw_only=True):
    kubeconfig: str


class _Scheduler(Versioned, frozen=True, kw_only=True):
    """Configuration without extenders, which name files of certificates and keys."""

    clientConnection: _Connection
    leaderElection: dict[str, Any] | None = None
    profiles: list[dict[str, Any]] | None = None


def check_mounted(arguments: Sequence[str], files: Files) -> None:
    """Check the files that flags name.

    Raises:
        UnusableFile: a file is not mounted, or not allowed.
    """
    for each in arguments:
        flag, _, path = each.partition("=")
        if (check := _CHECKS.get(flag)) is not None and path:
            _checked(path, files, check)


def _checked(path: str, files: Files, check: Callable[[bytes, Files], object]) -> None:
    if (content := files.get(normpath(path))) is None:
        raise UnusableFile(f"file {path} is not mounted")
    try:
        check(content, files)
    except UnusableFile as error:
        raise UnusableFile(f"file {path}: {error}") from None


def _kubeconfig(content: bytes, files: Files) -> None:
    kubeconfig(content, token_files=files)


def _admission(content: bytes, files: Files) -> None:
    found = model(decoded(content), _Admission)
    versions = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1", "apiserver.k8s.io/v1alpha1")
    demand_version(found, *versions, kinds=("AdmissionConfiguration",))
    for plugin in found.plugins or ():
        _checked(plugin.path, files, partial(_plugin, plugin.name))


def _plugin(name: str, content: bytes, files: Files) -> None:
    config = mapping(decoded(content))
    path = text(config.get("kubeConfigFile")) or text(at(config, "imagePolicy", "kubeConfigFile"))
    plugin_configuration(name, config, kubeconfig=path)
    if path:
        _checked(path, files, _kubeconfig)


def _scheduler(content: bytes, files: Files) -> None:
    found = model(decoded(content), _Scheduler)
    demand_version(found, "kubescheduler.config.k8s.io/v1", kinds=("KubeSchedulerConfiguration",))
    _checked(found.clientConnection.kubeconfig, files, _kubeconfig)


_CHECKS: Mapping[str, Callable[[bytes, Files], object]] = {
    "--admission-control-config-file": _admission,
    "--audit-policy-file": lambda content, _: audit_policy(content),
    "--authentication-config": lambda content, _: authentication(content),
    "--authentication-kubeconfig": _kubeconfig,
    "--authorization-kubeconfig": _kubeconfig,
    "--config": _scheduler,
    "--encryption-provider-config": lambda content, _: check_encryption(content),
    "--kubeconfig": _kubeconfig,
    "--target-kubeconfig": _kubeconfig,
}
"""Checks by flag. The allow-list of arguments has no other flag that names such a file."""
