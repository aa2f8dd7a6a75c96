"""linting."""
