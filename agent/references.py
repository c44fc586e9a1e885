"""`python -m agent.references FILE...`: manifests in, stamped manifests out; see `--help`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from gardener.managed_resource.decode import split
from gardener.references import stamp
from kube.objects import Object
from kube.visible_text import printable
from kube.yaml import Budget, DialectError, Dumper, load

_VALUES = 1_000_000
_DESCRIPTION = """\
Read manifests, prepare them for the garbage collector, and write them as YAML to standard output:

  - ConfigMaps and Secrets that another manifest references, and that do not set `immutable`,
    become immutable, get the label of the garbage collector, and a name that ends with the
    hash of their content;
  - references to them are updated in Pods, Deployments, StatefulSets, DaemonSets, Jobs, CronJobs,
    ManagedResources and Prometheuses;
  - these objects get annotations that protect all ConfigMaps and Secrets that they reference.

Related manifests must be passed together. Other objects are written unchanged.
"""


class _InputError(Exception):
    """Error with a message for the user."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m agent.references",
        description=_DESCRIPTION,
        epilog="example: python -m agent.references manifests/*.yaml | kubectl apply -f -",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON file; - for standard input")
    try:
        stamped = stamp([obj for file in parser.parse_args(arguments).files for obj in _read(file)])
    except (_InputError, ValueError) as error:
        print(printable(f"error: {error}"), file=sys.stderr)
        return 1
    yaml.dump_all(stamped, sys.stdout, Dumper=Dumper, sort_keys=False, width=1000, explicit_start=True)
    return 0


def _read(file: str) -> Iterator[Object]:
    name = "standard input" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise _InputError(f"{name}: {error.strerror}") from error
    budget = Budget(_VALUES)
    for line, chunk in split(data):
        try:
            if isinstance(chunk, DialectError):
                raise chunk
            document = load(chunk, budget=budget, first_line=line)
        except DialectError as error:
            raise _InputError(f"{name}: the document in line {line}: {error}") from error
        if document is None:
            continue
        if not _is_manifest(document):
            raise _InputError(f"{name}: the document in line {line} lacks apiVersion, kind or metadata")
        yield document


def _is_manifest(document: object) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("apiVersion"), str)
        and isinstance(document.get("kind"), str)
        and isinstance(document.get("metadata") or {}, dict)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
