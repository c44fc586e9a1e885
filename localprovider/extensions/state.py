"""Local state of the provider: allocated networks, and directories that are buckets.

A network is a file, created exclusively, so that no two objects get the same one. Names of buckets come from users'
objects; see `localprocesses.confined`.
"""

from pathlib import Path

from kube.runtime.controller import ReconcileError
from localprocesses.confined import Confined, one_name

_FIRST_NETWORK, _LAST_NETWORK = 64, 127
_LONGEST_OWNER = 1024
"""Maximum length in bytes."""


class NoNetworkLeft(ReconcileError):
    """All local networks are taken; the text has the remedy."""


class BucketAway(ReconcileError):
    """The content of a bucket is not accessible; the text has the remedy."""


class State:
    """Networks and buckets.

    Args:
        directory: created when needed, readable only for its owner.
        buckets: the same, shared with providers of other seeds; None to use `directory`.
    """

    def __init__(self, directory: Path, *, buckets: Path | None = None) -> None:
        self._networks = Confined(directory / "networks")
        self.buckets = Confined(buckets or directory / "buckets")

    # --- networks

    def take_network(self, owner: str, *, wanted: int = 0) -> int:
        """Return the network that the owner has from now on; `wanted`, if it is free or already theirs.

        Raises:
            NoNetworkLeft: all are taken.
        """
        self._networks.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (taken := self.network_of(owner)) is not None:
            return taken
        all_numbers = range(_FIRST_NETWORK, _LAST_NETWORK + 1)
        numbers: list[int] = [wanted] if wanted in all_numbers else []
        numbers += all_numbers
        for number in numbers:
            try:
                self._networks.create(str(number), owner.encode())
            except FileExistsError:
                continue
            return number
        raise NoNetworkLeft(f"all networks in {self._networks.root} are taken; delete Shoots that are not needed")

    def network_of(self, owner: str) -> int | None:
        try:
            names = self._networks.names()
        except FileNotFoundError:
            return None
        numbers = filter(str.isdecimal, names)
        found = (each for each in numbers if self._networks.read(each, most=_LONGEST_OWNER) == owner.encode())
        return next(map(int, found), None)

    def free_network(self, owner: str) -> None:
        if (number := self.network_of(owner)) is not None:
            self._networks.remove(str(number))

    # --- buckets

    def bucket(self, name: str, *, is_new: bool) -> Path:
        """Return the directory of a bucket.

        Raises:
            BucketAway: it existed before, and is missing.
            OutsideError: the name is not accepted.
        """
        return self._directory(one_name(name), is_new=is_new)

    def entry(self, bucket: str, name: str, *, is_new: bool) -> Path:
        """Return the directory of an entry in a bucket.

        Raises:
            BucketAway: the bucket, or an entry that existed before, is missing.
            OutsideError: a name is not accepted.
        """
        self.bucket(bucket, is_new=False)
        return self._directory(_entry(bucket, name), is_new=is_new)

    def remove_bucket(self, name: str) -> None:
        self.buckets.remove(one_name(name))

    def remove_entry(self, bucket: str, name: str) -> None:
        self.buckets.remove(_entry(bucket, name))

    def _directory(self, path: str, *, is_new: bool) -> Path:
        """Return a directory, created only if it is new: a recreated one would be empty."""
        if is_new:
            return self.buckets.make(path)
        where = self.buckets.path(path)
        if not self.buckets.has(path):
            raise BucketAway(
                f"the backup bucket is unavailable: directory {where} is missing; restore it with its content"
            )
        return where


def _entry(bucket: str, name: str) -> str:
    return f"{one_name(bucket)}/{one_name(name)}"
