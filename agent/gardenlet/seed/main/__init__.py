"""The controller `seed`: components of a seed cluster that Shoots need."""
