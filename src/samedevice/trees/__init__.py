"""Nested data of any shape: opened, walked, and rebuilt around new leaves. Nothing here knows what a tensor is."""
