"""What the documentation names exists: links, make targets, flags, fields, metrics, annotations, reasons, files."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from campaign import command as campaign
from prometheus_client import REGISTRY, CollectorRegistry

from agent import managed_resource_metrics, responsibility
from agent.csr_approver import keys as csr_keys
from agent.csr_approver import metrics as csr_metrics
from agent.garbage_collector import metrics as garbage_metrics
from agent.health import keys as health_keys
from agent.managed_resource import conditions
from agent.managed_resource import keys as managed_resource_keys
from agent.network_policy import keys as policy_keys
from agent.node.critical_components import keys as node_keys
from agent.token_requestor import keys as token_keys
from agent.token_requestor import metrics as token_metrics
from config.fields import is_block, is_list, join, members, without_none
from config.load import decode
from config.schema import ResourceManagerConfiguration
from config.validation import check
from devcluster import __main__ as devcluster_program
from kube import metrics
from kubectl_mr import __main__ as kubectl_mr_program
from kubectl_mr import krew
from process import cache_metrics
from process.flags import Flags
from process.metrics import describe_process
from webhooks import metrics as webhook_metrics
from webhooks.__main__ import WebhookFlags
from webhooks.certificates import command as certificates
from webhooks.configurations import command as configurations

PROJECT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(PROJECT)): path.read_text()
    for path in sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")])
}
EVERYTHING = "\n".join(DOCUMENTS.values())
MANAGED_RESOURCES = DOCUMENTS["docs/managed-resources.md"]
OPERATIONS = DOCUMENTS["docs/operations.md"]

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")

EXAMPLES = ("service_traffic_distribution", "default_account")
"""What `docs/extending.md` makes."""

FLAGS_OF_OTHERS = {
    "--authorization-config",  # kube-apiserver
    "--build-arg",  # docker
    "--force-conflicts",  # kubectl
    "--from-file",
    "--manifest-url",  # krew
    "--output",  # docker, too
    "--previous",
    "--server-side",
    "--show-managed-fields",
    "--stdout",  # brotli
    "--target",  # docker
}


def prose(text: str) -> str:
    return FENCED.sub("", text)


def blocks(text: str, language: str) -> list[str]:
    return [body for found, body in FENCED.findall(text) if found == language]


def code(text: str) -> list[str]:
    """Whatever is set as code: inline, and the lines of blocks."""
    return INLINE.findall(prose(text)) + [line for _, body in FENCED.findall(text) for line in body.splitlines()]


# --- links


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", shown).replace(" ", "-"))
    return found


def links() -> Iterator[tuple[str, str]]:
    for document, text in DOCUMENTS.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
            yield document, target


@pytest.mark.parametrize(("document", "target"), sorted(set(links())))
def test_a_link_leads_somewhere(document: str, target: str) -> None:
    if target.startswith("https://"):
        return
    path, _, anchor = target.partition("#")
    file = (PROJECT / document).parent / path if path else PROJECT / document
    assert file.resolve().is_relative_to(PROJECT)
    assert file.exists()
    if anchor:
        assert anchor in anchors(file.read_text())


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {target.partition("#")[0] for document, target in links() if document == "README.md"}
    assert DOCUMENTS.keys() - {"README.md"} <= linked


def test_anchors_are_made_as_on_github() -> None:
    text = "## `a.b`, `c`\n### See [this](that.md) & *more*\n```\n# no heading\n```\n"
    assert anchors(text) == {"ab-c", "see-this--more"}


# --- commands and files


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = {match[1] for text in code(EVERYTHING) if (match := re.match(r"make ([a-z]+)", text.strip()))}
    assert {"demo", "test", "setup", "lint"} <= named <= targets


def own_flags() -> set[str]:
    return {"--help"} | {f"--{field.name.replace('_', '-')}" for field in fields(Flags)}


def flags_of_webhook_commands() -> set[str]:
    text = "".join(parser().format_help() for parser in (configurations.parser, certificates.parser))
    return {"--workers", *re.findall(r"--[a-z][a-z-]+", text)}


def flags_of_kubectl_mr() -> set[str]:
    params = [param for name in kubectl_mr_program.COMMANDS for param in kubectl_mr_program.load(name).params]
    flags = {flag for param in params for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")}
    return flags | {"--install-completion", "--show-completion"}


def flags_of_campaign() -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", campaign.parser().format_help()))


def flags_of_packing() -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", krew.parser().format_help()))


def flags_of_webhooks() -> set[str]:
    """Those that the agent does not have."""
    return {f"--{field.name.replace('_', '-')}" for field in fields(WebhookFlags)} - own_flags()


def test_flags_exist() -> None:
    commands = next(iter(devcluster_program._parser()._subparsers._group_actions)).choices.values()
    of_devcluster = {flag for command in commands for flag in re.findall(r"--[a-z][a-z-]+", command.format_help())}
    named = {flag for text in code(EVERYTHING) for flag in re.findall(r"(?<!\S)--[a-z][a-z-]+", text)}
    of_tools = of_devcluster | flags_of_campaign() | flags_of_packing()
    of_webhooks = flags_of_webhooks() | flags_of_webhook_commands()
    assert named <= own_flags() | of_webhooks | flags_of_kubectl_mr() | of_tools | FLAGS_OF_OTHERS
    assert named >= FLAGS_OF_OTHERS


def test_the_flags_of_the_webhooks_are_all_explained() -> None:
    explained = re.findall(r"^\| `(--[a-z-]+)", DOCUMENTS["docs/webhooks.md"], re.MULTILINE)
    assert set(explained) == flags_of_webhooks()


def test_the_flags_of_the_agent_are_all_explained() -> None:
    assert own_flags() == set(re.findall(r"^\| `(--[a-z-]+)", OPERATIONS, re.MULTILINE))


def test_files_and_directories_exist() -> None:
    tops = "agent|config|devcluster|docs|kube|manifests|process|tests|webhooks"
    named = {match[0] for text in code(EVERYTHING) for match in re.finditer(rf"(?<![\w./-])({tops})/[\w./-]*", text)}
    assert "manifests/crds" in named
    missing = {path for path in named if not (PROJECT / path).exists()}
    assert missing == {path for path in missing if any(example in path for example in EXAMPLES)}


# --- configuration


def test_examples_of_the_configuration_are_valid() -> None:
    examples = [block for block in blocks(EVERYTHING, "yaml") if "kind: ResourceManagerConfiguration" in block]
    assert len(examples) >= 3
    for example in examples:
        decoded = decode(example)
        check(decoded.config, conflicts=decoded.conflicts)
        assert decoded.warnings == ()


def test_examples_in_yaml_can_be_read() -> None:
    for block in blocks(EVERYTHING, "yaml"):
        assert all(isinstance(document, dict) for document in yaml.safe_load_all(block))


def configuration_paths(cls: type = ResourceManagerConfiguration, path: str = "") -> Iterator[str]:
    for member in members(cls):
        where, kind = join(path, member.name), without_none(member.kind)
        yield where
        if is_block(kind) and not is_list(kind):
            yield from configuration_paths(kind, where)


def test_fields_of_the_configuration_exist() -> None:
    known = set(configuration_paths())
    tops = "|".join({path for path in known if "." not in path})
    # The reference says what fields are called in errors, and their other names; modules look like fields.
    of_code = {"docs/configuration.md", "docs/extending.md", "docs/tour.md"}
    others = "\n".join(text for document, text in DOCUMENTS.items() if document not in of_code)
    named = {match[0] for text in code(others) for match in re.finditer(rf"(?<![\w./-])({tops})(\.\w+)+", text)}
    assert "controllers.resourceClass" in named
    assert named - known == set()


# --- metrics


def names_of_metrics() -> set[str]:
    registry = CollectorRegistry()
    describe_process(version="v0.0.0", configuration=b"", registry=registry)
    registered = REGISTRY._collector_to_names
    assert metrics.leader_election_master_status in registered
    assert csr_metrics.csr_approver_decisions_total in registered
    assert garbage_metrics.objects_total in registered
    assert managed_resource_metrics.managed_resources in registered
    assert token_metrics.requested_tokens in registered
    assert cache_metrics.caches_behind in registered
    assert webhook_metrics.request_metrics in registered
    families = [family for source in (REGISTRY, registry) for family in source.collect()]
    return {family.name + ("_total" if family.type == "counter" else "") for family in families}


def test_metrics_exist_and_are_all_explained() -> None:
    explained = set(re.findall(r"^\| `([a-z_]+)` \|", OPERATIONS.split("\n## Metrics\n")[1], re.MULTILINE))
    ours = {name for name in names_of_metrics() if not name.startswith(("process_", "python_"))}
    assert explained == ours


# --- ManagedResources


def constants(module: object, *, prefix: str) -> set[str]:
    values = {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    return {value for value in values if value.startswith(prefix)}


def test_annotations_labels_and_finalizers_exist_and_are_all_explained() -> None:
    group = managed_resource_keys.GROUP
    known = {
        key
        for module in (responsibility, managed_resource_keys, health_keys)
        for prefix in (f"{group}/", "reference.", "gardener.cloud/")
        for key in constants(module, prefix=prefix)
    } - {managed_resource_keys.API_VERSION}
    named = set(re.findall(r"(?:[a-z-]+\.)*gardener\.cloud/[a-z-]*", "\n".join(INLINE.findall(MANAGED_RESOURCES))))
    assert named == known


def test_reasons_of_conditions_are_all_explained() -> None:
    types = {conditions.APPLIED, conditions.HEALTHY, conditions.PROGRESSING, conditions.IN_PROGRESS}
    explained = set(re.findall(r"^\| `\w+` \| `(\w+)` \|", MANAGED_RESOURCES, re.MULTILINE))
    reasons = {
        value
        for name, value in vars(conditions).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    } - types
    assert reasons <= explained


# --- Events


def test_reasons_of_events_are_all_explained() -> None:
    section = OPERATIONS.partition("\n## Events\n")[2].partition("\n## ")[0]
    explained = set(INLINE.findall(section))
    reasons = {
        *(token_keys.INVALID, token_keys.FAILED, token_keys.KUBECONFIG_REMOVED),
        *(csr_keys.REQUEST_APPROVED, csr_keys.REQUEST_DENIED),
        *(policy_keys.INVALID_ANNOTATION, policy_keys.NAME_TAKEN, policy_keys.TAKEN_OVER),
        *(policy_keys.LABEL_TOO_LONG, policy_keys.GATEWAY_NOT_USABLE),
        *(node_keys.UNSCHEDULED, node_keys.UNREADY, node_keys.MISSING_DRIVERS, node_keys.READY),
        *("Reconciled", "LeaderElection"),
    }
    assert reasons <= explained


# --- code


@pytest.mark.parametrize(
    "text", [text for text in blocks(DOCUMENTS["docs/extending.md"], "python") if "import" in text]
)
def test_what_examples_for_contributors_import_exists(text: str) -> None:
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            module = importlib.import_module(statement.module)
            assert {alias.name for alias in statement.names} <= set(vars(module))
