"""The catalogue of causes: data only, read by the command line, the linter, the explanations and the documentation.

One file a cause, named by its slug. Nothing here looks at a program; a new cause is a new file and one line in
`catalogue.py`, and its page, its entry in `samedevice causes` and its tests follow from that.
"""
