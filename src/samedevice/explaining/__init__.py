"""From a fault to a `Finding`: which tensor, by whose name, left behind where, why, and how to mend it.

Works on what is there after the failure: the exception, the frames of its traceback, the source. It never imports
torch, never calls the user's code, keeps no tensor and no frame, and never raises.
"""
