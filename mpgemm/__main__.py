"""Starts the `mpgemm` command, also as `python -m mpgemm`; Ctrl-C ends it with one line, even while modules are imported."""

import os
import signal
import sys


def main() -> int:
    """Run the command line (:func:`mpgemm.cli.main`) and return its exit status."""
    # Another handler means that Ctrl-C is ignored, or that a caller handles it.
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if mine:  # an exception in the middle of an import would become a traceback, or another import's error
        signal.signal(signal.SIGINT, _end)
    from mpgemm.cli import main as run

    if mine:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    except KeyboardInterrupt:  # while the command line was read
        print("\nmpgemm: interrupted", file=sys.stderr)
        return 130


def _end(number: int, frame: object) -> None:
    """End the process at once, because no work has started."""
    os.write(2, b"\nmpgemm: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    raise SystemExit(main())
