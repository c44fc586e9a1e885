"""What the provider keeps on this computer: networks that are taken, and directories that are buckets.

A network is a file, made exclusively, so that no two objects get the same one. Names of buckets are what somebody has
written into an object; see `localprocesses.confined`.
"""

from pathlib import Path

from localprocesses.confined import Confined, one_name

_FIRST_NETWORK, _LAST_NETWORK = 64, 127
_LONGEST_OWNER = 1024
"""Bytes."""


class NoNetworkLeft(Exception):
    """All networks of this computer are taken; the text says what to do."""


class BucketAway(Exception):
    """What is in a bucket can't be reached; the text says what to do."""


class State:
    """Args:
    directory: made when it is needed, readable for its owner alone.
    buckets: the same, shared with providers of other seeds; None: in `directory`.
    """

    def __init__(self, directory: Path, *, buckets: Path | None = None) -> None:
        self._networks = Confined(directory / "networks")
        self.buckets = Confined(buckets or directory / "buckets")

    # --- networks

    def take_network(self, owner: str, *, wanted: int = 0) -> int:
        """The number that the owner has from now on; `wanted`, if it is free or his. Raises NoNetworkLeft."""
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
        """The directory of a bucket. Raises BucketAway: it was there before; OutsideError."""
        return self._directory(one_name(name), is_new=is_new)

    def entry(self, bucket: str, name: str, *, is_new: bool) -> Path:
        """The directory of an entry in a bucket.

        Raises BucketAway: the bucket, or an entry that was there, is not; OutsideError.
        """
        self.bucket(bucket, is_new=False)
        return self._directory(_entry(bucket, name), is_new=is_new)

    def remove_bucket(self, name: str) -> None:
        self.buckets.remove(one_name(name))

    def remove_entry(self, bucket: str, name: str) -> None:
        self.buckets.remove(_entry(bucket, name))

    def _directory(self, path: str, *, is_new: bool) -> Path:
        """What would be made anew in its place would be empty."""
        if is_new:
            return self.buckets.make(path)
        where = self.buckets.path(path)
        if not self.buckets.has(path):
            raise BucketAway(f"the backup bucket is away: directory {where} is missing; bring it back with what it had")
        return where


def _entry(bucket: str, name: str) -> str:
    return f"{one_name(bucket)}/{one_name(name)}"
