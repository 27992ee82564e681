"""``python -m fastfw`` is the same as ``fastfw``."""

import sys

from fastfw.cli import main

if __name__ == "__main__":
    sys.exit(main())
