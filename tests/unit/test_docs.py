"""What the documentation names exists: links, make targets, flags, fields, metrics, annotations, reasons, files."""

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY, CollectorRegistry

import limits_table
import rights_table
from agent.gardenlet import images
from agent.programs import PROGRAMS
from agent.resource_manager.csr_approver.rules import REQUEST_APPROVED, REQUEST_DENIED
from agent.resource_manager.managed_resource.history import HISTORY_FAILED, NOT_KEPT
from agent.resource_manager.managed_resource.report import APPLIED_WITH_WARNINGS
from agent.resource_manager.node.critical_components.reconcile import READY
from agent.resource_manager.node.critical_components.rules import MISSING_DRIVERS, UNREADY, UNSCHEDULED
from agent.shared.network_policy.reconcile import (
    GATEWAY_NOT_USABLE,
    INVALID_ANNOTATION,
    LABEL_TOO_LONG,
    LIMIT_EXCEEDED,
    NAME_TAKEN,
    TAKEN_OVER,
)
from agent.shared.token_requestor.reconcile import FAILED, INVALID, KUBECONFIG_REMOVED
from campaign import command as campaign
from config import controller_manager, gardenlet, local_provider, scheduler, webhooks
from config.controller_manager.schema import ControllerManagerConfiguration
from config.gardenlet.schema import GardenletConfiguration
from config.local_provider.schema import LocalProviderConfiguration
from config.resource_manager import COMPONENT
from config.resource_manager.schema import ResourceManagerConfiguration
from config.scheduler.schema import SchedulerConfiguration
from config.webhooks.schema import GardenWebhooksConfiguration
from devcluster import __main__ as devcluster_program
from extension.configuration import ExtensionConfiguration, component
from fuzz import garden_kinds
from gardener import conditions, keys
from gardener.distribution import DISTRIBUTION
from gardener.managed_resource import conditions as applied
from kit.monitoring_files import COMPUTED, REGISTERED
from kit.packages import ALL
from kubectl.garden import __main__ as kubectl_gardener_program
from kubectl.mr import __main__ as kubectl_mr_program
from kubectl.seed_sets import __main__ as kubectl_mss_program
from process.configuration.blocks import ElectingConfiguration
from process.configuration.component import Component, check
from process.configuration.fields import is_block, is_list, join, members, without_none
from process.metrics import describe_process
from process.program import parse
from release import plugins
from webhooks.certificates import command as certificates
from webhooks.configurations import command as configurations

PROJECT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(PROJECT)): path.read_text()
    for path in sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")])
}
EVERYTHING = "\n".join(DOCUMENTS.values())
MANAGED_RESOURCES = "".join(text for name, text in DOCUMENTS.items() if name.startswith("docs/managed-resource"))
OPERATIONS = DOCUMENTS["docs/operations.md"]

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")

EXAMPLES = ("service_traffic_distribution", "default_account", "agent/scheduler")
"""What `docs/extending.md` makes."""

FLAGS_OF_OTHERS = {
    *("--certificate-identity-regexp", "--certificate-oidc-issuer"),  # cosign
    # kube-apiserver
    *("--admission-control-config-file", "--authorization-config", "--authorization-webhook-config-file"),
    *("--proxy-client-cert-file", "--requestheader-allowed-names", "--requestheader-client-ca-file"),
    *("--build-arg", "--output", "--target"),  # docker
    *(
        "--clusterrole",
        "--field-selector",
        "--force-conflicts",
        "--from-file",
        "--from-file",
        "--from-literal",
        "--ignore-not-found",
        "--overwrite",
        "--subresource",
        "--patch",
        "--previous",
        "--replicas",
        "--server-side",
        "--serviceaccount",
        "--show-managed-fields",
        "--type",
    ),  # kubectl
    "--require-hashes",  # pip
    *("--manifest-url", "--stdout", "--timestamp"),  # krew, brotli, buildah
    *("--create-namespace", "--reset-then-reuse-values", "--set", "--set-file"),  # helm
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
        for target in re.findall(r"(?:\]\(|<img src=\")([^)\s\"]+)", prose(text)):
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


# --- limits


def test_the_table_of_limits_is_that_of_the_code() -> None:
    assert limits_table.FILE.read_text() == limits_table.document(), "python -m tests.limits_table writes it"


def test_the_tables_of_rights_are_those_of_the_code() -> None:
    assert rights_table.FILE.read_text() == rights_table.document(), "python -m tests.rights_table writes it"


# --- commands and files


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = {match[1] for text in code(EVERYTHING) if (match := re.match(r"make ([a-z]+)", text.strip()))}
    assert {"demo", "test", "setup", "lint"} <= named <= targets


def own_flags() -> set[str]:
    given = parse(("--config=FILE",), PROGRAMS, version="v1.2.3").flag_lines()
    return {line.removeprefix("FLAG: ").partition("=")[0] for line in given}


def flags_in(*parsers: argparse.ArgumentParser) -> set[str]:
    return {flag for parser in parsers for flag in re.findall(r"--[a-z][a-z-]+", parser.format_help())}


def flags_of_the_plugins() -> set[str]:
    plugins = (kubectl_mr_program.PLUGIN, kubectl_gardener_program.PLUGIN, kubectl_mss_program.PLUGIN)
    params = [param for plugin in plugins for name in plugin.commands for param in plugin.load(name).params]
    flags = {flag for param in params for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")}
    return flags | {"--install-completion", "--show-completion"}


def test_flags_exist() -> None:
    actions = devcluster_program._parser()._actions
    (subcommands,) = (each for each in actions if isinstance(each, argparse._SubParsersAction))
    parsers = [of.parser() for of in (configurations, certificates, campaign, images, plugins, garden_kinds)]
    named = {flag for text in code(EVERYTHING) for flag in re.findall(r"(?<!\S)--[a-z][a-z-]+", text)}
    of_tools = flags_in(*parsers, *subcommands.choices.values()) | flags_of_the_plugins()
    assert named <= own_flags() | of_tools | FLAGS_OF_OTHERS
    assert named >= FLAGS_OF_OTHERS


def test_the_forms_of_output_of_kubectl_mr_are_those_of_its_commands() -> None:
    params = {name: kubectl_mr_program.load(name).params for name in kubectl_mr_program.COMMANDS}
    without = {name for name, found in params.items() if not any("--output" in param.opts for param in found)}
    assert without == {"create", "delete", "logs", "reconcile", "suspend", "resume", "rollback", "wait"}, (
        "they print no objects"
    )
    headers = {name for name, found in params.items() if any("--no-headers" in param.secondary_opts for param in found)}
    assert headers == {"get"}


def test_the_flags_of_the_agent_are_all_explained() -> None:
    assert own_flags() == set(re.findall(r"^\| `(--[a-z-]+)", OPERATIONS, re.MULTILINE))


def test_files_and_directories_exist() -> None:
    tops = "|".join((*ALL, "docs", "manifests", "tests"))
    named = {match[0] for text in code(EVERYTHING) for match in re.finditer(rf"(?<![\w./-])({tops})/[\w./-]*", text)}
    assert "manifests/crds" in named
    missing = {path for path in named if not (PROJECT / path).exists()}
    assert missing == {path for path in missing if any(example in path for example in EXAMPLES)}


def sources() -> dict[str, str]:
    """What programs, tests and manifests consist of, by path."""
    files = [path for directory in (*_CODE, "tests", "manifests") for path in (PROJECT / directory).rglob("*.*")]
    files += [PROJECT / name for name in ("Makefile", "Dockerfile", "pyproject.toml")]
    texts = {".py", ".yaml", ".toml", ""}
    own = Path(__file__)
    return {str(path.relative_to(PROJECT)): path.read_text() for path in files if path.suffix in texts and path != own}


def test_modules_that_are_named_without_their_directory_exist() -> None:
    known = {path.rpartition("/")[2] for path in sources()}
    named = set(re.findall(r"`([\w-]+\.py)`", prose(EVERYTHING)))
    assert len(named) > 30
    assert named - known == set()


def test_what_is_reported_of_the_kit_and_of_fixtures_exists() -> None:
    testing = DOCUMENTS["docs/testing.md"]
    kit, fixtures = (testing.partition(f"\n## {name}\n")[2].partition("\n## ")[0] for name in ("The kit", "Fixtures"))
    modules = {name for row in re.findall(r"^- (`[^:]*):", kit, re.MULTILINE) for name in INLINE.findall(row)}
    paths = {path.stem for path in (PROJECT / "tests/kit").iterdir()}
    assert len(modules) > 5
    assert modules - paths == set()
    plugin = (PROJECT / "devcluster/testing/pytest_plugin.py").read_text()
    named = set(re.findall(r"^- `(\w+)`:", fixtures, re.MULTILINE))
    assert named
    assert {name for name in named if f"def {name}(" not in plugin} == set()


def test_variables_of_the_environment_exist() -> None:
    text = "\n".join(sources().values())
    named = {name for each in code(EVERYTHING) for name in re.findall(r"(?<![\w<${])([A-Z]+_[A-Z_]+)(?![\w>])", each)}
    assert {"CAMPAIGN_SEED", "CRASH_SWEEP", "KUBEBUILDER_ASSETS", "TARGET_KUBECONFIG"} <= named
    assert {name for name in named if name not in text and not name.startswith("OTEL_")} == set()


def test_log_messages_that_are_quoted_exist() -> None:
    parts = re.compile(r"\"\s*\n\s*f?\"")
    text = "\n".join(parts.sub("", text) for path, text in sources().items() if path.endswith(".py"))
    quoted = {
        each for each in INLINE.findall(prose(EVERYTHING)) if re.fullmatch(r"[A-Z][a-z]+( [A-Za-z,;]+){2,}", each)
    }
    assert len(quoted) > 5
    assert {each for each in quoted if each not in text} == set()


def test_controllers_that_are_named_exist() -> None:
    text = "\n".join(text for path, text in sources().items() if path.startswith(("agent/", "kube/")))
    named = set(re.findall(r"controllers? `([a-z-]+)`", prose(EVERYTHING)))
    assert {"csr-approver", "networkpolicy", "token-requestor"} <= named
    assert {name for name in named if f'"{name}"' not in text} == set()


# --- configuration

OF_OTHERS: dict[str, Component[Any]] = {
    each.kind: each
    for each in (
        *(of.COMPONENT for of in (controller_manager, gardenlet, local_provider, scheduler, webhooks)),
        component("gardener-extension-greeter"),
    )
}


def test_examples_of_the_configuration_are_valid() -> None:
    fields_of_files = {path for path in all_configuration_paths() if "." not in path} | {"apiVersion", "kind"}
    examples = [example for block in blocks(EVERYTHING, "yaml") for example in yaml.safe_load_all(block)]
    examples = [example for example in examples if example.keys() <= fields_of_files]
    assert len(examples) >= 12
    for example in examples:
        component = OF_OTHERS.get(example.get("kind", ""), COMPONENT)
        if issubclass(component.configuration(), ElectingConfiguration):
            example["leaderElection"] = {"resourceNamespace": "garden"} | example.get("leaderElection", {})
        decoded = component.decode(yaml.safe_dump(example))
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


def all_configuration_paths() -> set[str]:
    return {
        *configuration_paths(),
        *configuration_paths(ControllerManagerConfiguration),
        *configuration_paths(ExtensionConfiguration),
        *configuration_paths(GardenletConfiguration),
        *configuration_paths(LocalProviderConfiguration),
        *configuration_paths(SchedulerConfiguration),
        *configuration_paths(GardenWebhooksConfiguration),
    }


def test_fields_of_the_configuration_exist() -> None:
    known = all_configuration_paths()
    tops = "|".join({path for path in known if "." not in path})
    # The reference reports what fields are called in errors, and their other names; modules look like fields.
    of_code = {"docs/configuration.md", "docs/extending.md", "docs/tour.md"}
    others = "\n".join(text for document, text in DOCUMENTS.items() if document not in of_code)
    named = {match[0] for text in code(others) for match in re.finditer(rf"(?<![\w./-])({tops})(\.\w+)+", text)}
    assert "controllers.resourceClass" in named
    groups = {"monitoring.coreos.com", "resources.gardener.cloud"}
    amounts = {"resources.capacity.shoots"}
    files = {"images.yaml"}
    assert named - known - groups - amounts - files == {"server.address"}, "an attribute of OpenTelemetry"


# --- metrics


def names_of_metrics() -> set[str]:
    registry = CollectorRegistry()
    describe_process(version="v0.0.0", configuration=b"", prefix=COMPONENT.metrics_prefix, registry=registry)
    assert set(REGISTERED) <= REGISTRY._collector_to_names.keys()
    families = [family for source in (REGISTRY, registry, *COMPUTED) for family in source.collect()]
    return {family.name + ("_total" if family.type == "counter" else "") for family in families}


def test_metrics_exist_and_are_all_explained() -> None:
    explained = set(re.findall(r"^\| `([a-z_]+)` \|", DOCUMENTS["docs/metrics.md"], re.MULTILINE))
    ours = {name for name in names_of_metrics() if not name.startswith(("process_", "python_"))}
    assert explained == ours


# --- ManagedResources


def constants(module: object) -> set[str]:
    return {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


def test_annotations_labels_and_finalizers_exist_and_are_all_explained() -> None:
    known = {key for key in constants(keys) if "gardener.cloud/" in key}
    text = "\n".join(DOCUMENTS.values())
    unexplained = {key for key in known if key not in text and f"`{key.partition('/')[2]}`" not in text}
    assert not unexplained
    named = set(re.findall(r"(?:[a-z-]+\.)*gardener\.cloud/[a-z-]*", "\n".join(INLINE.findall(MANAGED_RESOURCES))))
    assert named <= known
    assert len(named) > 15


def test_reasons_of_conditions_are_all_explained() -> None:
    types = {getattr(conditions, f"RESOURCES_{name}") for name in ("APPLIED", "HEALTHY", "PROGRESSING")}
    types.add(conditions.READY)
    explained = set(re.findall(r"^- `\w+` `(\w+)`: ", MANAGED_RESOURCES, re.MULTILINE))
    reasons = {
        value
        for name, value in vars(applied).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }
    assert reasons - types - {conditions.IN_PROGRESS} <= explained


# --- Events


def test_reasons_of_events_are_all_explained() -> None:
    section = OPERATIONS.partition("\n## Events\n")[2].partition("\n## ")[0]
    explained = set(INLINE.findall(section))
    reasons = {
        *(INVALID, FAILED, KUBECONFIG_REMOVED),
        *(REQUEST_APPROVED, REQUEST_DENIED),
        *(INVALID_ANNOTATION, NAME_TAKEN, TAKEN_OVER),
        *(LABEL_TOO_LONG, GATEWAY_NOT_USABLE, LIMIT_EXCEEDED),
        *(UNSCHEDULED, UNREADY, MISSING_DRIVERS, READY),
        *("Reconciled", "TakenOver", "LeaderElection", APPLIED_WITH_WARNINGS, HISTORY_FAILED, NOT_KEPT),
    }
    assert reasons <= explained


# --- what is installed

_WRITTEN = (*("*.md", "Makefile", "Dockerfile", "docs/*.md"), *("manifests/**/*.yaml", "*.toml", "benchmarks/*.md"))
_CODE = (*ALL, "tests/fuzz")
_INSTALLS = re.compile(
    r"\b(?:pip[\d.]*(?: --python \S+)? (?:install|wheel|download)|pipx (?:install|run)|uvx|uv tool (?:install|run))\b([^`\n&|;)]*)"
)
_WITH_VALUE = {"-r", "--requirement", "-w", "--wheel-dir", "--only-binary", "--python"}
_OURS = re.compile(r"(\.|\./\S*|(\S*/)?[\w*.-]+\.whl)(\[[\w,-]+\])?")


def foreign_packages(text: str) -> list[str]:
    """What is installed by name: the owner of that name on the index of the day is trusted to run code."""
    found = []
    for arguments in _INSTALLS.findall(text.replace("\\\n", " ")):
        words = iter(re.sub(r"[\"']", "", arguments).split())
        for word in words:
            if word.startswith("#"):
                break
            if word in _WITH_VALUE:
                next(words, None)
            elif not word.startswith("-") and not _OURS.fullmatch(word):
                found.append(word)
    return found


def test_nothing_is_installed_but_the_checkout_a_wheel_and_what_is_locked() -> None:
    files = {path for pattern in _WRITTEN for path in PROJECT.glob(pattern)}
    files |= {path for directory in _CODE for path in (PROJECT / directory).rglob("*.py")}
    assert len(files) > 100
    assert {path.name: found for path in files if (found := foreign_packages(path.read_text()))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip install 'resource-manager[kubectl]'", ["resource-manager[kubectl]"]),
        ("pip install --quiet atheris", ["atheris"]),
        ("`pip install -r requirements.txt rich`", ["rich"]),
        ("pipx run x", ["x"]),
        ("uvx pip-audit", ["pip-audit"]),
        ("pip install \\\n  x", ["x"]),
        ("pip install '.[kubectl]' && other", []),
        ("pip install --require-hashes -r requirements.txt", []),
        ("pip install 'dist/a-0.1.0-py3-none-any.whl[kubectl]'", []),
        ("/build/bin/pip --python /app/bin/python install --no-index /wheel/*.whl", []),
    ],
)
def test_what_is_installed_by_name_is_found(text: str, found: list[str]) -> None:
    assert foreign_packages(text) == found


def test_the_package_has_one_name() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    wheel = f"{DISTRIBUTION.replace('-', '_')}-{project['version']}-py3-none-any.whl"
    assert set(re.findall(r"[\w.-]+\.whl", EVERYTHING)) == {wheel}
    extras = project["optional-dependencies"]
    assert set(re.findall(r"(?:\.|\.whl)\[(\w+)\]'", EVERYTHING)) <= extras.keys()
