"""Objects that only the garbage collector frees."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage() -> Iterator[set[str]]:
    """Gets the names of the types of what the block leaves in cycles. A frame among them keeps all that it refers to."""
    found: set[str] = set()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found |= {type(each).__name__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
