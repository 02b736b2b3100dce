from numpy import ndarray

from ascend.pipes.arrays import FlatPhase

LAYOUT: dict[str, int]

class PipeEngine:
    now: float
    capacity: float
    events: int
    records: int
    skipped: int
    def __init__(
        self,
        phase: FlatPhase,
        sums: tuple[ndarray, ...],
        state: tuple[ndarray, ...],
        records: tuple[ndarray, ...] | None,
        *,
        capacity: float,
        channel_rates: tuple[float, ...],
        serial_latency: bool,
        steady_state: bool,
        reference_pipe: int,
    ) -> None: ...
    def begin(self) -> None: ...
    def run(self, most_events: int) -> bool: ...
    def unfinished(self) -> list[tuple[int, int]]: ...
    def end_time(self) -> float: ...
    def blocked_on(self, core: int, pipe: int) -> int: ...
