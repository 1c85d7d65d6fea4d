"""`hlotrace cache`: the face of `tools/cache.py`."""
from .tools.cache import main

if __name__ == "__main__":
    raise SystemExit(main())
