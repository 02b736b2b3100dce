"""Tiles by time: each entry of the table runs on the device, and the fastest is kept where torch keeps what it timed.

All entries give the same bits, so that what was timed never changes a result.
"""

import statistics
from collections.abc import Callable
from functools import partial

import torch

from mpgemm.kernels.configurations import Configuration
from tensorcore_models.gpu.launches import DescribedArray, TritonLaunch, View

WARM, REPEATS = 3, 15
_KNOWN: dict[str, Configuration] = {}


def seconds(run: Callable[[], object]) -> float:
    """Return the median time of a call on the device."""
    for _ in range(WARM):
        run()
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


def fastest(
    launches: dict[Configuration, TritonLaunch], target: str, run: Callable[[Configuration], object]
) -> Configuration:
    """Return the configuration whose launch takes the least time, by torch's cache of timings where it has the answer.

    Parameters
    ----------
    launches : dict
        The product in each configuration; what they write may be written more than once.
    target : str
    run : callable
        Runs the product in a configuration on the device.

    Raises
    ------
    triton.runtime.errors.OutOfResources
        If the device has too little of something for every configuration.
    """
    from torch._inductor.codecache import LocalCache  # imports half of the compiler
    from triton.runtime.errors import OutOfResources

    key = _key(target, next(iter(launches.values())), launches)
    if key not in _KNOWN:
        cache = LocalCache()  # torch keeps one for each device and version of the compiler
        kept = cache.lookup(key)
        if kept is None:
            times, refused = {}, None
            for configuration in launches:
                try:
                    times[configuration] = seconds(partial(run, configuration))
                except OutOfResources as error:
                    refused = error
            if not times:
                assert refused is not None
                raise refused
            kept = min(times, key=lambda x: times[x]).to_dict()
            cache.set_value(key, value=kept)
        _KNOWN[key] = Configuration(**kept)
    return _KNOWN[key]


def _key(target: str, launch: TritonLaunch, configurations) -> str:
    """Return the key of a timing: sizes, strides, types and constants of a launch but its tiles, and which tiles there are.

    Flags of tiles take no time to speak of: products with and without repair have one answer.
    """
    tile = next(iter(configurations)).constants()
    arguments = {
        name: x.type if isinstance(x, View | DescribedArray) else x
        for name, x in launch.arguments.items()
        if name != "flags"
    }
    constants = {name: x for name, x in launch.constants.items() if name not in tile}
    return f"mpgemm.kernels {target} {launch.function} {arguments} {constants} {list(configurations)}"
