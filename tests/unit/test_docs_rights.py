"""The tables of permissions in the documents are the roles of the manifests."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
DOCUMENTS = ("operations", "tokens", "nodes", "kubelet-certificates", "network-policies")
ALL_VERBS = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
AGENT = "gardener-resource-manager"

Right = tuple[str, str]
"""A resource, possibly with its subresource, and a verb."""


def documented(document: str) -> Iterator[Right]:
    columns: list[str] = []
    for line in (PROJECT / "docs" / f"{document}.md").read_text().splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        columns = columns or cells
        resources, verbs = (
            next((i for i, name in enumerate(columns) if name.startswith(start)), None) for start in "RV"
        )
        if cells is columns or resources is None or verbs is None or columns[verbs] != "Verbs":
            continue
        named = set(re.findall(r"\b[a-z]+\b", cells[verbs]))
        of_row = ALL_VERBS - named if "all but" in cells[verbs] else named
        for resource in re.findall(r"`([a-z/]+)[a-z0-9.]*`", cells[resources]):
            yield from ((resource, verb) for verb in of_row - {"all", "but", "and"})


def granted(*files: str) -> Iterator[Right]:
    for file in files:
        for obj in yaml.safe_load_all((PROJECT / "tests" / "golden" / f"{file}.yaml").read_text()):
            if obj["kind"] in {"Role", "ClusterRole"} and obj["metadata"]["name"] in {
                AGENT,
                f"{AGENT}-leader-election",
            }:
                for rule in obj["rules"]:
                    yield from ((resource, verb) for resource in rule["resources"] for verb in rule["verbs"])


DOCUMENTED = {document: set(documented(document)) for document in DOCUMENTS}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_permission_that_a_document_names_is_in_a_role(document: str) -> None:
    assert len(DOCUMENTED[document]) > 7
    assert DOCUMENTED[document] - set(granted("runtime", "target", "target-cluster")) == set()


@pytest.mark.parametrize("file", ["runtime", "target", "target-cluster"])
def test_the_documents_name_each_permission_of_the_agent(file: str) -> None:
    every = set().union(*DOCUMENTED.values())
    assert set(granted(file)) - every == set()
