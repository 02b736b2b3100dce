"""`python -m mpgemm` is the `mpgemm` command."""

from mpgemm.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
