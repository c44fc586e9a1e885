"""Names of the ShootStates of a Shoot: what one object can't hold is in several."""

MOST_PARTS = 8
_BETWEEN = "--"
"""In no name of a Shoot."""


def names_of_parts(shoot: str) -> list[str]:
    """In this order they are made. Args: shoot: its name."""
    return [shoot, *(f"{shoot}{_BETWEEN}{number}" for number in range(1, MOST_PARTS))]


def shoot_of_part(name: str) -> str:
    """Args: name: of a ShootState."""
    shoot = name.partition(_BETWEEN)[0]
    return shoot if name in names_of_parts(shoot) else name
