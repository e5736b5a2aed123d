"""Tools around a run: choosing settings, sketches, documents and folders, pages."""
