"""`python -m samedevice` is the `samedevice` command."""

import sys

from samedevice.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
