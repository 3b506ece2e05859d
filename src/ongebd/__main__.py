"""`python -m ongebd` is `ongebd`."""

import sys

from ongebd.cli import main

if __name__ == "__main__":
    sys.exit(main())
