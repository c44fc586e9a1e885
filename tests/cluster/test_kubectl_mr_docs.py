"""Each command in docs/kubectl-mr.md does what the page shows; with UPDATE_DOCS=1 the page is rewritten.

A line `…` on the page stands for any lines. What differs is rewritten in full: leave lines out again by hand.

The commands are run in their order, as a reader would type them, with names of namespaces that are as long as those of
the page, so that columns stay. Before some of them something happens that the page states in words.
"""

import contextlib
import os
import random
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from devcluster.cluster import Cluster
from gardener.keys import HISTORY_LIMIT
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import config_map, managed_resource, secret
from kit.processes.agent import AgentProcess, configuration
from kit.world import Place
from kube.errors import NotFound
from kube.objects import is_deleting
from kube.resources import NAMESPACES
from kubectl.mr.__main__ import app

PAGE = Path(__file__).parents[2] / "docs" / "kubectl-mr.md"
_BLOCK = re.compile(r"^```\n\$ (kubectl mr [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^```yaml\n# ([a-z]+\.yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

EXIT_CODES = {
    "kubectl mr check -n garden": 1,
    "kubectl mr diff shop -n garden": 1,
    "kubectl mr diff shop -n garden -f next.yaml": 1,
    "kubectl mr wait shop -n garden --for deleted --timeout 3s": 1,
}

_VOLATILE = (
    (re.compile(r"^◎ .*\n", re.MULTILINE), ""),  # what is shown while something goes on
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r"\b(\d+[smhd])+( \(x\d+\))?(?![\w.])"), "AGE"),
    (re.compile(r"\bv1\.\d+\.\d+\S*"), "VERSION"),
    (re.compile(r"storefront-[a-z0-9]{6,10}(-[a-z0-9]{5})?"), "storefront-HASH"),
    (re.compile(r"(objects\.yaml\.br: )\S+"), r"\1DATA"),
    (re.compile(r"shop-[0-9a-f]{8}"), "shop-HASH"),
    (re.compile(r"[\d.]+ (B|KiB)\b"), "SIZE"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"^.*(webhooks of|CA bundle of|no webhooks).*\n(  ► .*\n)?", re.MULTILINE), ""),  # of other tests
    (re.compile(r"(?<=\S) +"), " "),
)


class Reader:
    """A user who follows the page from top to bottom."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        # No random name of a pod has these letters.
        suffix = random.choices("aeiou013", k=8)
        self.names = {"garden": "g" + "".join(suffix[:5]), "shop": "s" + "".join(suffix[5:])}
        self.garden, self.shop = (Place(cluster, name) for name in self.names.values())

    def own(self, text: str) -> str:
        """A text of the page, for the namespaces of this test."""
        text = re.sub(r"\bgarden\b", self.names["garden"], text)
        return re.sub(
            r"(?<=namespace: )shop\b|(?<=-n )shop\b|(?<=Namespace\nmetadata:\n  name: )shop\b", self.names["shop"], text
        )

    def of_page(self, text: str) -> str:
        for shown, own in self.names.items():
            text = text.replace(own, shown)
        return text

    def run(self, command: str) -> Result:
        arguments = shlex.split(self.own(command))[2:]
        environment = {"KUBECONFIG": str(self.cluster.kubeconfig), "NO_COLOR": "1", "COLUMNS": "80"}
        return CliRunner().invoke(app, arguments, prog_name="kubectl mr", env=environment)

    # --- what the page states in words

    def before(self, command: str) -> None:
        events: dict[str, Callable[[], None]] = {
            "kubectl mr get -n garden --status failed": self._break_something,
            "kubectl mr diff shop -n garden": self._change_by_hand,
            "kubectl mr delete shop -n garden --no-wait": self._hold_an_object,
            "kubectl mr wait shop -n garden --for deleted --timeout 3s": self._until_the_held_object_is_deleted,
            "kubectl mr create banner -n garden -f banner.yaml --wait": self._create_by_hand,
            "kubectl mr events shop -n garden": self._until_repair_is_reported,
            "kubectl mr create shop -n garden -f next.yaml --update --wait": self._keep_versions,
            "kubectl mr history shop -n garden": lambda: self._until_kept(2),
        }
        if command in events:
            events[command]()

    def _break_something(self) -> None:
        text = "kind: ConfigMap\nmetadata:\n  name: [unclosed\n"
        self.garden.create(secret("broken", {"objects.yaml": text}))
        self.garden.create(managed_resource("broken"))
        eventually(lambda: self.garden.statuses("broken")[0] == "False", "a condition")
        # Of others, too, there are Events: that the agent leads is one.
        eventually(
            lambda: "broken" in {event["involvedObject"]["name"] for event in self.garden.list("Event")},
            "an Event about it",
        )

    def _change_by_hand(self) -> None:
        eventually(
            lambda: self.garden.condition("shop", "ResourcesApplied").get("reason") == "ManagedResourceIgnored",
            "the agent to have seen the suspension",
        )
        self.shop.patch("Deployment", "storefront", {"spec": {"replicas": 1}})
        self.shop.patch("Secret", "payment", {"data": {"token": "c3RvbGVu"}})
        self.shop.delete("ConfigMap", "storefront")

    def _create_by_hand(self) -> None:
        self.garden.create(config_map("banner", {"text": "Hello"}))

    def _keep_versions(self) -> None:
        self.garden.patch("ManagedResource", "shop", {"metadata": {"annotations": {HISTORY_LIMIT: "10"}}})
        self._until_kept(1)

    def _until_kept(self, number: int) -> None:
        eventually(lambda: self.garden.find("Secret", f"shop-history-{number}"), f"revision {number}")

    def _until_repair_is_reported(self) -> None:
        def is_reported() -> bool:
            events = self.garden.list("Event")
            return any(each["reason"] == "Reconciled" and each["involvedObject"]["name"] == "shop" for each in events)

        eventually(is_reported, "the Event Reconciled")

    def _hold_an_object(self) -> None:
        self.shop.patch("ConfigMap", "storefront", {"metadata": {"finalizers": ["example.com/hold"]}})

    def _until_the_held_object_is_deleted(self) -> None:
        eventually(lambda: is_deleting(self.shop.get("ConfigMap", "storefront")), "its deletion to begin")

    def release(self) -> None:
        with contextlib.suppress(NotFound):
            self.shop.patch("ConfigMap", "storefront", {"metadata": {"finalizers": None}})
        for name in ("shop", "broken", "banner"):
            self.garden.remove("ManagedResource", name)
        eventually(lambda: not self.garden.list("ManagedResource"), "the agent to clean up")


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """With an agent that looks after the two namespaces of the page, and the files of the page at hand."""
    install_crd(cluster)
    reader = Reader(cluster)
    garden, shop = reader.names["garden"], reader.names["shop"]
    cluster.api.create(NAMESPACES.path(), {"metadata": {"name": garden}})
    monkeypatch.chdir(tmp_path)
    for name, text in _FILE.findall(PAGE.read_text()):
        (tmp_path / name).write_text(reader.own(text))
    config = configuration(
        garden,
        leaderElection={"leaseDuration": "60s", "renewDeadline": "40s", "retryPeriod": "2s"},
        sourceClientConnection={"namespaces": [garden]},
        targetClientConnection={"namespaces": [garden, shop, "default"]},
    )
    with AgentProcess(config, kubeconfig=cluster.kubeconfig).start() as agent:
        agent.wait_until_ready()
        try:
            yield reader
        finally:
            reader.release()
            cluster.api.delete(NAMESPACES.path(name=garden))


def stable(text: str) -> str:
    """Without what is another one each time."""
    text = f"{text.rstrip()}\n"
    for pattern, replacement in _VOLATILE:
        text = pattern.sub(replacement, text)
    return text.strip()


def is_shown(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts = re.split(r"^…\n", f"{stable(shown)}\n", flags=re.MULTILINE)
    return re.fullmatch(r"(?:.*\n)*".join(map(re.escape, parts)), f"{stable(printed)}\n") is not None


def test_the_page_shows_what_commands_print(reader: Reader) -> None:
    page = PAGE.read_text()
    differing: list[str] = []

    def repeated(block: re.Match[str]) -> str:
        command, shown = block[1], block[2]
        reader.before(command)
        result = reader.run(command)
        assert result.exit_code == EXIT_CODES.get(command, 0), (command, result.output, result.exception)
        printed = reader.of_page("\n".join(line.rstrip() for line in result.output.splitlines()))
        if is_shown(shown, printed):
            return block[0]
        differing.append(f"$ {command}\n--- page\n{stable(shown)}\n--- printed\n{stable(printed)}")
        return f"```\n$ {command}\n{printed.rstrip()}\n```"

    rewritten = _BLOCK.sub(repeated, page)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(rewritten)
    else:
        assert not differing, "\n\n".join(differing)
