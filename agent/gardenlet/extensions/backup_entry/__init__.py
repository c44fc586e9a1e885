"""BackupEntries of this gardenlet, mirrored as extension objects."""
