"""The kinds of the Fluent Bit operator, which configures and runs collectors of logs.

Charts of extensions bring filters and parsers for the logs of their programs, so each seed serves these kinds. The
operator validates their fields: here they are open.
"""

from gardener.api.definition import AGE, Definition
from gardener.api.schema import raw
from kube.resources import Resource


def _definition(kind: str, short_name: str, description: str, *, namespaced: bool = True) -> Definition:
    resource = Resource("fluentbit.fluent.io", "v1alpha2", kind, f"{kind.lower()}s", namespaced, (short_name,))
    return Definition(
        resource=resource,
        description=description,
        fields={"spec": raw("Desired state of the object.")},
        columns=(AGE,),
    )


def _shared(kind: str, short_name: str, description: str) -> Definition:
    """Kind for all namespaces."""
    return _definition(kind, short_name, description, namespaced=False)


DEFINITIONS: tuple[Definition, ...] = (
    _shared("ClusterFilter", "cfbf", "Changes of the records of all namespaces."),
    _shared("ClusterFluentBitConfig", "cfbc", "Selection of the inputs, filters, parsers and outputs of collectors."),
    _shared("ClusterInput", "cfbi", "Sources of records."),
    _shared("ClusterMultilineParser", "cfbmp", "Joins lines of all namespaces into records."),
    _shared("ClusterOutput", "cfbo", "Destinations of the records of all namespaces."),
    _shared("ClusterParser", "cfbp", "Reads fields of the records of all namespaces."),
    _definition("Collector", "co", "Collectors that receive records from others."),
    _definition("Filter", "fbf", "Changes of the records of a namespace."),
    _definition("FluentBit", "fb", "Collectors on each node."),
    _definition("FluentBitConfig", "fbc", "Selection of the filters, parsers and outputs of a namespace."),
    _definition("MultilineParser", "fbmp", "Joins lines of a namespace into records."),
    _definition("Output", "fbo", "Destinations of the records of a namespace."),
    _definition("Parser", "fbp", "Reads fields of the records of a namespace."),
)
