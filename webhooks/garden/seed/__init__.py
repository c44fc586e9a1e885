"""Seeds: clusters in which the control planes of Shoots run."""
