"""A bundle of CustomResourceDefinitions, made up, in size and shape like those of big projects: more than 1 MB of
YAML in a dozen documents of deep schemas with long descriptions.
"""

from random import Random

import yaml

from kube.objects import Object

_WORDS = tuple(
    """route backend filter match header listener gateway policy condition parent reference weight timeout protocol
    certificate hostname port namespace selector status observed generation accepted resolved conflict rule""".split()  # noqa: SIM905 - reads better
)


def bundle(count: int, *, group: str) -> tuple[list[Object], str]:
    """The definitions, and the YAML text of all."""
    definitions = [_definition(number, group) for number in range(count)]
    return definitions, yaml.dump_all(definitions, Dumper=yaml.CSafeDumper, width=100, default_flow_style=False)


def _definition(number: int, group: str) -> Object:
    kind = f"Kind{number}"
    plural = f"kind{number}s"
    schema = {"type": "object", "properties": {"spec": _mapping(number, depth=0), "status": _mapping(number, depth=1)}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for name in ("v1", "v1beta1")
            ],
        },
    }


def _mapping(seed: int, *, depth: int) -> Object:
    """Two levels of lists of mappings above texts and numbers."""
    properties = {f"field{i}": _field(seed + i, depth) for i in range(5)}
    return {"type": "object", "description": _prose(seed), "properties": properties, "required": ["field0"]}


def _field(seed: int, depth: int) -> Object:
    if depth < 2 and seed % 3 == 0:
        return {
            "type": "array",
            "maxItems": 16,
            "description": _prose(seed),
            "items": _mapping(seed + 1, depth=depth + 1),
        }
    if depth < 2 and seed % 3 == 1:
        return _mapping(seed + 1, depth=depth + 1)
    return {"type": "string", "maxLength": 253, "minLength": 1, "pattern": "^[a-z0-9.-]*$", "description": _prose(seed)}


def _prose(seed: int) -> str:
    """Some lines that say nothing, in paragraphs."""
    chosen = Random(seed).choices(_WORDS, k=70)  # noqa: S311 - the same each time, guards nothing
    return "\n\n".join(" ".join(chosen[start : start + 35]).capitalize() + "." for start in (0, 35))
