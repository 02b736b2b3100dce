"""What torch refuses is refused under emulation; higher-order operations get advice; threads' blocks leave nothing behind."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")
F = torch.nn.functional

from mpgemm.torch import emulate  # noqa: E402

H = torch.float16


def ones(*shape, dtype=H):
    return torch.ones(shape, dtype=dtype)


INVALID = {
    "types of mm": lambda: ones(4, 8) @ ones(8, 5, dtype=torch.float32),
    "sizes of mm": lambda: torch.mm(ones(4, 8), ones(7, 5)),
    "dimensions of mm": lambda: torch.mm(ones(1, 4, 8), ones(8, 5)),
    "type of out": lambda: torch.mm(ones(4, 8), ones(8, 5), out=ones(4, 5, dtype=torch.float32)),
    "batches": lambda: torch.bmm(ones(2, 4, 8), ones(1, 8, 5)),
    "dimensions of bmm": lambda: torch.bmm(ones(4, 8), ones(8, 5)),
    "type of what is added": lambda: torch.addmm(ones(5, dtype=torch.float32), ones(4, 8), ones(8, 5)),
    "shape of what is added": lambda: torch.addmm(ones(3), ones(4, 8), ones(8, 5)),
    "type of a batch": lambda: torch.baddbmm(ones(1, 4, 5), ones(1, 4, 8), ones(1, 8, 5, dtype=torch.float32)),
    "shape in place": lambda: ones(5).addmm_(ones(4, 8), ones(8, 5)),
    "channels": lambda: F.conv2d(ones(1, 3, 8, 8), ones(4, 2, 3, 3)),
    "types of a convolution": lambda: F.conv2d(ones(1, 2, 8, 8), ones(4, 2, 3, 3, dtype=torch.float32)),
    "bias of a convolution": lambda: F.conv2d(ones(1, 2, 8, 8), ones(4, 2, 3, 3), ones(3)),
    "kernel": lambda: F.conv2d(ones(1, 2, 2, 2), ones(4, 2, 3, 3)),
    "stride": lambda: F.conv2d(ones(1, 2, 8, 8), ones(4, 2, 3, 3), stride=0),
    "padding": lambda: F.conv2d(ones(1, 2, 8, 8), ones(4, 2, 3, 3), padding=-1),
    "dilation": lambda: F.conv2d(ones(1, 2, 8, 8), ones(4, 2, 3, 3), dilation=0),
    "groups": lambda: F.conv2d(ones(1, 3, 8, 8), ones(4, 1, 3, 3), groups=3),
    "output padding": lambda: F.conv_transpose2d(ones(1, 2, 4, 4), ones(2, 3, 3, 3), output_padding=2),
    "transposed channels": lambda: F.conv_transpose2d(ones(1, 3, 4, 4), ones(2, 3, 3, 3)),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_torch_refuses_is_refused(name):
    with pytest.raises(RuntimeError):
        INVALID[name]()
    with pytest.raises((ValueError, RuntimeError)), emulate("h100"):
        INVALID[name]()
    with pytest.raises(RuntimeError), emulate("h100", strict=False):
        INVALID[name]()


@pytest.mark.filterwarnings("ignore:flex_attention")
@pytest.mark.parametrize("strict", [False, True])
def test_flex_attention_gets_advice(strict):
    from torch.nn.attention.flex_attention import flex_attention

    q = ones(1, 1, 16, 16, dtype=torch.float32)
    with pytest.raises(NotImplementedError, match="attn_mask"), emulate("h100", strict=strict):
        flex_attention(q, q, q)


def test_blocks_of_threads_that_overlap_leave_threads_as_they_were():
    start, sdpa = threading.Thread.start, F.scaled_dot_product_attention
    entered, second, left = threading.Event(), threading.Event(), threading.Event()

    def first():
        with emulate("h100"):
            entered.set()
            second.wait(10)
        left.set()

    def last():
        entered.wait(10)
        with emulate("a100") as run:
            second.set()
            left.wait(10)
            inner = threading.Thread(target=lambda: ones(4, 4) @ ones(4, 4))
            inner.start()
            inner.join()
        found.append(run.report())

    found = []
    threads = [threading.Thread(target=each) for each in (first, last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert threading.Thread.start is start and F.scaled_dot_product_attention is sdpa
    assert [row.site.engines[0].partition(":")[0] for row in found[0].rows] == ["ampere"]
