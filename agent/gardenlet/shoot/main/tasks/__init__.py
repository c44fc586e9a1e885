"""Tasks and units of the flows, by area, with the IDs of the tasks before them."""
