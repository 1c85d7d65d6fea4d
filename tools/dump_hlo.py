#!/usr/bin/env python3
"""Runs hlotrace dump from a checkout; see hlotrace/tools/dump_hlo.py."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from hlotrace.tools.dump_hlo import main

sys.exit(main())
