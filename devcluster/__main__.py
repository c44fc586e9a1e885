"""The command line: `python -m devcluster demo`, or `up`, `exec -- CMD`, `down`."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from devcluster import assets
from devcluster.cluster import Cluster
from devcluster.demo import story
from devcluster.errors import DevclusterError
from kube.errors import KubeError
from process.printable import LINES, printable

_EXAMPLES = """
examples:
  python -m devcluster up --nodes 3
  python -m devcluster exec -- kubectl get nodes
  export KUBECONFIG="$(python -m devcluster kubeconfig)"
  python -m devcluster down
  python -m devcluster demo

The first `up` builds the control plane, which needs Go and takes about 5 minutes, unless KUBEBUILDER_ASSETS names a
directory with etcd and kube-apiserver. Clusters belong to this checkout: another checkout has its own.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (DevclusterError, KubeError) as error:
        print(printable(f"error: {error}", keep=LINES), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _up(options: argparse.Namespace) -> int:
    assets.find_or_build()
    was_up = Cluster.running(options.name) is not None
    # What is built is not part of the time that a start takes.
    start = time.monotonic()
    cluster = Cluster(name=options.name, nodes=options.nodes, owner=0).start()
    how = "is up already" if was_up else f"came up after {time.monotonic() - start:.1f} s"
    print(f"the cluster {options.name!r} {how}, at {cluster.url}")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    was_up = Cluster.running(options.name) is not None
    Cluster(name=options.name).stop()
    print(f"the cluster {options.name!r} is {'down' if was_up else 'not up'}")
    return 0


def _status(options: argparse.Namespace) -> int:
    cluster = Cluster.running(options.name)
    if cluster is None:
        print(f"the cluster {options.name!r} is not up")
        return 1
    print(f"the cluster {options.name!r} is up at {cluster.url}")
    print(f"state, logs and audit log: {cluster.state}")
    for name, component in cluster.component_states().items():
        ended = component["exit"] is not None
        print(f"  {name:24} {'ended with ' + str(component['exit']) if ended else 'runs as ' + str(component['pid'])}")
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    print(_running(options.name).kubeconfig)
    return 0


def _exec(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise DevclusterError("name the command to run: python -m devcluster exec -- kubectl get nodes")
    environment = {**os.environ, "KUBECONFIG": str(_running(options.name).kubeconfig)}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the user's own words, without a shell
    except OSError as error:
        raise DevclusterError(f"{command[0]}: {error.strerror}") from error


def _build(_: argparse.Namespace) -> int:
    print(assets.find_or_build().apiserver.parent)
    return 0


def _demo(options: argparse.Namespace) -> int:
    story.run(name=options.name, once=options.once)
    return 0


def _running(name: str) -> Cluster:
    cluster = Cluster.running(name)
    if cluster is None:
        raise DevclusterError(f"the cluster {name!r} is not up; start it by: python -m devcluster up --name {name}")
    return cluster


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster",
        description="A real Kubernetes control plane on this computer, with nodes that are played.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str, *, cluster: str = "default") -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--name", default=cluster, type=_name, help="which cluster (default: %(default)s)")
        added.set_defaults(run=run)
        return added

    up = command("up", _up, "start a cluster that runs in the background until `down`")
    up.add_argument("--nodes", type=_node_count, default=1, help="how many nodes (default: %(default)s)")
    command("down", _down, "stop a cluster and remove all that it holds")
    command("status", _status, "say whether a cluster is up (exit code 0) or not (1), and what it runs")
    command("kubeconfig", _kubeconfig, "print the path of a cluster's kubeconfig")
    run = command("exec", _exec, "run a command with KUBECONFIG set to a cluster's")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command and its arguments")
    command("build", _build, "find or build the programs, and print their directory")
    demo = command("demo", _demo, "show the agent at work in a cluster of its own, until Ctrl-C", cluster="demo")
    demo.add_argument("--once", action="store_true", help="end by itself when everything was shown")
    return parser


def _name(text: str) -> str:
    if not (text.replace("-", "").isalnum() and text.isascii() and len(text) <= 30):
        raise argparse.ArgumentTypeError(f"{text!r} is not up to 30 letters, digits and dashes")
    return text


def _node_count(text: str) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
