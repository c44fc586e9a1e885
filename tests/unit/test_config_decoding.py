"""Reading YAML and JSON into the typed configuration: types, unknown fields, aliases, bad documents."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any, get_args

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from config.resource_manager import COMPONENT, decode
from config.resource_manager.schema import ResourceManagerConfiguration
from config.resource_manager.webhooks import Toleration
from process.configuration.component import check, validate
from process.configuration.errors import ConfigError
from process.configuration.fields import Duration, as_object, is_block, is_list, is_map, members, without_none

API_VERSION, KIND = COMPONENT.api_version, COMPONENT.kind
PREFIX = "error decoding config: "


def decode_error(text: bytes | str) -> str:
    with pytest.raises(ConfigError) as caught:
        decode(text)
    assert str(caught.value).startswith(PREFIX)
    return str(caught.value).removeprefix(PREFIX)


def test_json_is_read_as_well_as_yaml() -> None:
    document = {"apiVersion": API_VERSION, "kind": KIND, "logLevel": "debug", "controllers": {"clusterID": "é\n"}}
    config = decode(json.dumps(document, indent="\t")).config
    assert (config.log_level, config.controllers.cluster_id) == ("debug", "é\n")


@pytest.mark.parametrize(
    ("version", "kind"),
    [(API_VERSION, None), (None, KIND), ("v1", "ConfigMap"), (API_VERSION, "Other"), ("other/v1", KIND), (1, KIND), ([], {})],
)  # fmt: skip
def test_another_version_or_kind_is_refused(version: object, kind: object) -> None:
    error = decode_error(json.dumps({"apiVersion": version, "kind": kind}))
    assert error == f"expected apiVersion {API_VERSION} and kind {KIND}, found {version} and {kind}"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("gracefulShutdownTimeout: 1m0.5s", "graceful_shutdown_timeout", 60.5),
        ("controllers: {nodeAgentReconciliationDelay: {minDelay: -1.5h}}",
         "controllers.node_agent_reconciliation_delay.min_delay", -5400.0),
        # whole numbers may be written as floats, and floats as whole numbers
        ("sourceClientConnection: {qps: 7}", "source_client_connection.qps", 7.0),
        ("sourceClientConnection: {burst: 9.0}", "source_client_connection.burst", 9),
        # dates and the like stay strings
        ("controllers: {clusterID: 2001-01-01}", "controllers.cluster_id", "2001-01-01"),
        ("controllers: {resourceClass: =}", "controllers.resource_class", "="),
        # null elements are empty as in Go
        ("webhooks: {systemComponentsConfig: {nodeSelector: {a: null}}}",
         "webhooks.system_components_config.node_selector", {"a": ""}),
        ("webhooks: {systemComponentsConfig: {podTolerations: [null]}}",
         "webhooks.system_components_config.pod_tolerations", (Toleration(),)),
        # an empty single namespace means all
        ("sourceClientConnection: {namespace: ''}", "source_client_connection.namespaces", ()),
    ],
)  # fmt: skip
def test_a_value_is_read(text: str, field: str, value: object) -> None:
    assert attrgetter(field)(decode(text).config) == value


def test_selectors_and_tolerations_can_be_had_as_plain_objects() -> None:
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]}
    tolerations = [{"operator": "Exists"}, {"key": "k", "effect": "NoExecute", "tolerationSeconds": 0}]
    config = decode(json.dumps({
        "controllers": {"networkPolicy": {
            "namespaceSelectors": [selector, {}],
            "ingressControllerSelector": {"namespace": "n", "podSelector": selector},
        }},
        "webhooks": {"systemComponentsConfig": {"podTolerations": tolerations}},
    })).config  # fmt: skip
    policy = config.controllers.network_policy
    assert policy.ingress_controller_selector is not None
    assert as_object(policy.namespace_selectors) == [selector, {}]
    assert as_object(policy.ingress_controller_selector.pod_selector) == selector
    assert as_object(config.webhooks.system_components_config.pod_tolerations) == tolerations


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("logLevel: 5", "logLevel: expected a string, found the number 5"),
        ("logLevel: yes", "logLevel: expected a string, found the boolean true"),
        ("logLevel: [a]", "logLevel: expected a string, found a list"),
        ("logLevel: {}", "logLevel: expected a string, found an object"),
        ("logLevel: !!binary aGk=", "logLevel: expected a string, found a value of type bytes"),
        ("server: 1.5", "server: expected an object, found the number 1.5"),
        ("server: {metrics: []}", "server.metrics: expected an object, found a list"),
        ("server: {metrics: {port: '80'}}", 'server.metrics.port: expected an integer, found the string "80"'),
        ("server: {metrics: {port: 80.5}}", "server.metrics.port: expected an integer, found the number 80.5"),
        ("server: {metrics: {port: true}}", "server.metrics.port: expected an integer, found the boolean true"),
        ("server: {metrics: {port: .inf}}", "server.metrics.port: expected an integer, found the number inf"),
        ("server: {metrics: {port: 9223372036854775808}}",
         "server.metrics.port: expected an integer, found a number of more than 64 bits"),
        ("sourceClientConnection: {qps: .nan}", "sourceClientConnection.qps: expected a number, found the number nan"),
        ("sourceClientConnection: {qps: '1'}", 'sourceClientConnection.qps: expected a number, found the string "1"'),
        ("sourceClientConnection: {namespaces: a}",
         'sourceClientConnection.namespaces: expected a list, found the string "a"'),
        ("sourceClientConnection: {namespaces: [a, 1]}",
         "sourceClientConnection.namespaces[1]: expected a string, found the number 1"),
        ("sourceClientConnection: {namespace: [a]}", "sourceClientConnection.namespace: expected a string, found a list"),
        ("controllers: {managedResources: {syncPeriod: 60}}",
         'controllers.managedResources.syncPeriod: expected a duration such as "1h30m", found the number 60'),
        ("controllers: {health: {syncPeriod: 1d}}",
         'controllers.health.syncPeriod: time: unknown unit "d" in duration "1d"'),
        ("controllers: {health: {syncPeriod: ''}}", 'controllers.health.syncPeriod: time: invalid duration ""'),
        ("controllers: {health: {syncPeriod: '10'}}",
         'controllers.health.syncPeriod: time: missing unit in duration "10"'),
        ("webhooks: {seccompProfile: {enabled: 'true'}}",
         'webhooks.seccompProfile.enabled: expected a boolean, found the string "true"'),
        ("webhooks: {systemComponentsConfig: {nodeSelector: {a: true}}}",
         "webhooks.systemComponentsConfig.nodeSelector[a]: expected a string, found the boolean true"),
        ("webhooks: {systemComponentsConfig: {nodeSelector: [a]}}",
         "webhooks.systemComponentsConfig.nodeSelector: expected an object, found a list"),
        ("webhooks: {systemComponentsConfig: {podTolerations: [{tolerationSeconds: 1s}]}}",
         'webhooks.systemComponentsConfig.podTolerations[0].tolerationSeconds: expected an integer, found the string "1s"'),
    ],
)  # fmt: skip
def test_a_wrong_type_is_an_error_that_names_the_field(text: str, error: str) -> None:
    assert decode_error(text) == error


def test_all_wrong_types_are_found_at_once() -> None:
    error = decode_error("{kind: x, logLevel: 1, logFormat: 2}")
    assert error.startswith("[expected apiVersion ")
    assert error.endswith(
        ", logLevel: expected a string, found the number 1, logFormat: expected a string, found the number 2]"
    )


def test_long_values_are_not_repeated_in_full() -> None:
    assert len(decode_error(json.dumps({"debugging": "x" * 10_000}))) < 120


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [", "line 2, column 1: did not find expected node content"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        ("a: *missing", "line 1, column 4: found undefined alias"),
        ("[a]: b", "line 1, column 1: found unhashable key"),
        ("!!python/object:os.system x", "line 1, column 1: could not determine a constructor for the tag"),
        ("hello", "the document is not an object with fields"),
        ("- a", "the document is not an object with fields"),
        ("5", "the document is not an object with fields"),
        ("a: !!int x", "not valid YAML: invalid literal for int()"),
        ("a: !!int ''", "not valid YAML: "),
        ("a: !!bool x", "not valid YAML: "),
        ("a: !!timestamp x", "not valid YAML: "),
        ("a: " + "1" * 5000, "not valid YAML: "),
        ("\x00", "not valid YAML: "),
        (b"\xff\xfe\xfd", "not valid YAML: "),
        ("a: \ud800", "not valid YAML: "),
        ("[" * 500_000, "not valid YAML: nested deeper than 64 levels"),
        ("- " * 500_000, "not valid YAML: nested deeper than 64 levels"),
    ],
)  # fmt: skip
def test_what_is_not_a_document_is_a_short_error(text: bytes | str, error: str) -> None:
    found = decode_error(text)
    assert found.startswith(error)
    assert "\n" not in found
    assert len(found) < 300


def test_a_document_that_contains_itself_is_read() -> None:
    assert decode("&a {server: *a}").warnings == ("server.server: unknown field, ignored",)


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("foo: 1", ["foo: unknown field, ignored"]),
        ("loglevel: debug", ["loglevel: unknown field, ignored; did you mean logLevel?"]),
        ("sourceClientConnection: {nameSpaces: [a]}",
         ["sourceClientConnection.nameSpaces: unknown field, ignored; did you mean sourceClientConnection.namespaces?"]),
        ("targetClientConnection: {disableCachedClient: true}",
         ["targetClientConnection.disableCachedClient: unknown field, ignored"]),
        ("controllers: {helth: null, rootCA: {a: {b: 1}}}",
         ["controllers.helth: unknown field, ignored; did you mean controllers.health?",
          "controllers.rootCA: unknown field, ignored"]),
        ("webhooks: {systemComponentsConfig: {podTolerations: [{}, {efect: x}]}}",
         [("webhooks.systemComponentsConfig.podTolerations[1].efect: unknown field, ignored; "
          "did you mean webhooks.systemComponentsConfig.podTolerations[1].effect?")]),
        ("{2: a, true: b, null: c}",
         ["2: unknown field, ignored", "True: unknown field, ignored", "None: unknown field, ignored"]),
    ],
)  # fmt: skip
def test_unknown_fields_are_warnings_with_the_nearest_known_name(text: str, warnings: list[str]) -> None:
    assert list(decode(text).warnings) == warnings


@pytest.mark.parametrize(
    ("text", "alias", "name"),
    [
        ("controllers: {managedResources: {concurrentSyncs: 7}}", "controllers.managedResources", "controllers.managedResource"),
        ("controllers: {tokenValidator: {concurrentSyncs: 7}}", "controllers.tokenValidator", "controllers.tokenInvalidator"),
        ("controllers: {node: {concurrentSyncs: 7}}", "controllers.node", "controllers.nodeCriticalComponents"),
        ("controllers: {csrApprover: {concurrentSyncs: 7}}", "controllers.csrApprover", "controllers.kubeletCSRApprover"),
        ("webhooks: {tokenValidator: {enabled: true}}", "webhooks.tokenValidator", "webhooks.tokenInvalidator"),
        ("sourceClientConnection: {namespace: a}", "sourceClientConnection.namespace", "sourceClientConnection.namespaces"),
        ("targetClientConnection: {namespace: a}", "targetClientConnection.namespace", "targetClientConnection.namespaces"),
    ],
)  # fmt: skip
def test_an_alias_is_the_field_with_one_warning(text: str, alias: str, name: str) -> None:
    decoded = decode(text)
    as_named = text.replace(alias.split(".")[1], name.split(".")[1], 1).replace("namespaces: a", "namespaces: [a]")
    assert decoded.config == decode(as_named).config != ResourceManagerConfiguration()
    assert decoded.warnings == (f"{alias}: used as {name}; rename it",)
    # Null is unset: the alias still counts, and an alias that is null is not in use.
    both = text.replace("{", f"{{{name.split('.')[1]}: null, ", 1)
    assert decode(both) == decoded
    assert decode(as_named.replace("{", f"{{{alias.split('.')[1]}: null, ", 1)).warnings == ()


def test_of_namespaces_and_its_alias_the_list_wins() -> None:
    decoded = decode("sourceClientConnection: {namespace: a, namespaces: [b]}")
    assert decoded.config.source_client_connection.namespaces == ("b",)
    assert decoded.conflicts == ()
    assert decoded.warnings == (
        "sourceClientConnection.namespace: ignored, since sourceClientConnection.namespaces is also set",
    )


@pytest.mark.parametrize(
    ("section", "name", "alias"),
    [
        ("controllers", "tokenInvalidator", "tokenValidator"),
        ("controllers", "nodeCriticalComponents", "node"),
        ("controllers", "kubeletCSRApprover", "csrApprover"),
        ("webhooks", "tokenInvalidator", "tokenValidator"),
    ],
)
def test_a_section_given_under_both_names_must_agree(section: str, name: str, alias: str) -> None:
    same = decode(json.dumps({section: {name: {"enabled": True}, alias: {"enabled": True}}}))
    assert same.conflicts == ()
    assert same.warnings == (f"{section}.{alias}: ignored, since {section}.{name} is also set",)
    differing = decode(json.dumps({section: {name: {"enabled": True}, alias: {"enabled": False}}}))
    with pytest.raises(ConfigError) as caught:
        check(differing.config, conflicts=differing.conflicts)
    error = f"{section}.{alias}: Forbidden: must not differ from {section}.{name}, which is also set"
    assert error in caught.value.errors


def test_managed_resource_must_not_be_given_under_both_names() -> None:
    decoded = decode("""
        leaderElection: {resourceNamespace: garden}
        controllers: {managedResource: {}, managedResources: {}}
    """)
    with pytest.raises(ConfigError) as caught:
        check(decoded.config, conflicts=decoded.conflicts)
    error = "controllers.managedResources: Forbidden: must not be given together with controllers.managedResource"
    assert str(caught.value) == error


# --- whatever is in a file, it is a configuration or a ConfigError


def blocks(kind: Any = ResourceManagerConfiguration) -> Iterator[Any]:
    kind = without_none(kind)
    if is_list(kind):
        yield from blocks(get_args(kind)[0])
    elif is_block(kind):
        yield kind
        for member in members(kind):
            yield from blocks(member.kind)


NAMES = sorted({member.name for block in blocks() for member in members(block)})
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=12,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**63) + 1, 2**63 - 1),
    float: st.floats(-1e9, 1e9),
    str: st.sampled_from(["", "a", "A/b", "Exists", "Equal", "NoExecute", "In"]) | st.text(max_size=5),
    Duration: st.sampled_from(["0s", "1s", "-1h", "24h", "1.5m"]),
}


def documents(kind: Any) -> st.SearchStrategy[Any]:
    """Documents with the names and types of the schema, and any values."""
    kind = without_none(kind)
    if is_block(kind):
        return st.fixed_dictionaries({}, optional={m.name: documents(m.kind) | st.none() for m in members(kind)})
    if is_list(kind):
        return st.lists(documents(get_args(kind)[0]), max_size=2)
    if is_map(kind):
        return st.dictionaries(st.text(max_size=3), SCALARS[str], max_size=2)
    return SCALARS[kind]


@given(st.dictionaries(st.text(), ANYTHING) | st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=10))
@example({"controllers": {"health": {"concurrentSyncs": math.inf}}})
@example({"server": {"metrics": {"port": 2**70}}})
def test_any_mapping_is_read_or_refused_with_a_config_error(document: dict[str, Any]) -> None:
    with suppress(ConfigError):
        decoded = decode(yaml.safe_dump(document))
        check(decoded.config, conflicts=decoded.conflicts)


@given(documents(ResourceManagerConfiguration))
def test_any_document_with_the_right_types_is_read_and_can_be_validated(document: dict[str, Any]) -> None:
    decoded = decode(yaml.safe_dump(document))
    assert decoded.warnings == ()
    assert all(": " in str(error) for error in validate(decoded.config))


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused_with_a_config_error(text: str | bytes) -> None:
    with suppress(ConfigError):
        decode(text)
