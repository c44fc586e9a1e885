"""ExposureClasses: how API servers of Shoots are reached."""
