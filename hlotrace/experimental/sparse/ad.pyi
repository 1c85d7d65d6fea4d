# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.experimental.sparse import grad, jacfwd, jacrev, jacrev as jacobian, value_and_grad

__all__ = ['grad', 'jacfwd', 'jacobian', 'jacrev', 'value_and_grad']

