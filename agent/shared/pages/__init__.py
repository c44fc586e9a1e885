"""What the pages have in common that programs show to people: static files, templates, headers, and who may ask."""
