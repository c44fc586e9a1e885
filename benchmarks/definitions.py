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
    chance = Random(number)  # noqa: S311 - the same each time, guards nothing
    parts = {"spec": _mapping(chance, depth=0), "status": _mapping(chance, depth=1)}
    schema = {"type": "object", "properties": parts}
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


def _mapping(chance: Random, *, depth: int) -> Object:
    """Lists and mappings above texts."""
    properties = {f"field{i}": _field(chance, i, depth) for i in range(5)}
    return {"type": "object", "description": _prose(chance), "properties": properties, "required": ["field0"]}


def _field(chance: Random, position: int, depth: int) -> Object:
    if depth < 2 and position % 3 == 0:
        items = _mapping(chance, depth=depth + 1)
        return {"type": "array", "maxItems": 16, "description": _prose(chance), "items": items}
    if depth < 2 and position % 3 == 1:
        return _mapping(chance, depth=depth + 1)
    pattern = "^[a-z0-9.-]*$"
    return {"type": "string", "maxLength": 253, "minLength": 1, "pattern": pattern, "description": _prose(chance)}


def _prose(chance: Random) -> str:
    """Some lines that say nothing, in paragraphs."""
    chosen = chance.choices(_WORDS, k=48)
    return "\n\n".join(" ".join(chosen[start : start + 24]).capitalize() + "." for start in (0, 24))
