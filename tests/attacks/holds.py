"""What holds the agent's event loop, and for how long, while it works on large objects and on many.

    python -m tests.attacks.holds [--seen]

The agent is a real process with a control plane of its own, watched from within (`watched_agent`). Times are CPU time.
"""

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

import brotli  # noqa: E402 - only now what follows can be found

from devcluster.cluster import Cluster  # noqa: E402
from kit.managed_resources import install_crd  # noqa: E402
from kit.processes.agent import AgentProcess, configuration  # noqa: E402
from kube.objects import Object, condition  # noqa: E402

PREFIX = "HOLD "
_NAMESPACE = "holds"
_PATH = f"/apis/resources.gardener.cloud/v1alpha1/namespaces/{_NAMESPACE}/managedresources"
_SECRETS = f"/api/v1/namespaces/{_NAMESPACE}/secrets"
_LARGE = 900 << 10
_PATIENCE_SECONDS = 240.0
_SHOWN = 3


class WatchedAgent(AgentProcess):
    program = "tests.attacks.watched_agent"


def fields(change: str) -> Iterator[bytes]:
    """Ten objects of 0.9 MiB, each with thousands of fields."""
    for number in range(10):
        yield _config_map(f"fields-{number}", {"change": change, **{f"k{n}": "x" * 64 for n in range(_LARGE // 75)}})


def strings(change: str) -> Iterator[bytes]:
    """Ten objects of 0.9 MiB, each with one string."""
    for number in range(10):
        yield _config_map(f"string-{number}", {"change": change, "k": "x" * _LARGE})


def bundle(change: str) -> Iterator[bytes]:
    """One ManagedResource with 5,000 small objects."""
    yield b"\n---\n".join(_config_map(f"small-{number}", {"change": change, "k": "x" * 99}) for number in range(5000))


SORTS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "ten objects of 0.9 MiB with 12,000 fields": fields,
    "ten objects of 0.9 MiB with one string": strings,
    "a bundle of 5,000 small objects": bundle,
}


def _config_map(name: str, data: dict[str, str]) -> bytes:
    meta = {"name": name, "namespace": _NAMESPACE}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}).encode()


def _work(cluster: Cluster, sort: str, change: str) -> None:
    """Write Secrets, and wait until their objects are applied."""
    checksums: dict[str, str] = {}
    for number, text in enumerate(SORTS[sort](change)):
        name = f"{SORTS[sort].__name__}-{number}"
        data = {"o.yaml.br": base64.b64encode(brotli.compress(text, quality=5)).decode()}
        checksums[name] = ""
        if change == "first":
            meta = {"name": name, "namespace": _NAMESPACE}
            cluster.api.create(_SECRETS, {"metadata": meta, "data": data})
            spec = {"secretRefs": [{"name": name}]}
            group = "resources.gardener.cloud/v1alpha1"
            cluster.api.create(_PATH, {"apiVersion": group, "kind": "ManagedResource", "metadata": meta, "spec": spec})
        else:
            checksums[name] = _checksum(cluster.api.get(f"{_PATH}/{name}"))
            cluster.api.patch(f"{_SECRETS}/{name}", {"data": data})
    until = time.monotonic() + _PATIENCE_SECONDS
    for name, before in checksums.items():
        while _checksum(cluster.api.get(f"{_PATH}/{name}")) in {"", before}:
            if time.monotonic() > until:
                raise TimeoutError(f"{name} is not applied")
            time.sleep(0.2)


def _checksum(managed_resource: Object) -> str:
    applied = (condition(managed_resource, "ResourcesApplied") or {}).get("status") == "True"
    return str((managed_resource.get("status") or {}).get("secretsDataChecksum") or "") if applied else ""


def _row(what: str, log: str, *, seen: bool) -> str:
    found = [json.loads(line.removeprefix(PREFIX)) for line in log.splitlines() if line.startswith(PREFIX)]
    longest = {key: 1000 * max((each[key] for each in found), default=0) for key in ("loop", "process")}
    row = f"| {what} | {longest['loop']:.0f} | {longest['process']:.0f} |"
    if seen:
        for each in sorted(found, key=lambda each: -float(each["process"]))[:_SHOWN]:
            row += f"\n  {1000 * each['loop']:.0f} of {1000 * each['process']:.0f}: " + "\n    ".join(each["seen"])
    return row


def main(arguments: list[str]) -> int:
    seen = "--seen" in arguments
    with Cluster() as cluster:
        install_crd(cluster)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        print("| Work | longest hold by the loop's thread, ms | by all threads, ms |\n|---|---|---|", flush=True)

        def agent() -> WatchedAgent:
            return WatchedAgent(configuration(_NAMESPACE), kubeconfig=cluster.kubeconfig)

        with agent().start() as first:
            first.wait_until_leading()
            for sort in SORTS:
                for change in "first", "second":
                    begin = len(first.log_file.read_text())
                    _work(cluster, sort, change)
                    time.sleep(2)
                    made = "made" if change == "first" else "changed"
                    print(_row(f"{sort}, {made}", first.log_file.read_text()[begin:], seen=seen), flush=True)
        with agent().start() as second:
            second.wait_until_leading()
            time.sleep(20)
            print(_row("a restart beside all of them", second.log_file.read_text(), seen=seen), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
