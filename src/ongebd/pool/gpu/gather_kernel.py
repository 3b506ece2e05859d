"""The kernel of `pinned`, in Triton's language; importing it needs Triton."""

import triton
import triton.language as tl


@triton.jit
def gather_kernel(addresses, out, words: tl.constexpr, block: tl.constexpr):
    """A block of one row: what lies at the row's address, on the host or here, as words of `out`'s type."""
    row = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1) * block + tl.arange(0, block)
    source = tl.load(addresses + row).to(tl.pointer_type(out.dtype.element_ty))
    source = tl.multiple_of(source, 16)
    there = word < words
    tl.store(out + row * words + word, tl.load(source + word, mask=there), mask=there)
