"""Files of a Shoot for its API server: configurations of admission plugins, and Secrets and ConfigMaps."""

from collections.abc import Iterator, Sequence
from functools import partial

from gardener.tenant_files import UnusableFile
from gardener.tenant_files.admission import CALLERS, plugin_configuration
from gardener.tenant_files.references import SERVER, Reference, references, rewritten
from kube.objects import Object, mapping, mappings, text
from kube.paths import at
from kube.validation import forbidden, not_found
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Content, Write

_ANY_PATH = "/kubeconfig"


def plugin_errors(write: Write) -> Iterator[Finding]:
    """Configurations of admission plugins have only allowed fields. For `checks`."""
    for index, plugin in enumerate(mappings(at(write.spec, "kubernetes", "kubeAPIServer", "admissionPlugins"))):
        kubeconfig = _ANY_PATH if plugin.get("kubeconfigSecretName") else ""
        try:
            plugin_configuration(text(plugin.get("name")), plugin.get("config"), kubeconfig=kubeconfig)
        except UnusableFile as error:
            yield forbidden(f"{SERVER}.admissionPlugins[{index}].config", str(error))


def contents(write: Write) -> Iterator[Content]:
    """Return new references to files. Later changes of their objects are checked when they are written."""
    before = {(each.purpose, each.name) for each in _files(write.old_spec)}
    for each in _files(write.spec):
        if (each.purpose, each.name) not in before:
            before.add((each.purpose, each.name))
            check = partial(_wrong, each)
            yield Content(resource=each.purpose.resource, name=each.name, namespace=write.namespace, check=check)


def _files(spec: Object) -> Iterator[Reference]:
    for each in references(mapping(at(spec, "kubernetes", "kubeAPIServer"))):
        if not each.plugin or each.plugin in CALLERS:
            yield each


def _wrong(reference: Reference, obj: Object | None) -> Sequence[Finding]:
    kind = reference.purpose.resource.kind
    if obj is None:
        return [not_found(reference.path, reference.name, f"the {kind} does not exist; create it first")]
    try:
        rewritten(reference.purpose, obj)
    except UnusableFile as error:
        return [forbidden(reference.path, f"{kind} {reference.name}: {error}")]
    return []
