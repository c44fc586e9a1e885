"""Names of the ShootStates of a Shoot: one that is too large for an object is split into several."""

MOST_PARTS = 8
_BETWEEN = "--"
"""Separator, which no name of a Shoot contains."""


def names_of_parts(shoot: str) -> list[str]:
    """Names in the order of creation. Args: shoot: its name."""
    return [shoot, *(f"{shoot}{_BETWEEN}{number}" for number in range(1, MOST_PARTS))]


def shoot_of_part(name: str) -> str:
    """Name of the Shoot. Args: name: of a ShootState."""
    shoot = name.partition(_BETWEEN)[0]
    return shoot if name in names_of_parts(shoot) else name
