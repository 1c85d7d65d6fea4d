"""`hlotrace doctor`: the face of `tools/doctor.py`."""
from .tools.doctor import main

if __name__ == "__main__":
    raise SystemExit(main())
