# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.

__all__ = ['DidntWant', 'DontWant', 'GradRef', 'GradValue']

class DidntWant:
    def __init__(self) -> None: ...

class DontWant:
    def __init__(self) -> None: ...

class GradRef:
    def __init__(self) -> None: ...

class GradValue:
    def __init__(self) -> None: ...
