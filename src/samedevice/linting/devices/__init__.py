"""An abstract interpreter that infers on which device each tensor of a source file lives."""
