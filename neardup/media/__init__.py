"""Code that looks into pictures and videos; the engine for sets imports none of it."""
