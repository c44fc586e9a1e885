"""BackupEntries that this gardenlet is responsible for, mirrored as extension objects."""
