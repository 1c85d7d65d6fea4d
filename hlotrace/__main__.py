"""`python -m hlotrace`: the face of `tools/commands.py`."""
from .tools.commands import main

if __name__ == "__main__":
    raise SystemExit(main())
