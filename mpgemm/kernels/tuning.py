"""Chooses tiles by measured time: each entry of the table runs on the device, and torch's cache of timings keeps the fastest.

All entries give the same bits, so timing never changes a result.
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
    """Return the median time of a call on the device in seconds."""
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
    """Return the configuration whose launch takes the least time, from torch's cache of timings if it has the answer.

    Parameters
    ----------
    launches : dict
        Launch of the product for each configuration; each may run several times.
    target : str
        Name of the target.
    run : callable
        Function that runs the product in a configuration on the device.

    Raises
    ------
    triton.runtime.errors.OutOfResources
        If no configuration fits the device.
    """
    from torch._inductor.codecache import LocalCache  # a slow import
    from triton.runtime.errors import OutOfResources

    key = _key(target, next(iter(launches.values())), launches)
    if key not in _KNOWN:
        cache = LocalCache()  # torch keeps one cache for each device and version of its compiler
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
    """Return the key of a timing: a launch's sizes, strides, types and constants without its tile, and the table of tiles.

    Products with and without flags of tiles share a key, because writing flags takes negligible time.
    """
    tile = next(iter(configurations)).constants()
    arguments = {
        name: x.type if isinstance(x, View | DescribedArray) else x
        for name, x in launch.arguments.items()
        if name != "flags"
    }
    constants = {name: x for name, x in launch.constants.items() if name not in tile}
    return f"mpgemm.kernels {target} {launch.function} {arguments} {constants} {list(configurations)}"
