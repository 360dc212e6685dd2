"""`python -m mtosi_jms` is the `mtosi-jms` command."""

from __future__ import annotations

import sys

from mtosi_jms.cli import main

if __name__ == "__main__":
    sys.exit(main())
