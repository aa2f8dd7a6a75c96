"""placing."""
