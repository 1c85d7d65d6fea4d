"""The transformations as users call them: pytrees, signatures and argument checks around `transforms/`."""
