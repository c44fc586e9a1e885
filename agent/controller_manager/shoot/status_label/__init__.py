"""Labels that sum up the state of a Shoot, and name its Seeds."""
