"""`kubectl mr decode`: the manifests in a Secret, or in a file that holds one, as they were written."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from gardener.managed_resource.decode import COMPRESSED_SUFFIX, decode_secrets, decompress
from kube.errors import NotFound
from kube.objects import Key
from kube.resources import SECRETS
from kube.visible_text import printable
from kube.yaml import DialectError
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import files
from kubectl.mr.revisions import contents_of
from kubectl.output import Form
from kubectl.session import Session, Where, run, run_offline

_LONGEST = 64 << 20

Values = Mapping[str, bytes]


@click.command
@click.argument("what", metavar="SECRET|FILE", help="Name of a Secret, path of a file, or - for standard input.")
@options.form
@options.all_of(options.cluster)
def command(*, what: str, form: Form | None, **cluster: Any) -> None:
    """Prints the original text, including comments; with -o, prints the parsed objects.

    A file is a compressed stream (*.br), or a manifest of a Secret. For a Secret of a revision, prints the manifests of
    that revision. Secret values are not masked.
    """
    path = Path(what)
    if path == files.STANDARD_INPUT or path.is_file():
        run_offline(lambda: _print(values_in(files.read([path])), form))
        return

    async def work(session: Session) -> int:
        try:
            secret = await session.source.client.get(SECRETS, Key(session.namespace, what))
            return _print(contents_of(secret), form)
        except NotFound:
            raise UserError(
                f"there is neither a file nor a Secret {session.namespace}/{what}",
                hint="the Secrets of a ManagedResource: kubectl mr get -o wide",
            ) from None

    run(Where(program=click.get_current_context().obj, **cluster), work)


def values_in(texts: list[files.Text]) -> list[tuple[Key, Values]]:
    """Data of the Secrets in files, or the file itself if it is compressed."""
    found: list[tuple[Key, Values]] = []
    for text in texts:
        if text.name.endswith(COMPRESSED_SUFFIX):
            found.append((Key("", text.name), {text.name: text.content}))
            continue
        secrets = [obj for obj in files.objects_in([text]) if obj.get("kind") == "Secret"]
        if not secrets:
            raise UserError(f"{text.name} holds no Secret", hint="decode reads manifests of Secrets, and files *.br")
        found += [each for secret in secrets for each in contents_of(secret)]
    return found


def _print(found: list[tuple[Key, Values]], form: Form | None) -> int:
    if form is None:
        for text in texts_of(found):
            output.write(output.as_written(text))
        return 0
    decoded = decode_secrets(found)
    output.show_objects([item.object for item in decoded.objects], form)
    for error in decoded.errors:
        output.failed(str(error))
    return 1 if decoded.errors else 0


def texts_of(found: list[tuple[Key, Values]]) -> Iterator[str]:
    """Text of each value, below a comment with its origin.

    Raises: UserError: a value can't be decompressed.
    """
    for name, data in found:
        for data_key in sorted(data):
            try:
                text = _text(data_key, data[data_key])
            except DialectError as error:
                raise UserError(f"{name}, {data_key}: {error}") from error
            yield f"# {printable(f'{name}, {data_key}')}\n"
            yield text if text.lstrip().startswith("---") else f"---\n{text}"
            if not text.endswith("\n"):
                yield "\n"


def _text(data_key: str, value: bytes) -> str:
    content = decompress(value, limit=_LONGEST) if data_key.endswith(COMPRESSED_SUFFIX) else value
    return content.decode(errors="replace")
