"""Secrets and ConfigMaps of a Shoot's namespace that hold files for its API server."""

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gardener.tenant_files import audit, authentication, kubeconfigs
from gardener.tenant_files.reading import UnusableFile
from kube.objects import Key, Object, key, mapping, mappings, spec, text
from kube.paths import at, mapping_at
from kube.resources import CONFIG_MAPS, SECRETS, Resource

SERVER = "spec.kubernetes.kubeAPIServer"
AUDIT_POLICY = ("auditConfig", "auditPolicy", "configMapRef", "name")
AUTHENTICATION = ("structuredAuthentication", "configMapName")


@dataclass(frozen=True, slots=True)
class Purpose:
    """Purpose of a file.

    Attributes:
        resource, key: of the object that holds it.
        rewrite: writes a new file from the allowed fields. Raises UnusableFile.
    """

    name: str
    resource: Resource
    key: str
    rewrite: Callable[[bytes | str], str]


KUBECONFIG = Purpose("kubeconfig", SECRETS, kubeconfigs.KEY, kubeconfigs.kubeconfig)
POLICY = Purpose("audit policy", CONFIG_MAPS, audit.KEY, audit.audit_policy)
USERS = Purpose("authentication configuration", CONFIG_MAPS, authentication.KEY, authentication.authentication)
PURPOSES = (KUBECONFIG, POLICY, USERS)


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to a file.

    Attributes:
        name: of the object, in the namespace of the Shoot.
        path: of the field that names it.
        plugin: that uses it; empty for others.
    """

    purpose: Purpose
    name: str
    path: str
    plugin: str = ""


def references(server: Object) -> Iterator[Reference]:
    """References of an API server. Args: server: `spec.kubernetes.kubeAPIServer`."""
    for index, plugin in enumerate(mappings(server.get("admissionPlugins"))):
        if name := text(plugin.get("kubeconfigSecretName")):
            path = f"{SERVER}.admissionPlugins[{index}].kubeconfigSecretName"
            yield Reference(KUBECONFIG, name, path, text(plugin.get("name")))
    for purpose, field in ((POLICY, AUDIT_POLICY), (USERS, AUTHENTICATION)):
        if name := text(at(server, *field)):
            yield Reference(purpose, name, ".".join((SERVER, *field)))


def tenant_files(shoot: Object) -> Iterator[tuple[str, Key]]:
    """An index of Shoots: purpose and object key of each file."""
    for each in references(mapping_at(spec(shoot), "kubernetes", "kubeAPIServer")):
        yield each.purpose.name, Key(key(shoot).namespace, each.name)


def only_references(server: Object) -> Object:
    """The settings, reduced to the fields that `references` reads."""
    plugins = [
        {field: plugin[field] for field in ("name", "kubeconfigSecretName")}
        for plugin in mappings(server.get("admissionPlugins"))
        if plugin.get("kubeconfigSecretName")
    ]
    kept = {field: server[field] for field in (AUDIT_POLICY[0], AUTHENTICATION[0]) if field in server}
    return kept | ({"admissionPlugins": plugins} if plugins else {})


def rewritten(purpose: Purpose, obj: Object) -> str:
    """The file in a Secret or ConfigMap, written from the allowed fields.

    Raises:
        UnusableFile: the file is not allowed, or not readable.
    """
    content = mapping(obj.get("data")).get(purpose.key)
    if not isinstance(content, str) or not content:
        raise UnusableFile(f"key {purpose.key} is missing or empty; put the {purpose.name} there")
    try:
        file = base64.b64decode(content, validate=True) if purpose.resource == SECRETS else content
        return purpose.rewrite(file)
    except binascii.Error:
        raise UnusableFile(f"key {purpose.key} is not valid base64") from None
    except UnusableFile as error:
        raise UnusableFile(f"key {purpose.key}: {error}") from None
