"""Tiles by time: what is timed, what is kept, and that no bit changes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

from mpgemm import kernels  # noqa: E402
from mpgemm.kernels import plans, tuning  # noqa: E402

TILES = [
    kernels.Configuration(16, 32, 64, 2, 2),
    kernels.Configuration(32, 16, 64, 2, 1),
    kernels.Configuration(16, 16, 64, 1, 1),
]


@pytest.fixture
def device(monkeypatch, tmp_path):
    """An A100 that is none; the second tile is the fastest; torch's cache is in a folder of its own."""
    from ptx_device import PTXDevice
    from torch._inductor.codecache import CacheBase

    timed = []

    def seconds(run):
        run()
        timed.append(device.launches[-1].constants["BM"])
        return [3.0, 1.0, 2.0][len(timed) % 3 - 1]

    device = PTXDevice("sm_80").use(monkeypatch)
    device.timed = timed
    monkeypatch.setattr(plans, "configurations", lambda form, target, split: TILES)
    monkeypatch.setattr(tuning, "seconds", seconds)
    monkeypatch.setattr(tuning, "_KNOWN", {})
    monkeypatch.setattr(CacheBase, "get_local_cache_path", staticmethod(lambda: tmp_path / "timings"))
    return device


def test_the_fastest_tile_is_kept(device, monkeypatch):
    rng = np.random.default_rng(0)
    a, b, c = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((9, 41), (41, 13), (9, 13)))
    wanted = kernels.matmul(a, b, "bf16x3", c=c, config=TILES[0])
    out = c.clone()
    kernels.matmul(a, b, "bf16x3", out=out, c=out, config="tune", repair=False)  # what is timed does not write to c
    assert torch.equal(out, wanted) and len(device.timed) == 3 and device.launches[-1].constants["BM"] == 32
    assert torch.equal(kernels.matmul(a, b, "bf16x3", c=c, config="tune"), wanted) and len(device.timed) == 3
    monkeypatch.setattr(tuning, "_KNOWN", {})  # another process: what torch kept is read
    assert torch.equal(kernels.matmul(a, b, "bf16x3", c=c, config="tune"), wanted) and len(device.timed) == 3
    assert device.launches[-2].constants["BM"] == 32
    kernels.matmul(a[:5], b, "bf16x3", c=c[:5], config="tune")
    assert len(device.timed) == 6  # another shape


def test_tiles_that_do_not_fit_the_device_are_left_out(device, monkeypatch):
    from triton.runtime.errors import OutOfResources

    def too_large(run):
        raise OutOfResources(200000, 100000, "shared memory")

    own = tuning.seconds
    monkeypatch.setattr(
        tuning, "seconds", lambda run: own(run) if device.timed else device.timed.append(0) or too_large(run)
    )
    a, b, c = torch.ones(9, 41), torch.ones(41, 13), torch.ones(9, 13)
    assert torch.equal(kernels.matmul(a, b, "bf16x3", c=c, config="tune"), torch.full((9, 13), 42.0))
    monkeypatch.setattr(tuning, "seconds", too_large)
    with pytest.raises(OutOfResources):
        kernels.matmul(a[:5], b, "bf16x3", c=c[:5], config="tune")
