"""From a cause to a mend: a sentence always, whole-line edits where the exact change is known."""
