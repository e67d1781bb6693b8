# SPDX-License-Identifier: Apache-2.0
"""Coherent objects: beeline.Object."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

np = pytest.importorskip("numpy")

import beeline  # noqa: E402


def make(shape: object = 5000, dtype: object = "int64", **options: object) -> beeline.Object:
    return beeline.Object(shape, dtype, device="cpu", block_bytes=4096, **options)


@pytest.mark.parametrize("protocol", ["protection", "tracking"])
def test_a_device_and_the_host_see_each_others_writes(protocol: str) -> None:
    numbers = make(protocol=protocol)
    host = np.from_dlpack(numbers)
    assert not host.any()
    for turn in range(3):
        host[::7] += 1
        with numbers.on_device() as device:
            assert device.ctypes.data != host.ctypes.data
            assert (device[::7] == 11 * turn + 1).all()
            device += 10
            device[::7] += 0
        assert host[1] == 10 * (turn + 1)
        assert host[7] == 11 * (turn + 1)
    assert numbers.statistics["fetched_bytes"] > 0


def test_shapes_and_types() -> None:
    numbers = make((3, 4), np.float32)
    assert numbers.shape == (3, 4)
    assert numbers.dtype == "float32"
    assert len(numbers) == 3
    assert np.from_dlpack(numbers).shape == (3, 4)
    assert np.from_dlpack(numbers).ctypes.data == numbers.address
    assert repr(numbers) == "<beeline.Object: float32 x (3, 4)>"
    assert numbers.statistics["block_bytes"] == 4096


def test_numpy_views_of_bfloat16_are_of_uint16() -> None:
    numbers = make(5, "bfloat16")
    with numbers.host() as array:
        array[:] = 0x3F80  # 1.0
    with numbers.on_device() as device:
        assert (device.dtype, device[4]) == (np.uint16, 0x3F80)
    assert numbers.dtype == "bfloat16"


def test_numpy_takes_an_object_as_an_array() -> None:
    numbers = make((3, 4), "int64")
    view = np.asarray(numbers)
    assert (view.ctypes.data, view.shape, view.dtype) == (numbers.address, (3, 4), np.int64)
    assert np.array(numbers, "int64", copy=False).ctypes.data == numbers.address
    view[1] = 7
    copied, converted = np.array(numbers), np.asarray(numbers, "float32")
    view[1] = 8
    assert (copied.sum(), converted.sum(), converted.dtype) == (28, 28.0, np.float32)
    assert np.sum(numbers) == np.add(numbers, 1).sum() - 12 == 32
    with pytest.raises(ValueError, match="copy"):
        np.array(numbers, "float32", copy=False)


def test_numpy_gets_no_array_of_bfloat16_nor_of_a_released_object() -> None:
    numbers = make(5, "bfloat16")
    for dtype in (None, "uint16"):
        with pytest.raises(TypeError, match=r"numpy has no bfloat16: torch.from_dlpack"):
            np.asarray(numbers, dtype)
    numbers = make()
    numbers.free()
    with pytest.raises(beeline.InvalidArgumentError, match="the object was released"):
        np.asarray(numbers)


def test_numpy_copies_an_object_as_a_host_access() -> None:
    numbers = make(deadline_s=0.05)
    with numbers.on_device() as device:
        device[:] = 3
        assert np.asarray(numbers).ctypes.data == numbers.address  # touches no element
        for call in (np.array, lambda each: np.asarray(each, "float32")):
            with pytest.raises(beeline.InvalidArgumentError, match="own DeviceAccess"):
                call(numbers)
            with ThreadPoolExecutor(1) as other, pytest.raises(beeline.DeadlineError, match="kernels"):
                other.submit(call, numbers).result()
    assert np.array(numbers).sum() == 15_000


def test_an_object_is_no_sequence_and_no_buffer() -> None:
    numbers = make((3, 4))
    for call in (iter, memoryview, bytes, lambda each: each[0], lambda each: 1 in each):
        with pytest.raises(TypeError, match=r"iterable|bytes|subscriptable"):
            call(numbers)
    for call in (copy.copy, copy.deepcopy, *(lambda each, p=p: pickle.dumps(each, p) for p in (0, 4))):
        with pytest.raises(TypeError, match=r"neither pickled nor copied: numpy.array"):
            call(numbers)


def test_views_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert torch.as_tensor(make(5, "bfloat16")).dtype == torch.bfloat16
    numbers = make(1000, torch.float32)
    assert torch.as_tensor(numbers).data_ptr() == numbers.address
    tensor = torch.from_dlpack(numbers)
    tensor.fill_(2)
    with numbers.on_device() as device:
        torch.from_dlpack(device).mul_(3)
    assert tensor.sum().item() == 6000


def test_system_calls_use_elements_that_are_held() -> None:
    numbers = make(10_000, "uint8")
    with numbers.on_device() as device:
        device[:] = 65
    read_end, write_end = os.pipe()
    with numbers.host("read", first=4090, count=10) as array:
        assert os.write(write_end, array[4090:4100].data) == 10
    with numbers.host("write", first=8000, count=10) as array:
        assert os.readv(read_end, [array[8000:8010].data]) == 10
        array[8000] = 66
    with numbers.on_device() as device:
        assert device[8000] == 66
    os.close(read_end)
    os.close(write_end)


def test_kernels_wait_for_the_hosts_access() -> None:
    numbers = make()
    with (
        numbers.host("read"),
        pytest.raises(beeline.InvalidArgumentError, match="HostAccess"),
        numbers.on_device(),
    ):
        pass
    short = make(deadline_s=0.05)
    with short.on_device():
        with pytest.raises(beeline.InvalidArgumentError, match="own DeviceAccess"), short.host("read"):
            pass
        with ThreadPoolExecutor(1) as other, pytest.raises(beeline.DeadlineError, match="kernels"):
            other.submit(short.host("read").__enter__).result()


def test_an_object_is_not_freed_inside_an_access() -> None:
    numbers = make()
    for access in (numbers.host("read"), numbers.on_device()):
        with access, pytest.raises(beeline.InvalidArgumentError, match=r"release of the object at .* own"):
            numbers.free()
    numbers.free()


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match=r"protocol: best; known are automatic, protection, tracking, managed"):
        make(protocol="best")
    with pytest.raises(ValueError, match="device: tpu"):
        beeline.Object(3, device="tpu")
    with pytest.raises(beeline.InvalidArgumentError, match="0 bytes"):
        make(0)
    for shape in (-1, (2, -1)):
        with pytest.raises(ValueError, match="shape: a negative number"):
            beeline.Object(shape)
    for wrong in (1.5, "3", (2, "3"), [None]):
        with pytest.raises(TypeError, match="shape: expected a number of elements, or a sequence"):
            beeline.Object(wrong)
    with pytest.raises(beeline.InvalidArgumentError, match="power of two"):
        beeline.Object(3, device="cpu", block_bytes=5000)
    with pytest.raises(beeline.InvalidArgumentError, match="managed memory is memory of GPUs"):
        make(protocol="managed")
    numbers = make()
    with (
        pytest.raises(beeline.InvalidArgumentError, match="40000 bytes has 5000"),
        numbers.host(first=4999, count=2),
    ):
        pass
    numbers.free()
    with pytest.raises(beeline.InvalidArgumentError, match="was released"):
        numbers.free()


def test_views_keep_the_object() -> None:
    host = np.from_dlpack(make())
    gc.collect()
    host[:] = 3
    assert host.sum() == 15_000
