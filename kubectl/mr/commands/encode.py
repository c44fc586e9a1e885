"""`kubectl mr encode`: manifests into compressed Secrets, for git or `kubectl apply -f -`."""

from collections.abc import Sequence
from pathlib import Path

import click

from kube.objects import key
from kubectl import options, output
from kubectl.mr import files, packing, parameters
from kubectl.output import Form
from kubectl.session import run_offline
from kubectl.style import counted, size


@click.command
@click.argument(
    "paths",
    type=options.FILE,
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="Files, directories or kustomizations; - for standard input.",
)
@click.option("--name", required=True, metavar="NAME", help="Name of the Secret.")
@click.option("--namespace", "-n", metavar="NAME", default="", help="Namespace of the Secret.")
@click.option("--immutable", is_flag=True, help="Make the Secret immutable, with a hash of the content in its name.")
@parameters.form_of_objects
def command(*, paths: Sequence[Path], name: str, namespace: str, immutable: bool, form: Form) -> None:
    """Splits content that exceeds a Secret of 1 MiB into several Secrets, with numbers in their names.

    Works without a cluster. Parses the documents first, to find errors before the agent does.
    """

    def work() -> None:
        packed = packing.pack(packing.documents_in(files.read(paths)))
        made = packing.secrets(name, namespace, packed, immutable=immutable)
        if form is Form.JSON:
            output.write("".join(output.as_json(secret) for secret in made))
        else:
            output.write("".join(f"---\n{output.as_yaml([secret])}" for secret in made))
        for secret, content in zip(made, packed, strict=True):
            sizes = f"{size(content.unpacked_bytes)} are {size(len(content.value))} compressed"
            output.done(f"Secret {key(secret)}: {counted(content.documents, 'document')}, {sizes}")

    run_offline(work)
