"""How PyTorch compares devices, one module a family; which operator follows which rule is in `operator_rules.py`."""
