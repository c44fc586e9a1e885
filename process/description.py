"""What programs have in common: the command line is read, and clusters are connected, without anything else of them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from config.blocks import Configuration
from config.component import Component

C = TypeVar("C", bound=Configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Generic[C]):
    """A program without what it consists of.

    Attributes:
        name: on the command line and in traces.
        summary: a sentence for `--help`.
        elects: whether one replica leads, by the Lease of the configuration; if not, all serve alike.
    """

    name: str
    summary: str
    component: Component[C]
    elects: bool = True
