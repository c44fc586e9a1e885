"""ControllerRegistrations: which extensions there are."""
