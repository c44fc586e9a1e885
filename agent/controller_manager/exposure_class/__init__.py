"""Keeps ExposureClasses that Shoots refer to."""
