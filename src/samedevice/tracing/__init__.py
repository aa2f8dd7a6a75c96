"""What happens to tensors while code runs: where each came from, and the faults that raise nothing.

Nothing is recorded unless somebody watches. Policy lives in `watch` and `silent`; `modes` only passes events on.
"""
