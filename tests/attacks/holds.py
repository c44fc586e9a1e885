"""What holds the agent's event loop, and for how long, while it works on large objects and on many.

    python -m tests.attacks.holds [--seen]

The agent is a real process with a control plane of its own, watched from within (`watched_agent`). Times are CPU time.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator

import brotli
import orjson

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import config_map, managed_resource, secret
from kit.processes.agent import AgentProcess, configuration
from kit.world import Place

PREFIX = "HOLD "
_NAMESPACE = "holds"
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
    return orjson.dumps(config_map(f"{_NAMESPACE}/{name}", data))


def _work(place: Place, sort: str, change: str) -> None:
    """Write Secrets, and wait until their objects are applied."""
    checksums: dict[str, str] = {}
    for number, text in enumerate(SORTS[sort](change)):
        name = f"{SORTS[sort].__name__}-{number}"
        checksums[name] = _checksum(place, name)
        place.put(secret(name, {"o.yaml.br": brotli.compress(text, quality=5)}))
        place.put(managed_resource(name))
    for name, before in checksums.items():

        def is_applied(name: str = name, before: str = before) -> bool:
            return _checksum(place, name) not in {"", before}

        eventually(is_applied, f"{name} to be applied", seconds=_PATIENCE_SECONDS)


def _checksum(place: Place, name: str) -> str:
    status = (place.find("ManagedResource", name) or {}).get("status") or {}
    return str(status.get("secretsDataChecksum") or "") if place.statuses(name)[0] == "True" else ""


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
                    _work(Place(cluster, _NAMESPACE), sort, change)
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
