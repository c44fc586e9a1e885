"""What an archive for support has of objects: fields of a list, without likely credentials, within bounds."""

from typing import Any

import pytest

from kubectl.garden.support import SHOOT, file, newest, reduced, safe_text

_SHA = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("field", "value", "left"),
    [
        (("spec", "provider"), {"type": "a", "infrastructureConfig": {"key": "x"}}, {"type": "a"}),
        (("spec", "resources"), [{"name": "x"}], None),
        (("spec", "region"), {"unexpected": "object"}, None),
        (("spec", "kubernetes"), "text", None),
        (("spec", "provider"), {"workers": [{"name": "w", "labels": {"a": "b"}}]}, {"workers": [{"name": "w"}]}),
        (("metadata", "annotations"), {"kubectl.kubernetes.io/last-applied-configuration": "{}"}, {}),
        (("status", "unknown"), "x", None),
        (
            ("status", "credentials"),
            {"rotation": {"any": {"phase": "Prepared", "key": "x"}}, "data": "x"},
            {"rotation": {"any": {"phase": "Prepared"}}},
        ),
    ],
)
def test_only_known_fields_are_kept(field: tuple[str, str], value: Any, left: Any) -> None:
    found = reduced({field[0]: {field[1]: value}}, SHOOT)
    assert found == {field[0]: {} if left is None else {field[1]: left}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Deploying etcd", "Deploying etcd"),
        (f"image etcd@{_SHA}", f"image etcd@{_SHA}"),
        ("password=abc, user=me", "password=[redacted], user=me"),
        ('{"secretAccessKey": "abc"}', '{"secretAccessKey": "[redacted]"}'),
        (r'"{\"password\":\"a\",\"user\":\"me\"}"', r'"{\"password\":\"[redacted]\",\"user\":\"me\"}"'),
        ('password: "my dog", user: me', 'password: "[redacted]", user: me'),
        ("token='my dog'", "token='[redacted]'"),
        ("PUT https://a/b?sv=1&sig=a%2Fb%3D&se=2", "PUT https://a/b?sv=1&sig=[redacted]&se=2"),
        ("X-Amz-Signature=0a1b", "X-Amz-Signature=[redacted]"),
        ("Authorization: Basic bWU6YWJj", "Authorization: Basic [redacted]"),
        ("only basic authentication", "only basic authentication"),
        (f"{'word ' * 397}x {'YWJj0GVm' * 8}", f"{'word ' * 397}x [redacted]"),
        ("https://me:abc@example.com", "https://[redacted]@example.com"),
        (f"value {'YWJj0GVm' * 8}==", "value [redacted]"),
        (f"Etcd shoot--dev--rose/{'long-name-1-' * 5}x", f"Etcd shoot--dev--rose/{'long-name-1-' * 5}x"),
        (f"{'word ' * 396}{'YWJj0GVm' * 8}", f"{'word ' * 396}[redacted]"),
        ("word " * 600, f"{'word ' * 400}… (1000 characters more)"),
    ],
)
def test_texts_have_no_likely_credentials(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_everything_is_bounded() -> None:
    assert len(reduced({"metadata": {"finalizers": ["f"] * 10_000}}, SHOOT)["metadata"]["finalizers"]) == 500
    assert len(newest({"lastTimestamp": f"{second:04}"} for second in range(1000))) == 300
    assert file({"a": "x" * (3 << 20)}) == b'{"omitted":"3145741 bytes"}'
