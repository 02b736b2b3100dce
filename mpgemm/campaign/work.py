"""This module defines a share of a part's work: device, place of its rows, and deadline."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from mpgemm.campaign.device import CampaignDevice
from mpgemm.campaign.folder import Rows
from mpgemm.campaign.tasks import Task, carry_out


@dataclass(frozen=True)
class Work:
    """`Work` is a share of a part.

    Attributes
    ----------
    part : str
    device : CampaignDevice
    folder : Path
        Folder of the campaign.
    seconds : float
        Seconds for this share.
    share, shares : int
        Number of the share, and number of shares.
    experiments : Path or None
        File of decisive experiments.
    clock, say : callable
    start : float
        Start by the clock.
    """

    part: str
    device: CampaignDevice
    folder: Path
    seconds: float
    share: int = 0
    shares: int = 1
    experiments: Path | None = None
    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = print
    start: float = field(default=-1.0)

    def __post_init__(self):
        if self.start < 0:
            object.__setattr__(self, "start", self.clock())

    @property
    def deadline(self) -> float:
        """Return the deadline by the clock."""
        return self.start + self.seconds

    @cached_property
    def rows(self) -> Rows:
        """Return the rows of the share. Raises ValueError for a damaged file."""
        return Rows(self.folder, self.part, self.share)

    def carry_out(self, tasks: Iterable[Task]) -> None:
        """Run the share's tasks, every `shares`-th of all."""
        failed, left = carry_out(islice(tasks, self.share, None, self.shares), self.rows, self.deadline, self.clock)
        said = f"{self.part} {self.share + 1} of {self.shares}: {len(self.rows.rows)} rows"
        self.say(f"{said}, {failed} failed, {left} had no time" if failed or left else said)
