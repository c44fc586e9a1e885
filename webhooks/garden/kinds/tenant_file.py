"""Secrets and ConfigMaps of Projects whose content Shoots use as files of their API servers.

The webhook is called only for objects with the key of such a file, so that others do not wait for it. The namespace
`garden` is left out: the configuration of the webhooks is there. The gardenlet checks files of all namespaces again.
"""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden import users
from gardener.tenant_files import UnusableFile
from gardener.tenant_files.references import KUBECONFIG, PURPOSES, Purpose, rewritten, tenant_files
from kube.objects import Key, key, mapping
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.validation import forbidden
from webhooks.garden.common.descriptor import Kind, foreign
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.rules.registration import having, where


def usable(write: Write) -> Iterator[Finding]:
    """Shoots can go on using it."""
    if not write.changed("data"):
        return
    for purpose in PURPOSES:
        if purpose.resource.kind == write.new.get("kind"):
            yield from _usable(write, purpose)


def _usable(write: Write, purpose: Purpose) -> Iterator[Finding]:
    own = Key(write.namespace, write.name)
    names = users.listed(sorted(key(each) for each in write.garden.by(SHOOTS, tenant_files, (purpose.name, own))))
    if names == users.listed(()):
        return
    path = f"data[{purpose.key}]"
    if purpose == KUBECONFIG and not mapping(write.new.get("data")).get(purpose.key):
        removed = "data kubeconfig can't be removed from secret or set to empty because secret is in use by shoots"
        yield forbidden(path, f"{removed}: {names}")
        return
    try:
        rewritten(purpose, write.new)
    except UnusableFile as error:
        yield forbidden(path, f"{error}; in use by Shoots {names}")


def _kind(resource: Resource, name: str) -> Kind:
    listed = ", ".join(f"'{each.key}'" for each in PURPOSES if each.resource == resource)
    has_file = "has({0}.data) && [{1}].exists(key, key in {0}.data)"
    condition = (
        f"({has_file.format('object', listed)}) || (oldObject != null && {has_file.format('oldObject', listed)})"
    )
    return Kind(
        definition=foreign(resource),
        name=name,
        namespaces=having(keys.ROLE, keys.ROLE_PROJECT) & where("kubernetes.io/metadata.name", "NotIn", "garden"),
        condition=condition,
        references=(usable,),
        reads=(SHOOTS,),
    )


FILES_IN_CONFIG_MAPS = _kind(CONFIG_MAPS, "shootconfigmaps")
FILES_IN_SECRETS = _kind(SECRETS, "shootsecrets")
