"""``python -m mpgemm.campaign.worker`` runs one share of a part in a process that :mod:`mpgemm.campaign.jobs` starts."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from mpgemm.campaign.device import CampaignDevice, this_gpu
from mpgemm.campaign.folder import claim
from mpgemm.campaign.parts import PARTS
from mpgemm.campaign.work import Work

#: Prefix of the rows of shares that only call everything once.
WARM = "warm"


def main(arguments: Sequence[str] | None = None, device_of: Callable[[], CampaignDevice] = this_gpu) -> int:
    """Run the share; return 0, or 1 after printing why it could not run."""
    parser = argparse.ArgumentParser(
        prog="python -m mpgemm.campaign.worker", description="Run one share of a campaign's part."
    )
    add = parser.add_argument
    add("--out", type=Path, required=True)
    add("--part", choices=PARTS, required=True)
    add("--share", type=int, required=True)
    add("--seconds", type=float, required=True)
    add("--warm", action="store_true", help="call everything once, without times")
    add("--experiments", type=Path)
    options = parser.parse_args(arguments)
    part = PARTS[options.part]
    try:
        device = device_of()
        claim(options.out, device.facts)
        work = Work(
            WARM if options.warm else part.name, device, options.out, options.seconds, options.share,
            part.shares if options.warm or not part.alone else 1, options.experiments,
            say=lambda text: print(text, flush=True),
        )  # fmt: skip
        part.runner(options.warm)(work)
    except Exception as error:  # the parent reports it in one line; the log has all of it
        traceback.print_exc()
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
