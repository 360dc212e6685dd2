"""`python -m mtosi_codegen` is `mtosi-codegen`."""

from __future__ import annotations

import sys

from mtosi_codegen.cli import main

if __name__ == "__main__":
    sys.exit(main())
