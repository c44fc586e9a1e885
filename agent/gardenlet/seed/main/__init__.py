"""The controller `seed`: what a seed cluster needs so that Shoots can live in it."""
