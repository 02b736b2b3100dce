"""The `mpgemm` command and `python -m mpgemm`: Ctrl-C ends them in one line from their first import on."""

import os
import signal
import sys


def main() -> int:
    """Run the command line (:func:`mpgemm.cli.main`) and return its exit status."""
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, or a caller's
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
    """End at once: nothing has been started."""
    os.write(2, b"\nmpgemm: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    raise SystemExit(main())
