"""Files below a directory of ours: names that lead out of it, and symbolic links."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kit.disks import files_of_at_most
from localprocesses.confined import Confined, OutsideError, names_of
from localprovider.extensions.state import State


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "...", "a/../b", "../a", "/a", "a/", "a//b", "a/./b", "a\0b", "a\nb", "a b", "ä", "a\u2215b"),
        *("~", "a" * 201, "/".join("a" * 25), "a\\b", "%2e%2e"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(path: str) -> None:
    with pytest.raises(OutsideError):
        names_of(path)


def test_names_of_objects_and_files_are_accepted() -> None:
    assert names_of("shoot--dev--rose/etcd-main/..data/ca.crt")[-1] == "ca.crt"


CALLS: list[Callable[[Confined, str], object]] = [
    lambda files, path: files.make(path),
    lambda files, path: files.names(path),
    lambda files, path: files.has(f"{path}/inner"),
    lambda files, path: files.is_file(f"{path}/file"),
    lambda files, path: files.read(f"{path}/file", most=100),
    lambda files, path: files.write(f"{path}/file", b"other"),
    lambda files, path: files.create(f"{path}/new", b"other"),
    lambda files, path: files.remove(f"{path}/file"),
    lambda files, path: files.remove(f"{path}/inner"),
    lambda files, path: files.rename(f"{path}/file", "own"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("depth", ["link", "directory/link"])
def test_a_link_is_not_followed(tmp_path: Path, call: Callable[[Confined, str], object], depth: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "inner").mkdir(parents=True)
    (outside / "file").write_text("content")
    (root / depth).parent.mkdir(parents=True)
    (root / depth).symlink_to(outside)
    with pytest.raises(OutsideError, match="symbolic link"):
        call(Confined(root), depth)
    assert {each.name for each in outside.iterdir()} == {"inner", "file"}
    assert (outside / "file").read_text() == "content"


def test_a_file_that_is_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    target, files = tmp_path / "target", Confined(tmp_path / "root")
    target.write_text("content")
    files.root.mkdir()
    (files.root / "file").symlink_to(target)
    with pytest.raises(OutsideError):
        files.read("file", most=100)
    with pytest.raises(OutsideError):
        files.write("file", b"other")
    files.remove("file")
    files.write("file", b"other")
    assert (target.read_text(), files.read("file", most=100)) == ("content", b"other")


def test_a_link_that_comes_between_check_and_use_is_not_followed(tmp_path: Path) -> None:
    outside, files, is_over = tmp_path / "outside", Confined(tmp_path / "root"), threading.Event()
    (outside / "secret").mkdir(parents=True)
    own = files.make("a")

    def swap() -> None:
        while not is_over.is_set():
            own.rename(files.root / "b")
            own.symlink_to(outside)
            own.unlink()
            (files.root / "b").rename(own)

    swapper, seen = threading.Thread(target=swap), list[str]()
    swapper.start()
    try:
        for _ in range(500):
            with suppress(OutsideError, OSError):
                seen += files.names("a")
            with suppress(OutsideError, OSError):
                files.remove("a/secret")
    finally:
        is_over.set()
        swapper.join()
    assert (seen, [each.name for each in outside.iterdir()]) == ([], ["secret"])


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    files = Confined(tmp_path)
    with pytest.raises(ZeroDivisionError), files.replacing("a/file") as file:
        file.write(b"half")
        _ = 1 / 0
    assert files.names("a") == []
    files.write("a/file", b"whole")
    assert (tmp_path / "a/file").stat().st_mode & 0o777 == 0o600


# --- a full disk


@pytest.fixture
def small_disk() -> Iterator[None]:
    with files_of_at_most(100):
        yield


WRITES: list[Callable[[Confined, bytes], object]] = [
    lambda files, content: files.write("a/file", content),
    lambda files, content: files.create("a/file", content),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.usefixtures("small_disk")
def test_what_can_not_be_written_is_not_there_and_can_be_later(
    tmp_path: Path, write: Callable[[Confined, bytes], object]
) -> None:
    files = Confined(tmp_path)
    with pytest.raises(OSError, match=rf"File too large: '{tmp_path}/a/file'"):
        write(files, b"x" * 200)
    assert files.names("a") == []
    write(files, b"x" * 90)
    assert (files.names("a"), files.read("a/file", most=90)) == (["file"], b"x" * 90)


@pytest.mark.usefixtures("small_disk")
def test_a_network_is_not_lost_to_a_full_disk(tmp_path: Path) -> None:
    state = State(tmp_path)
    for _ in range(3):
        with pytest.raises(OSError, match="File too large"):
            state.take_network("n" * 200)
    assert state.take_network("owner") == 64
    assert state.network_of("owner") == 64
