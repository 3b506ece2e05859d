"""The GPU kernels of our own, in Triton's language; importing them needs Triton."""

import triton
import triton.language as tl


@triton.jit
def depthwise_kernel(
    x,
    weight,
    bias,
    y,
    height,
    width,
    channels,
    rows,
    columns,
    top,
    left,
    stride: tl.constexpr,
    size: tl.constexpr,
    block_columns: tl.constexpr,
    block_channels: tl.constexpr,
):
    """A block of one row of results: some columns of some channels; pictures have their channels last."""
    at = tl.program_id(0)
    picture, row = at // rows, at % rows
    column = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
    channel = tl.program_id(2) * block_channels + tl.arange(0, block_channels)
    there = channel < channels
    total = tl.zeros((block_columns, block_channels), tl.float32)
    for down in tl.static_range(size):
        line = row * stride - top + down
        for across in tl.static_range(size):
            place = column * stride - left + across
            inside = (line >= 0) & (line < height) & (place >= 0) & (place < width)
            pixel = ((picture * height + line) * width + place)[:, None] * channels + channel[None, :]
            value = tl.load(x + pixel, mask=inside[:, None] & there[None, :], other=0.0)
            tap = tl.load(weight + (down * size + across) * channels + channel, mask=there, other=0.0)
            total += value.to(tl.float32) * tap.to(tl.float32)[None, :]
    total += tl.load(bias + channel, mask=there, other=0.0).to(tl.float32)[None, :]
    total = tl.minimum(tl.maximum(total, 0.0), 6.0)
    out = ((picture * rows + row) * columns + column)[:, None] * channels + channel[None, :]
    tl.store(y + out, total.to(y.dtype.element_ty), mask=(column < columns)[:, None] & there[None, :])


@triton.jit
def gather_kernel(addresses, out, words: tl.constexpr, block: tl.constexpr):
    """A block of one row: what lies at the row's address, on the host or here, as words of `out`'s type."""
    row = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1) * block + tl.arange(0, block)
    source = tl.load(addresses + row).to(tl.pointer_type(out.dtype.element_ty))
    source = tl.multiple_of(source, 16)
    there = word < words
    tl.store(out + row * words + word, tl.load(source + word, mask=there), mask=there)
