"""Common parts of the pages that programs serve: static files, templates, headers, and access."""
