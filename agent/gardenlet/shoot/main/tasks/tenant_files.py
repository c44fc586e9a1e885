"""Files in the garden that a Shoot names for its API server, checked again before use: they may have changed since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.gardenlet.shoot.main.operation import ShootOperation
from gardener.tenant_files import UnusableFile
from gardener.tenant_files.admission import plugin_configuration
from gardener.tenant_files.references import KUBECONFIG, POLICY, USERS, Reference, references, rewritten
from kube.errors import NotFound
from kube.objects import Key, Object, is_deleting, mappings, spec, text
from kube.paths import mapping_at
from kube.runtime.controller import ReconcileError

_ANY_PATH = "/kubeconfig"


class TenantFileError(ReconcileError):
    """A file is missing or not allowed. The API server stays unchanged."""

    codes = UnusableFile.codes


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantFiles:
    """Attributes:
    settings: `spec.kubernetes.kubeAPIServer`.
    kubeconfigs: of admission plugins, by plugin.
    """

    settings: Object
    audit_policy: str
    authentication: str
    kubeconfigs: Mapping[str, str] = field(repr=False)


async def read(operation: ShootOperation) -> TenantFiles:
    """Read the files. A Shoot that is being deleted leaves out unusable ones, so that its tenant can delete it.

    Raises:
        TenantFileError: a file is missing or not allowed.
    """
    settings = mapping_at(spec(operation.shoot), "kubernetes", "kubeAPIServer")
    leaves = is_deleting(operation.shoot)
    found = dict[Reference, str]()
    for each in references(settings):
        try:
            found[each] = await _file(operation, each)
        except TenantFileError:
            if not leaves:
                raise
    kubeconfigs = {each.plugin: file for each, file in found.items() if each.purpose == KUBECONFIG}
    of_purpose = {each.purpose: file for each, file in found.items()}
    if leaves and "admissionPlugins" in settings:
        usable = [each for each in mappings(settings["admissionPlugins"]) if _is_usable(each, kubeconfigs)]
        settings = {**settings, "admissionPlugins": usable}
    return TenantFiles(
        settings=settings,
        audit_policy=of_purpose.get(POLICY, ""),
        authentication=of_purpose.get(USERS, ""),
        kubeconfigs=kubeconfigs,
    )


async def _file(operation: ShootOperation, reference: Reference) -> str:
    kind, namespace = reference.purpose.resource, operation.name.namespace
    where = f"{reference.path}: {kind.kind} {reference.name}"
    try:
        return rewritten(reference.purpose, await operation.garden.client.get(kind, Key(namespace, reference.name)))
    except NotFound as error:
        raise TenantFileError(f"{where} does not exist: {error}") from error
    except UnusableFile as error:
        raise TenantFileError(f"{where}: {error}") from error


def _is_usable(plugin: Object, kubeconfigs: Mapping[str, str]) -> bool:
    name, wants_file = text(plugin.get("name")), bool(plugin.get("kubeconfigSecretName"))
    try:
        plugin_configuration(name, plugin.get("config"), kubeconfig=_ANY_PATH if wants_file else "")
    except UnusableFile:
        return False
    return not wants_file or name in kubeconfigs
