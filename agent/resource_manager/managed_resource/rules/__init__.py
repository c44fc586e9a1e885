"""Rules of permissions, reports and ownership of objects: pure."""
