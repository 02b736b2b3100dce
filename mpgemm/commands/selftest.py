"""`mpgemm selftest`: does the installed package compute what it should on this machine?"""

import argparse
import sys
import time
from dataclasses import asdict

from mpgemm.reporting.report import Table, json_text, say
from mpgemm.selftest import checks
from tensorcore_models.machine.instruction_sets import available_isas


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status: 1 if anything differs.

    Raises ValueError if there is no time to compare anything, or the seed is negative.
    """
    if not args.seconds > 0:
        raise ValueError(f"--seconds is {args.seconds:g}, expected more than 0")
    if args.seed < 0:
        raise ValueError(f"--seed is {args.seed}, expected 0 or more")
    start = time.monotonic()
    found = [checks.hardware_outputs(), checks.derived_vectors(), checks.twins(args.seconds, args.seed)]
    wrong = [check for check in found if check.different]
    if args.json:
        facts = {
            "passed": not wrong,
            "instruction_sets": available_isas(),
            "checks": [asdict(check) for check in found],
        }
        sys.stdout.write(json_text(facts))
    else:
        rows = [[check.name, check.compared, check.different] for check in found]
        Table("Self-test", ["check", "dot products", "different"], rows).print()
        for check in wrong:
            say(f"{check.name}: the first that differs is {check.first}")
        result = "FAILED: do not trust results of this installation" if wrong else "passed"
        say(f"{result} ({time.monotonic() - start:.0f} s; instruction sets: {', '.join(available_isas())})")
    return 1 if wrong else 0
