"""The Gardenlet: this gardenlet installs itself anew, as its object says."""
