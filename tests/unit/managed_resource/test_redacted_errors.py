"""What API servers quote of objects, and what of it is reported."""

import base64
import time

import pytest

from agent.resource_manager.managed_resource.rules.redaction import without_secrets, without_values
from gardener.managed_resource.references import reference_of

HUSH = "hush-hush-1234"


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ("", ""),
        ('spec.replicas: Invalid value: "x": must be a number', 'spec.replicas: Invalid value: "x": must be a number'),
        (
            'spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable',
            'spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable',
        ),
        (
            f'Invalid value: {{"Args":["--a={HUSH}","]"],"Env":[{{"Name":"P","Value":"{HUSH}\\"}}"}}]}}: immutable',
            'Invalid value: {"Args":[…],"Env":[{"Name":"P","Value":"[redacted]"}]}: immutable',
        ),
        (
            f'core.Container{{Command:[]string{{"run", "{HUSH}"}}, Env:[]core.EnvVar{{core.EnvVar{{Name:"P", Value:"{HUSH}"}}}}}}',
            'core.Container{Command:[]string{…}, Env:[]core.EnvVar{core.EnvVar{Name:"P", Value:"[redacted]"}}}',
        ),
        (
            f'@@ -1,2 +1,2 @@\n   "a",\n-  "--x={HUSH}"\n+  "--y={HUSH}",\n-   "Value": "{HUSH}",\n',
            '@@ -1,2 +1,2 @@\n   "[redacted]",\n-  "[redacted]"\n+  "[redacted]",\n-   "Value": "[redacted]",\n',
        ),
        (f'{{"Value":"{HUSH} is cut o', '{"Value":"[redacted]"'),
        (f'Value: strings.Join({{\n- "{HUSH}",\n+ "b",\n}}, "")', 'Value: "[redacted]"'),
        (f'Value: (\n"""\n{HUSH}\n"""\n)', 'Value: (\n"[redacted]"\n)'),
    ],
)
def test_values_of_variables_and_arguments_are_cut_out_and_nothing_else(message: str, reported: str) -> None:
    assert without_values(message) == reported
    assert HUSH not in reported


@pytest.mark.parametrize("part", ['Value: strings.Join({"', ' "', '"Args":["', "Value: `", "\n \n", '"""\n'])
def test_a_message_that_is_made_to_take_long_is_read_in_bounded_time(part: str) -> None:
    began = time.process_time()
    assert len(without_values(part * 1_000_000)) < 100_000
    assert time.process_time() - began < 30


@pytest.mark.parametrize("field", ["data", "stringData"])
@pytest.mark.parametrize("form", ["{}", "{0} and {0}", 'Invalid value: "{}": too bad'])
def test_what_is_in_a_secret_is_cut_out_in_all_its_forms(field: str, form: str) -> None:
    encoded = base64.b64encode(HUSH.encode()).decode()
    manifest = {"apiVersion": "v1", "kind": "Secret", field: {"a": encoded if field == "data" else HUSH, "b": "x"}}
    for text in (HUSH, encoded):
        reported = without_secrets(form.format(text), manifest)
        assert reported == form.format("[redacted]")


def test_lines_of_a_secret_are_cut_out_one_by_one() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": f"first: line\n  password: {HUSH}\n"}}
    assert without_secrets(f"line 2: password: {HUSH} is wrong", manifest) == "line 2: [redacted] is wrong"


@pytest.mark.parametrize("values", [None, [HUSH], HUSH, {"a": None}, {"a": [HUSH]}, {"a": "\ud800" * 9}])
def test_a_secret_of_any_shape_is_no_problem(values: object) -> None:
    assert without_secrets("data: wrong", {"apiVersion": "v1", "kind": "Secret", "data": values}) == "data: wrong"


def test_objects_of_other_kinds_are_reported_as_they_are() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": HUSH}}
    assert without_secrets(HUSH, manifest) == HUSH


def test_the_copy_that_kubectl_keeps_in_an_annotation_gets_into_no_status() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": HUSH, "a": "b"}
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n", "annotations": annotations}}
    assert reference_of(obj, injected_labels={})["annotations"] == {"a": "b"}


@pytest.mark.parametrize("length", [32_768, 1 << 20])
def test_a_long_message_about_a_secret_of_many_lines_is_not_shown(length: int) -> None:
    lines = "\n".join(f"{each:06x}" for each in range(100_000))
    manifest = {"kind": "Secret", "apiVersion": "v1", "stringData": {"a": lines}}
    begin = time.thread_time()
    assert without_secrets("0" * length, manifest).startswith("[redacted]")
    assert time.thread_time() - begin < 1
