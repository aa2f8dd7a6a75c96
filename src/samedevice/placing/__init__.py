"""Moves nested data, models and optimizer state to a device, and checks that all is where it should be.

Each public entrance is a module of its name; what it needs of its own stands with it here.

- `move_to_device`: `quick_move` is the short way, `careful_move` the one for anything, `move_tensors` and `move_itself`
  move its leaves, `steps_that_stay` in `state_dicts` are not moved, `undo` puts back, `left_behind` is `strict`,
  `argument` the caller's name for the data.
- `sync_optimizer`: `optimizer_tensors` are what it moves, `state_homes` says where to.
- `check`: `collect` finds what lives where (`module_tensors`, `plain_tensors`, `optimizer_tensors`, `inside`), `judge`
  and its parts `judge_*` find what is wrong, `blame` and `cover` put it in words, `attribute_source` and `routes` say
  why and whether it is meant.
- `unify`, `align_inputs`, `device_loader`: the flows made of these; `lengths` are what they leave on the CPU.
"""
