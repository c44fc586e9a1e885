"""Versions of Kubernetes: which can be requested, what they are built from, and the command lines that all take."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import matrix
from localprocesses import versions
from localprocesses.assets import Assets
from localprocesses.components import Files, etcd
from localprocesses.local import LocalProcessError

PROJECT = Path(__file__).resolve().parents[2]
GO_MOD = (PROJECT / "localprocesses" / "controlplane" / "go.mod").read_text()


@pytest.mark.parametrize(
    ("text", "release"),
    [("1.30", "1.30.14"), ("v1.30", "1.30.14"), ("1.30.4", "1.30.4"), ("v1.28.0", "1.28.0"), ("1.36", versions.NEWEST)],
)
def test_a_version_stands_for_a_release(text: str, release: str) -> None:
    assert versions.release(text) == release


@pytest.mark.parametrize("text", ["", "1", "1.27", "1.27.9", "1.99", "1.30.", "1.30.4.1", "latest", "1.30-rc.1"])
def test_another_version_is_refused(text: str) -> None:
    with pytest.raises(LocalProcessError, match=r"not a supported Kubernetes version; use one from 1\.28 to 1\.36"):
        versions.release(text)


@pytest.mark.parametrize(
    "text", ["v1.30.0", "v1.30.99", "1.36.4", "1.27.1", "latest", "1.30.14@sha256:0", "", "1.30/.."]
)
def test_a_version_that_a_user_chose_starts_no_build_unless_it_is_a_known_release(text: str) -> None:
    with pytest.raises(LocalProcessError):
        versions.known(text)


def test_a_known_release_may_be_built() -> None:
    assert [versions.known(f"v{each}") for each in versions.OFFERED] == list(versions.OFFERED)


def test_each_minor_version_from_the_oldest_to_the_newest_has_a_release() -> None:
    assert list(versions.PATCHES) == [f"1.{minor}" for minor in range(28, 37)]
    assert all(release.startswith(f"{minor}.") for minor, release in versions.PATCHES.items())


def test_the_newest_is_the_one_that_is_pinned() -> None:
    assert f"\tk8s.io/kubernetes v{versions.NEWEST}\n" in GO_MOD


def test_a_module_requires_kubernetes_and_names_the_versions_of_its_staging_modules() -> None:
    own = {
        "Go": "1.22.0",
        "Require": [
            {"Path": "github.com/spf13/cobra", "Version": "v1.7.0"},
            {"Path": "k8s.io/api", "Version": "v0.0.0"},
            {"Path": "k8s.io/utils", "Version": "v0.0.0-20230726121419-3b25d923346b"},
        ],
        "Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}],
    }
    assert versions.go_mod("1.30.14", own).splitlines() == [
        "module resource-manager.local/devcluster/controlplane",
        "go 1.22.0",
        "require k8s.io/kubernetes v1.30.14",
        "replace k8s.io/api => k8s.io/api v0.30.14",
    ]


@pytest.mark.parametrize(
    ("version", "has_gateway"),
    [("3.4.30", False), ("3.5.21", False), ("3.6.0", True), ("3.10.1", True), ("4.0.0", True)],
)
def test_an_old_etcd_can_serve_on_a_socket(version: str, has_gateway: bool, tmp_path: Path) -> None:
    """Before 3.6 its address must look like host and port, without a path, and there must be no gateway."""
    program = tmp_path / "etcd"
    program.write_text(f"#!/bin/sh\necho 'etcd Version: {version}'\necho 'Git SHA: a'\n")
    program.chmod(0o755)
    command = etcd(Assets(program, program, None, None, None), Files(tmp_path))
    listening = [argument for argument in command if argument.startswith("--listen-")]
    assert len(listening) == 2
    assert all(re.fullmatch(r"--listen-(client|peer)-urls=unix://\w+:\d+", argument) for argument in listening)
    assert ("--enable-grpc-gateway=false" in command) is not has_gateway


# --- the matrix


def report(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<testsuites><testsuite>{text}</testsuite></testsuites>")


GOOD = report('<testcase name="a"/><testcase name="b"/>')
SKIPPED = report(
    '<testcase><properties><property name="lacks" value="spec.b"/></properties></testcase>'
    '<testcase><properties><property name="lacks" value="spec.a"/></properties></testcase>'
    '<testcase><skipped message="needs a browser"/></testcase>'
)
BAD = report("<testcase/><testcase><failure/></testcase><testcase><skipped/><error/></testcase>")


def test_the_matrix_has_the_oldest_the_middle_and_the_newest_version() -> None:
    oldest, middle, newest = matrix.oldest_middle_newest()
    assert (oldest, newest) == ("1.28", "1.36")
    assert oldest < middle < newest


def test_a_row_has_the_outcomes_of_all_sets_and_what_the_version_lacks() -> None:
    assert matrix.row("1.28.15", [GOOD, SKIPPED]) == (
        "| 1.28.15 | 2 passed | 2 passed, 1 skipped | `spec.a`, `spec.b` |"
    )
    assert matrix.row("1.36.3", [GOOD, BAD]) == "| 1.36.3 | 2 passed | 1 passed, 2 failed | - |"


@pytest.mark.parametrize(("found", "is_good"), [(GOOD, True), (SKIPPED, True), (BAD, False), (report(""), False)])
def test_a_set_is_good_if_tests_have_passed_and_none_has_failed(found: ElementTree.Element, is_good: bool) -> None:
    assert matrix.is_good(found) is is_good


def test_a_row_replaces_that_of_its_release_and_others_stay_in_order() -> None:
    document = f"before\n\n{matrix.HEAD}| 1.30.14 | old |\n| 1.36.3 | new |\n\nafter\n"
    replaced = matrix.with_row(document, "1.30.14", "| 1.30.14 | new |")
    assert replaced == f"before\n\n{matrix.HEAD}| 1.30.14 | new |\n| 1.36.3 | new |\n\nafter\n"
    added = matrix.with_row(replaced, "1.4.0", "| 1.4.0 | first |")
    assert added == f"before\n\n{matrix.HEAD}| 1.4.0 | first |\n| 1.30.14 | new |\n| 1.36.3 | new |\n\nafter\n"


def test_the_first_row_comes_into_an_empty_table() -> None:
    document = f"before\n\n{matrix.HEAD}\nafter\n"
    assert matrix.with_row(document, "1.30.14", "| 1.30.14 | new |") == (
        f"before\n\n{matrix.HEAD}| 1.30.14 | new |\n\nafter\n"
    )
