"""Processes of this computer that belong to a directory: those whose command lines name it. Only Linux lists them."""

import os
from pathlib import Path

_MODULE = "-m"


def running_in(directory: Path) -> dict[int, list[str]]:
    """Command lines by process id; `directory` may be the common prefix of several."""
    wanted, found = os.fsencode(directory), {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes()
        except OSError:
            continue
        if wanted in line:
            found[int(file.parent.name)] = line.decode(errors="replace").rstrip("\0").split("\0")
    return found


def program(command: list[str]) -> str:
    """Name of the program, for users."""
    if _MODULE in command:
        return f"python -m {command[command.index(_MODULE) + 1]}"
    return Path(command[0]).name


def memory(pid: int) -> int:
    """Memory of a process in MiB, with its share of memory used together with others; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0) // 1024
