"""Finds races in local memory between waves by happens-before; an access is complete only after a wait for it.

A queue of the wave does its accesses to local memory (LDS) in order. Another wave knows of an access after the wave waited for
it (lgkmcnt) and both waves passed a barrier. A load from vector memory directly into local memory (``lds``) is a copy apart
from that queue, for which its wave must wait, too (vmcnt).
"""

import numpy as np

from ..races import RaceChecks


class WaveRaces(RaceChecks):
    """`WaveRaces` finds reads of unwritten bytes and races between waves in local memory.

    Its agents are a wave, its queue, its copies.
    """

    def _agents_of(self, warps: np.ndarray, kind: str) -> np.ndarray:
        return warps + (2 if kind == "copy" else 1) * self.warps

    def _in_turn(self, agents: np.ndarray) -> np.ndarray:
        return agents < 2 * self.warps

    def _unordered(self, earlier: np.ndarray, warps: np.ndarray, agents: np.ndarray) -> np.ndarray:
        return earlier != warps[:, None] + self.warps  # a wave's own accesses are in order

    def _name(self, agent: int) -> str:
        wave = f"wave {agent % self.warps}"
        return f"a load to LDS of {wave}" if agent >= 2 * self.warps else wave

    def local_issued(self, waves) -> None:
        """Note that waves began an access of local memory."""
        self._next(waves, 1)

    def copy_issued(self, waves) -> None:
        """Note that waves began a load into local memory."""
        self._next(waves, 2)

    def _next(self, waves, group: int) -> None:
        rows, warps = self._places(waves)
        self.clock[rows, group * self.warps + warps] += 1

    def local_waited(self, waves, left: int) -> None:
        """Note that waves waited until at most `left` accesses of local memory are outstanding."""
        self._know(waves, 1, left)

    def copies_waited(self, waves, left: np.ndarray) -> None:
        """Note that waves waited until at most the stated number of loads into local memory are outstanding."""
        self._know(waves, 2, left)

    def _know(self, waves, group: int, left) -> None:
        rows, warps = self._places(waves)
        agents = group * self.warps + warps
        self.known[rows, warps, agents] = np.maximum(
            self.known[rows, warps, agents], self.clock[rows, agents] - 1 - left
        )

    def _places(self, waves) -> tuple[np.ndarray, np.ndarray]:
        every = self.machine.waves.all_lanes if waves is None else waves
        return every // self.warps, every % self.warps
