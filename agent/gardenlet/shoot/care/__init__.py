"""How Shoots are: their conditions and constraints, and what is removed from them."""
