"""The command line: `python -m devcluster demo`, or `up`, `exec -- CMD`, `down`."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence

from devcluster.cluster import Cluster
from devcluster.demo import stage
from devcluster.demo.garden import GardenDemo
from devcluster.demo.resource_manager import ResourceManagerDemo
from devcluster.setup import Setup, changing, standings
from kube.errors import KubeError
from kube.names import dns_label_problems
from kube.visible_text import LINES, printable
from localprocesses import assets, helm_program, versions
from localprocesses.etcdutl_program import ETCDUTL
from localprocesses.local import LocalProcessError

_EXAMPLES = """
examples:
  python -m devcluster up --nodes 3
  python -m devcluster up --garden --demo-data --name garden
  python -m devcluster up --garden --seed meadow --name garden
  python -m devcluster kubeconfig --name garden.meadow
  python -m devcluster exec -- kubectl get nodes
  export KUBECONFIG="$(python -m devcluster kubeconfig)"
  python -m devcluster down
  python -m devcluster up --name old --kubernetes 1.28
  python -m devcluster demo

The first `up` builds the control plane, which requires Go and takes about 5 minutes, unless KUBEBUILDER_ASSETS is
set to a directory with etcd and kube-apiserver. Each checkout has its own clusters.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (LocalProcessError, KubeError) as error:
        print(printable(f"error: {error}", keep=LINES), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _up(options: argparse.Namespace) -> int:
    for name in ("demo_data", "no_authorizer", "seed"):
        if getattr(options, name) and not options.garden:
            raise LocalProcessError(f"--{name.replace('_', '-')} needs --garden")
    if (options.in_garden or options.shoots) and not options.seed:
        raise LocalProcessError("--in-garden and --shoots need --seed")
    if options.in_garden and options.shoots:
        raise LocalProcessError("Shoots need a seed with a cluster of its own: leave out --in-garden")
    nodes = options.nodes if options.nodes is not None else int(not options.garden)
    seed = {options.seed: {"in_garden": options.in_garden, "shoots": options.shoots}} if options.seed else {}
    wanted = Setup(
        release=options.kubernetes,
        nodes=nodes,
        garden=options.garden,
        demo_data=options.demo_data,
        authorizes=not options.no_authorizer,
        seeds=seed,
    )
    with changing(options.name):
        return _ensure(options.name, wanted)


def _ensure(name: str, wanted: Setup) -> int:
    was_up = Cluster.running(name) is not None
    release, setup = wanted.release, Setup.of(name).with_more(wanted) if was_up else wanted
    programs = assets.find_or_build(setup.release)
    if setup.seeds:
        assets.demand_controllers(programs)
    # A build does not count as part of the start.
    start = time.monotonic()
    cluster = Cluster(name=name, nodes=setup.nodes, owner=0, release=setup.release)
    try:
        cluster.start()
        found = cluster.api.get("/version")["gitVersion"]
        if release and found != f"v{release}":
            raise LocalProcessError(
                f"the cluster {name!r} is up already, with Kubernetes {found}; take it down first, or choose "
                "another --name"
            )
        setup.note(cluster)
        setup.ensure(cluster)
    except KeyboardInterrupt:
        if not was_up:
            cluster.stop()
        raise
    how = "is up already" if was_up else f"came up after {time.monotonic() - start:.1f} s"
    print(f"the cluster {name!r} {how}, with Kubernetes {found}, at {cluster.url}")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    was_up = Cluster.running(options.name) is not None
    Cluster(name=options.name).stop()
    print(f"the cluster {options.name!r} is {'down' if was_up else 'not up'}")
    return 0


def _status(options: argparse.Namespace) -> int:
    problems = [problem for name in Setup.of(options.name).clusters(options.name) for problem in _shown(name)]
    if not problems:
        return 0
    print(f"the cluster {options.name!r} does not work completely:")
    for each in problems:
        print(f"  {each}")
    print(f"to repair it: python -m devcluster up --name {options.name}")
    return 1


def _shown(name: str) -> list[str]:
    """Print the state of a cluster. Return its problems."""
    cluster = Cluster.running(name)
    if cluster is None:
        print(f"the cluster {name!r} is not up")
        return [f"the cluster {name!r} is not up"]
    print(f"the cluster {name!r} is up at {cluster.url}")
    print(f"state, logs and audit log: {cluster.state}")
    found = standings(cluster)
    for each in found:
        print(f"  {each.program:27} {each.problem or f'runs as {each.pid}'}")
    return [f"{each.program} of {name!r} {each.problem}" for each in found if each.problem]


def _kubeconfig(options: argparse.Namespace) -> int:
    print(_running(options.name).kubeconfig)
    return 0


def _exec(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise LocalProcessError("name the command to run: python -m devcluster exec -- kubectl get nodes")
    environment = {**os.environ, "KUBECONFIG": str(_running(options.name).kubeconfig)}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the user's own words, without a shell
    except OSError as error:
        raise LocalProcessError(f"{command[0]}: {error.strerror}") from error


def _build(options: argparse.Namespace) -> int:
    print(assets.find_or_build(options.kubernetes).apiserver.parent)
    if options.kubernetes is None and shutil.which("go"):
        helm_program.find_or_build()
        ETCDUTL.find_or_build()
    return 0


def _demo(options: argparse.Namespace) -> int:
    demo, name = (GardenDemo, "demo-garden") if options.garden else (ResourceManagerDemo, "demo")
    stage.run(demo, name=options.name or name, once=options.once)
    return 0


def _running(name: str) -> Cluster:
    cluster = Cluster.running(name)
    if cluster is None:
        raise LocalProcessError(f"the cluster {name!r} is not up; start it by: python -m devcluster up --name {name}")
    return cluster


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m devcluster",
        description="Run a real Kubernetes control plane locally, with simulated nodes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str, *, cluster: str = "default") -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--name", type=_name, help=f"name of the cluster (default: {cluster})")
        added.set_defaults(run=run, name="default")
        return added

    up = command("up", _up, "start a cluster in the background, until `down`, or repair one")
    up.add_argument("--nodes", type=_node_count, help="number of nodes (default: 1, for a garden 0)")
    up.add_argument("--garden", action="store_true", help="serve the garden API, with its webhooks and roles")
    up.add_argument(
        "--demo-data", action="store_true", help="with --garden: create a cloud profile, extensions and a project"
    )
    up.add_argument("--no-authorizer", action="store_true", help="with --garden: authorize gardenlets by RBAC only")
    seed = "with --garden: add controllers, demo data, and a Seed with its gardenlet in the cluster GARDEN.SEED"
    up.add_argument("--seed", type=_seed_name, metavar="SEED", help=seed)
    up.add_argument("--in-garden", action="store_true", help="with --seed: use the garden cluster as the seed")
    up.add_argument("--shoots", action="store_true", help="with --seed: create clusters for Shoots, as local processes")
    command("down", _down, "stop a cluster and delete its data")
    command("status", _status, "show whether a cluster and its seeds are up with all programs (exit code 0) or not (1)")
    command("kubeconfig", _kubeconfig, "print the path of a cluster's kubeconfig")
    run = command("exec", _exec, "run a command with KUBECONFIG set to the kubeconfig of a cluster")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="command with arguments")
    build = command("build", _build, "find or build the programs, and print their directory")
    for each in (up, build):
        each.add_argument(
            "--kubernetes",
            "--kubernetes-version",
            type=_release,
            metavar="VERSION",
            help=f"one of {', '.join(versions.PATCHES)} (default: KUBEBUILDER_ASSETS, or the last of these)",
        )
    about = "demonstrate the agent in a separate cluster, until Ctrl-C"
    demo = command("demo", _demo, about, cluster="demo, with --garden demo-garden")
    demo.set_defaults(name=None)
    demo.add_argument("--garden", action="store_true", help="demonstrate the garden API instead")
    demo.add_argument("--once", action="store_true", help="exit at the end of the demo")
    return parser


def _name(text: str) -> str:
    garden, dot, seed = text.partition(".")
    if not (garden.replace("-", "").isalnum() and text.isascii() and len(garden) <= 30):
        raise argparse.ArgumentTypeError(f"{text!r} is not up to 30 letters, digits and dashes")
    return f"{garden}.{_seed_name(seed)}" if dot else text


def _seed_name(text: str) -> str:
    # It is part of the paths of sockets, which have to be short.
    if dns_label_problems(text) or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not up to 18 lower case letters, digits and dashes")
    return text


def _release(text: str) -> str:
    try:
        return versions.release(text)
    except LocalProcessError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _node_count(text: str) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
