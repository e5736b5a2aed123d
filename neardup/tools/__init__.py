"""What people use around a run: choosing settings, sketches, documents and folders, pages."""
