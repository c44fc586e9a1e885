"""`kubectl mr encode`: manifests into compressed Secrets, for git or `kubectl apply -f -`."""

from pathlib import Path
from typing import Annotated

import typer

from kube.objects import key
from kubectl_mr import files, output, packing
from kubectl_mr.output import Form
from kubectl_mr.session import run_offline
from kubectl_mr.style import counted, size


def command(
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files, directories, kustomizations; - is standard input.")
    ],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the Secret.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Its namespace.")] = "",
    immutable: Annotated[
        bool, typer.Option("--immutable", help="Make it immutable, with the hash of its content in its name.")
    ] = False,
    form: Annotated[Form, typer.Option("--output", "-o", help="The form of output.")] = Form.YAML,
) -> None:
    """What does not fit into a Secret of 1 MiB becomes several, with numbers in their names.

    Needs no cluster. Documents are read first, so a typo is found here and not by the agent.
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
