"""linting/rules."""
