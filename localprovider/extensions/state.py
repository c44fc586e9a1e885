"""What the provider keeps on this computer: networks that are taken, and directories that are buckets.

A network is a file, made exclusively, so that no two objects get the same one. All names are those of Kubernetes
objects, which can't leave a directory.
"""

import shutil
from pathlib import Path

_FIRST_NETWORK, _LAST_NETWORK = 64, 127


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
        self._networks, self._buckets = directory / "networks", buckets or directory / "buckets"

    # --- networks

    def take_network(self, owner: str, *, wanted: int = 0) -> int:
        """The number that the owner has from now on; `wanted`, if it is free or his. Raises NoNetworkLeft."""
        self._networks.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (taken := self.network_of(owner)) is not None:
            return taken
        numbers = [wanted] if wanted else []
        numbers += range(_FIRST_NETWORK, _LAST_NETWORK + 1)
        for number in numbers:
            try:
                with (self._networks / str(number)).open("x") as file:
                    file.write(owner)
            except FileExistsError:
                continue
            return number
        raise NoNetworkLeft(f"all networks in {self._networks} are taken; delete Shoots that are not needed")

    def network_of(self, owner: str) -> int | None:
        if not self._networks.is_dir():
            return None
        found = (file for file in sorted(self._networks.iterdir()) if file.read_text() == owner)
        return next((int(file.name) for file in found), None)

    def free_network(self, owner: str) -> None:
        if (number := self.network_of(owner)) is not None:
            (self._networks / str(number)).unlink(missing_ok=True)

    # --- buckets

    def bucket(self, name: str, *, is_new: bool) -> Path:
        """The directory of a bucket. Raises BucketAway: it was there before."""
        path = self._buckets / name
        if is_new:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _there(path)

    def entry(self, bucket: str, name: str, *, is_new: bool) -> Path:
        """The directory of an entry in a bucket. Raises BucketAway: the bucket, or an entry that was there, is not."""
        path = _there(self._buckets / bucket) / name
        if is_new:
            path.mkdir(mode=0o700, exist_ok=True)
        return _there(path)

    def remove_bucket(self, name: str) -> None:
        shutil.rmtree(self._buckets / name, ignore_errors=True)

    def remove_entry(self, bucket: str, name: str) -> None:
        shutil.rmtree(self._buckets / bucket / name, ignore_errors=True)


def _there(path: Path) -> Path:
    """What would be made anew in its place would be empty."""
    if not path.is_dir():
        raise BucketAway(f"the backup bucket is away: directory {path} is missing; bring it back with what it had")
    return path
