"""Texts of failures: the recorded wording, a stable order, a bounded length."""

import pytest

from gardener.managed_resource.messages import (
    MAX_LENGTH,
    apply_error_text,
    apply_message,
    decoding_message,
    pending_message,
    pending_text,
    release_message,
)


@pytest.mark.parametrize(
    ("error", "events", "text"),
    [
        ("", "", 'deletion of old resource "v1/Service/ns/n" is still pending'),
        ("no", "", 'deletion of old resource "v1/Service/ns/n" is still pending: no'),
        (
            "",
            "-> Events:\n* lb reported 5s ago: quota",
            'deletion of old resource "v1/Service/ns/n" is still pending\n\n-> Events:\n* lb reported 5s ago: quota',
        ),
    ],
)
def test_a_pending_removal_tells_why(error: str, events: str, text: str) -> None:
    assert pending_text("v1/Service/ns/n", error=error, events=events) == text


def test_pending_removals_are_listed_by_object_key() -> None:
    expected = "Could not clean all old resources: 2 errors occurred: [b is pending, a is pending]"
    assert pending_message([("k2", "a is pending"), ("k1", "b is pending")]) == expected
    assert pending_message([("k1", "b is pending"), ("k2", "a is pending")]) == expected


def test_failed_releases_are_listed() -> None:
    assert release_message(["x"]) == "Could not release all orphaned resources: 1 error occurred: x"
    assert release_message(["y", "x"]) == "Could not release all orphaned resources: 2 errors occurred: [x, y]"


def test_a_single_apply_error_stands_for_itself() -> None:
    text = apply_error_text("v1/ConfigMap/ns/n", "no")
    assert apply_message([text]) == 'error during apply of object "v1/ConfigMap/ns/n": no'
    assert apply_message(["a", "b"]) == "Could not apply all new resources: 2 errors occurred: [a, b]"


def test_messages_are_cut() -> None:
    assert len(apply_message(["x" * 100_000])) == MAX_LENGTH
    many = apply_message([f"{i:04}: {'x' * 1000}" for i in range(1000)])
    assert len(many) < MAX_LENGTH + 200
    assert many.startswith("Could not apply all new resources: 1000 errors occurred: [0000: ")
    assert many.endswith(", and 984 more]")
    assert len(decoding_message(["x" * 5000] * 1000)) < MAX_LENGTH + 200
