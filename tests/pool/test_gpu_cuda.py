"""Pictures that a GPU reads where other processes put them."""

from __future__ import annotations

import gc
import mmap
import multiprocessing

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("onnx", reason="the extra `train` is not installed")

import ongebd  # noqa: E402
from ongebd.pool.gpu.cuda import Pinned, gather, pin, triton_available  # noqa: E402

needs_gpu = pytest.mark.skipif(not triton_available(), reason="needs a GPU and Triton")


def test_without_a_gpu_nothing_is_pinned():
    assert pin(np.zeros(384, np.uint8), torch.device("cpu")) is None


def shared_memory(size: int) -> np.ndarray:
    memory = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    memory[:] = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    return memory


@needs_gpu
@pytest.mark.parametrize("size", [48, 224 * 224 * 3, 1001 * 3, 70_001])
def test_what_lies_in_pinned_memory_arrives_in_the_order_asked_for(size):
    slot = -(-size // 64) * 64
    slots = shared_memory(5 * slot).reshape(5, slot)
    pinned = Pinned(slots.reshape(-1), torch.device("cuda"))  # as long as this variable lives
    pictures = slots[:, :size]
    order = [3, 0, 4]
    addresses = [pictures[place].ctypes.data for place in order]
    out = torch.zeros(len(order), size, dtype=torch.uint8, device="cuda")
    gather(torch.tensor(addresses, device="cuda"), out)
    np.testing.assert_array_equal(out.cpu().numpy(), pictures[order])
    del pinned


@needs_gpu
def test_memory_is_free_to_be_pinned_again_once_released():
    memory = shared_memory(1 << 20)
    first = Pinned(memory, torch.device("cuda"))
    with pytest.raises(RuntimeError, match="already"):
        Pinned(memory, torch.device("cuda"))
    del first
    gc.collect()
    Pinned(memory, torch.device("cuda"))


def give(handle, seed, count):
    frames = np.random.default_rng(seed).integers(0, 256, (count, *handle.layout.shape, 3), dtype=np.uint8)
    with handle.open() as producer:
        for number, frame in enumerate(frames):
            producer.submit(frame, number / 24)
        producer.close()


@needs_gpu
@pytest.mark.parametrize("shape", [(224, 256), (256, 455), (360, 481)])
def test_a_shared_input_gives_the_decisions_of_pictures_that_were_copied(shape):
    model, count, streams = ongebd.load("window-mean"), 12, 12
    with ongebd.StreamPool(model, device="cuda", max_batch=16) as pool:
        copied = [pool.add(name=number) for number in range(streams)]
        read = [pool.add(name=number) for number in range(streams)]
        with pool.shared_input(read, shape, slots=4) as shared:
            assert all(given.address for ring in shared._given for given in ring)
            spawn = multiprocessing.get_context("spawn")
            children = [
                spawn.Process(target=give, args=(handle, seed, count))
                for seed, handle in enumerate(shared.handles)
            ]
            for child in children[:4]:
                child.start()
            for seed, stream in enumerate(copied):  # copied ones in the same steps
                frames = np.random.default_rng(seed).integers(0, 256, (count, *shape, 3), dtype=np.uint8)
                for number, frame in enumerate(frames):
                    stream.submit(frame, number / 24)
            for child in children[4:]:
                child.start()
            for child in children:
                child.join()
                assert child.exitcode == 0
            pool.wait()
        found = {id(stream): [] for stream in (*copied, *read)}
        for result in pool.poll():
            assert result.error is None
            if result.decision is not None:
                found[id(result.stream)].append(result.decision)
    for one, other in zip(copied, read, strict=True):
        ours, theirs = found[id(one)], found[id(other)]
        assert len(ours) == len(theirs) == count
        assert [d.time for d in ours] == [d.time for d in theirs]
        np.testing.assert_allclose([d.error for d in ours], [d.error for d in theirs], atol=2e-3)
