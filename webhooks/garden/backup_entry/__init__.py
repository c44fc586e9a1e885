"""BackupEntries: the backups of a Shoot."""
