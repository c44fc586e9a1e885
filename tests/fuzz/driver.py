"""Finds targets and their inputs, and changes inputs at random in a way that can be repeated."""

import importlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
CORPORA = _HERE / "corpora"
_NO_TARGETS = {"__init__", "__main__", "driver", "garden_kinds"}

_BODY = 3_000_000
_INTERESTING = (
    b"",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"-1",
    b"9" * 30,
    b"1e400",
    b"NaN",
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"[" * 300,
    b'{"a":' * 300,
    b"\n---\n",
    b"&a [*a]",
    b"<<: *a",
    b"!!binary ",
    b"../../",
    b"%2f",
)


@dataclass(frozen=True, slots=True)
class Target:
    """One function with its inputs."""

    name: str
    run: Callable[[bytes], None]
    made: tuple[bytes, ...]
    """Inputs that are not kept in files."""

    def kept(self) -> dict[str, bytes]:
        """The corpus, by the names of its files."""
        return {path.name: path.read_bytes() for path in sorted((CORPORA / self.name).iterdir())}


def names() -> list[str]:
    return sorted(path.stem for path in _HERE.glob("*.py") if path.stem not in _NO_TARGETS)


def load(name: str) -> Target:
    module = importlib.import_module(f"fuzz.{name}")
    make: Callable[[], Iterator[bytes]] = getattr(module, "seeds", lambda: iter(()))
    return Target(name, module.target, tuple(make()))


def unfolded(data: bytes) -> bytes:
    """With what stands between two zero bytes as many times as fill a large body: a small file, millions of values."""
    before, found, rest = data.partition(b"\0")
    item, end, after = rest.partition(b"\0")
    return before + item * (_BODY // len(item)) + after if found and end and item else data


def millions(before: bytes, after: bytes) -> list[bytes]:
    """Inputs to be unfolded, with millions of values, or of steps into the depth."""
    items = (b"{},", b"[],", b'"",', b"0,", b'{"a":0},', b"[", b'{"a":')
    return [before + b"\0" + item + b"\0" + after for item in items]


def mutations(inputs: list[bytes], count: int, *, seed: int) -> Iterator[bytes]:
    """So many changed inputs, always the same for the same arguments."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(inputs))
        for _ in range(chance.randint(1, 4)):
            _change(data, inputs, chance)
        yield bytes(data)


def _change(data: bytearray, inputs: list[bytes], chance: random.Random) -> None:
    start = chance.randint(0, len(data))
    end = min(len(data), start + chance.choice((1, 1, 2, 8, 64)))
    match chance.randrange(6):
        case 0:
            data[start:end] = chance.randbytes(end - start)
        case 1:
            del data[start:end]
        case 2:
            data[start:start] = data[start:end] * chance.choice((1, 2, 50))
        case 3:
            data[start:end] = chance.choice(_INTERESTING)
        case 4:
            other = chance.choice(inputs)
            data[start:] = other[chance.randint(0, len(other)) :]
        case _:
            if start < len(data):
                data[start] ^= 1 << chance.randrange(8)
