"""`python -m webhooks garden validate FILE...`: check manifests offline, as the API server of a garden would."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gardener.api.expressions import rules_are_checked
from gardener.managed_resource.decode import split
from kube.files import read_bounded
from kube.lists import NestedListsError, is_list, items_of
from kube.objects import Object, group_of, key, text
from kube.validation import FieldError
from kube.visible_text import LINES, printable
from kube.yaml import MAX_NODES, Budget, DialectError, load
from webhooks.garden.common.findings import Finding
from webhooks.garden.offline import GROUPS, NotServed, Report, report

PROGRAM = "python -m webhooks garden"
STANDARD_INPUT = "-"
LARGEST_FILE = 16 << 20
_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
FINE, FINDINGS, NOT_LOOKED_AT = 0, 1, 2
"""Exit codes."""
_NEEDS_A_CLUSTER = (
    "values that are filled in from other objects, changes of stored objects, and size limits: they need a cluster"
)
_NEEDS_CEL = "rules of CEL: they need the Python package cel-expr-python"


_NOTHING = Report(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Result for one document of a file.

    Attributes:
        place: `<file>:<number of the document, from 1>`, in a List with the index of the item.
        problem: reason why it could not be checked.
        is_foreign: the object belongs to another API, and is skipped.
    """

    place: str
    object: Object = field(default_factory=dict)
    report: Report = _NOTHING
    problem: str = ""
    is_foreign: bool = False

    @property
    def title(self) -> str:
        kind = text(self.object.get("kind"))
        return f'{kind} "{key(self.object)}"' if kind else ""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=PROGRAM, description="Commands for the garden API.", allow_abbrev=False)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    about = "Check manifests for errors and warnings of the API server of a garden, offline."
    validate = commands.add_parser(
        "validate",
        help=about,
        description=about,
        epilog="Exit codes: 0 no findings, 1 findings, 2 an object could not be checked.",
        allow_abbrev=False,
    )
    validate.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML or JSON file, directory of such files, or - for standard input"
    )
    validate.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="output format (default: %(default)s)"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    given = parser().parse_args(arguments)
    documents = [document for name in given.files for file in _files(name) for document in _documents(file)]
    if given.output == "json":
        print(json.dumps(_as_json(documents), indent=2))
    else:
        for document in documents:
            print(printable(_as_text(document), keep=LINES))
        for what in (*_rules_left_out(documents), *_left_out()):
            print(f"Not checked: {what}.", file=sys.stderr)
    if not documents:
        print("Error: the input has no documents", file=sys.stderr)
        return NOT_LOOKED_AT
    return _code(documents)


def _code(documents: Sequence[Document]) -> int:
    if any(document.problem for document in documents) or all(document.is_foreign for document in documents):
        return NOT_LOOKED_AT
    return FINDINGS if any(document.report.findings for document in documents) else FINE


def _rules_left_out(documents: Sequence[Document]) -> list[str]:
    """Rules left out, each once for a kind, in their order."""
    each = ((text(document.object.get("kind")), left) for document in documents for left in document.report.left_out)
    return list(dict.fromkeys(f"{kind}: {left}" for kind, left in each))


def _left_out() -> list[str]:
    return [_NEEDS_A_CLUSTER] if rules_are_checked() else [_NEEDS_A_CLUSTER, _NEEDS_CEL]


# --- looking


def _files(name: str) -> Iterator[str]:
    """Files to check; in a directory those that kubectl would apply, by name."""
    path = Path(name)
    if name == STANDARD_INPUT or not path.is_dir():
        yield name
        return
    yield from (str(file) for file in sorted(path.iterdir()) if file.suffix in _SUFFIXES)


def _documents(name: str) -> Iterator[Document]:
    shown = "standard input" if name == STANDARD_INPUT else name
    try:
        content = _read(name)
    except OSError as error:
        yield Document(place=shown, problem=f"cannot read it: {error.strerror}")
        return
    except ValueError:
        yield Document(place=shown, problem=f"it is larger than {LARGEST_FILE} bytes")
        return
    for number, (line, document) in enumerate(split(content), start=1):
        place = f"{shown}:{number}"
        try:
            if isinstance(document, DialectError):
                raise document
            value = load(document, budget=Budget(MAX_NODES), first_line=line)
        except DialectError as error:
            yield Document(place=place, problem=str(error))
            continue
        if value is not None:
            yield from _looked_at(place, value)


def _read(name: str) -> bytes:
    if name != STANDARD_INPUT:
        return read_bounded(Path(name), most=LARGEST_FILE)
    content = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError
    return content


def _looked_at(place: str, value: Any) -> Iterator[Document]:
    if not isinstance(value, dict) or not text(value.get("kind")) or not text(value.get("apiVersion")):
        yield Document(place=place, problem="it is not an object; set apiVersion and kind")
    elif is_list(value):
        try:
            for index, item in enumerate(items_of(value)):
                yield from _looked_at(f"{place}.items[{index}]", item)
        except NestedListsError as error:
            yield Document(place=place, problem=str(error))
    elif group_of(value["apiVersion"]) not in GROUPS:
        yield Document(place=place, object=value, is_foreign=True)
    else:
        yield _reported(place, value)


def _reported(place: str, obj: Object) -> Document:
    try:
        return Document(place=place, object=obj, report=report(obj))
    except NotServed as error:
        return Document(place=place, object=obj, problem=str(error))


# --- output


def _as_text(document: Document) -> str:
    return "\n".join(_lines(document))


def _lines(document: Document) -> Iterator[str]:
    place, title = document.place, document.title
    if document.problem:
        yield f"{place}: Error: {document.problem}"
    elif document.is_foreign:
        yield f"{place}: {title} does not belong to the garden API; skipped"
    elif document.report.findings:
        yield f"{place}: {title} is invalid:"
        yield from (f"* {finding}" for finding in document.report.findings)
    else:
        yield f"{place}: {title} is fine{_as_far_as(document.report)}"
    yield from (f"{place}: Warning: {warning}" for warning in document.report.warnings)


def _as_far_as(about: Report) -> str:
    left = len(about.left_out)
    return f", but {left} {'rule' if left == 1 else 'rules'} could not be checked without a cluster" if left else ""


def _as_json(documents: Sequence[Document]) -> Object:
    return {"documents": [_document_as_json(each) for each in documents], "notChecked": _left_out()}


def _document_as_json(document: Document) -> Object:
    where = key(document.object)
    return {
        "document": document.place,
        "apiVersion": text(document.object.get("apiVersion")),
        "kind": text(document.object.get("kind")),
        "namespace": where.namespace,
        "name": where.name,
        "result": _result(document),
        "error": document.problem,
        "findings": [_finding_as_json(finding) for finding in document.report.findings],
        "warnings": list(document.report.warnings),
        "notChecked": [{"rule": left.rule, "needs": left.needs} for left in document.report.left_out],
    }


def _result(document: Document) -> str:
    if document.problem or document.is_foreign:
        return "NotChecked"
    return "Invalid" if document.report.findings else "Valid"


def _finding_as_json(finding: Finding) -> Object:
    """Format a finding like a cause of a Status."""
    if isinstance(finding, FieldError):
        return {"field": finding.path, "reason": finding.kind.reason, "message": finding.body}
    return {"field": finding.path, "reason": "Forbidden", "message": finding.message}
