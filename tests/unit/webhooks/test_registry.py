"""The registry of webhooks, the table of the documentation that is made of it, and the example of how to add one."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from config.resource_manager.webhooks import Webhooks
from config.webhooks.schema import Webhooks as GardenWebhooks
from gardener import keys
from process.configuration.fields import members
from webhooks.garden.registry import WEBHOOKS as GARDEN
from webhooks.registry import RESOURCE_MANAGER
from webhooks.rules.registration import Instance, Mode, Rule, Selector

PROJECT = Path(__file__).parents[3]
DOCUMENT = PROJECT / "docs" / "webhooks.md"
BEGIN = "<!-- webhooks: begin (written by `UPDATE_DOCS=1 pytest tests/unit/webhooks/test_registry.py`) -->"
END = "<!-- webhooks: end -->"
_MOST_NAMED = 5
WEBHOOKS = (*RESOURCE_MANAGER, *GARDEN)
SCRIPT = """
import asyncio, base64, json, sys
from config.resource_manager import decode
from webhooks.configurations import command
from webhooks.state import SharedListers
from webhooks.routes import enabled, routes

class Nowhere:
    client = None

config = decode(open(sys.argv[1]).read()).config
endpoints = enabled(routes(config, SharedListers(Nowhere(), Nowhere())))
service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}
request = {"uid": "u", "operation": "CREATE", "object": service, "namespace": "n"}
review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
((path, endpoint),) = endpoints.items()
answer = json.loads(asyncio.run(endpoint(json.dumps(review).encode(), "application/json")))["response"]
print(path, answer["allowed"], base64.b64decode(answer["patch"]).decode())
sys.exit(command.main(["--config", sys.argv[1], "--inject-ca-from", "a/b"]))
"""
CONFIG = """
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {resourceNamespace: garden}
webhooks: {serviceTrafficDistribution: {enabled: true}}
"""


def test_every_block_of_the_configuration_belongs_to_a_webhook() -> None:
    blocks = {member.attribute: member.kind for section in (Webhooks, GardenWebhooks) for member in members(section)}
    assert {webhook.name.replace("-", "_"): webhook.settings for webhook in WEBHOOKS} == blocks


def test_every_module_of_the_package_is_registered() -> None:
    handlers = PROJECT / "webhooks" / "handlers"
    modules = {path.stem for path in handlers.iterdir() if not path.name.startswith("__")}
    modules |= {"garden", "seed_authorizer"}
    assert {webhook.name.replace("-", "_") for webhook in WEBHOOKS} == modules


def table() -> Iterator[str]:
    yield "| Webhook | Path | Requests |\n"
    yield "|---|---|---|\n"
    for (name, validating), group in groupby(WEBHOOKS, key=lambda webhook: (webhook.name, webhook.validating)):
        webhooks = list(group)
        path = f"`{webhooks[0].path}`{f' and {len(webhooks) - 1} more' if webhooks[1:] else ''}"
        entries = [entry for webhook in webhooks for entry in webhook.entries]
        policies = "".join(f"; `{each}`" for each in sorted({entry.failure_policy for entry in entries} - {"Fail"}))
        requested = _requested([rule for entry in entries for rule in entry.rules]) or "authorization"
        yield f"| {name}{', validating' if validating else ''} | {path} | {requested}{policies} |\n"


def _requested(rules: Sequence[Rule]) -> str:
    found: dict[str, dict[str, dict[str, None]]] = {}
    for rule in rules:
        groups = found.setdefault(", ".join(rule.operations), {})
        groups.setdefault(rule.group, {}).update(dict.fromkeys(rule.resources))
    return "; ".join(f"{operations} of {_named(groups)}" for operations, groups in found.items())


def _named(groups: dict[str, dict[str, None]]) -> str:
    others = {group: resources for group, resources in groups.items() if group}
    total = sum(map(len, others.values()))
    if total > _MOST_NAMED:
        shown = [f"{total} resources ({', '.join(f'`{group}`' for group in others)})"]
    else:
        shown = [f"{', '.join(resources)} (`{group}`)" for group, resources in others.items()]
    return ", ".join([*groups.get("", ()), *shown])


def test_the_documentation_lists_the_webhooks() -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = f"{before}{BEGIN}\n\n{''.join(table())}\n{END}{after}"
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(expected)
    assert text == expected, "run this test with UPDATE_DOCS=1"


def test_the_documentation_names_labels_that_decide_about_objects() -> None:
    text = (PROJECT / "docs" / "webhooks-mutating.md").read_text().partition("\n## ")[0]
    documented = {
        name: (f"{prefix}.{keys.GROUP}/skip", bool(managed))
        for name, prefix, managed in re.findall(r"^\| ([a-z-]+) \| `([a-z-]+)` \|( yes)? \|$", text, re.MULTILINE)
    }
    found = {}
    for webhook in WEBHOOKS:
        for entry in webhook.entries:
            target = Instance(mode=Mode.TARGET)
            selector = entry.objects if isinstance(entry.objects, Selector) else entry.objects(target)
            excluding = [key for key, operator, _ in selector.expressions if operator == "DoesNotExist"]
            if skip := [key for key in excluding if key.endswith("/skip")]:
                found[webhook.name] = (skip[0], (keys.MANAGED_BY, "gardener") in selector.labels)
    assert documented == found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Of the product, of which nothing but what the example changes is copied."""
    for package in PROJECT.iterdir():
        if package.name in {"config", "webhooks"}:
            shutil.copytree(package, tmp_path / package.name)
        elif (package / "__init__.py").exists():
            (tmp_path / package.name).symlink_to(package)
    return tmp_path


def test_the_example_of_the_documentation_is_served_and_registered(copy: Path) -> None:
    section = (PROJECT / "docs" / "extending.md").read_text().split("## A controller")[0]
    setting, module = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    schema = copy / "config" / "resource_manager" / "webhooks.py"
    schema.write_text(schema.read_text() + "".join(f"    {each}\n" for each in setting.splitlines()))
    (copy / "webhooks" / "handlers" / "service_traffic_distribution.py").write_text(module)
    line = "service_traffic_distribution.WEBHOOK,"
    assert f"`{line}`" in section
    registry = copy / "webhooks" / "registry.py"
    text = registry.read_text().replace("import (\n", "import (\n    service_traffic_distribution,\n", 1)
    registry.write_text(text.replace("] = (\n", f"] = (\n    {line}\n", 1))
    config = copy / "config.yaml"
    config.write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(config)], cwd=copy, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    first, _, configurations = done.stdout.partition("\n")
    patch = '[{"op":"add","path":"/spec/trafficDistribution","value":"PreferClose"}]'
    assert first == f"/webhooks/service-traffic-distribution True {patch}"
    assert "name: service-traffic-distribution.resources.gardener.cloud" in configurations
    assert "failurePolicy: Ignore" in configurations
