"""This module runs the campaign for ``python -m tensorcore_models.hardware.campaign``."""

import sys

from .run import main

if __name__ == "__main__":
    sys.exit(main())
