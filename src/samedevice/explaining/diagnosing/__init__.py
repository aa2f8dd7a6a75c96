"""From evidence to a cause: a few small judges, asked in turn, each for one kind of evidence.

A judge claims a cause only on what it can name; where none does, the cause is `other`.
"""
