# SPDX-License-Identifier: Apache-2.0
"""Back end `beeline` of torch.distributed: importing this module registers it.

    import torch.distributed as dist
    import beeline.torch_backend

    dist.init_process_group(backend="beeline")

The group has all ranks of a Beeline world, in its order; groups of a part of them are refused. `init_process_group`
joins the world that the environment describes, or takes one as `pg_options=world`. A launcher that sets no MASTER_ADDR
leaves torch without a store: then pass `store=beeline.torch_backend.make_store(world)` too, with rank and world_size.

Tensors are contiguous, and on a GPU they lie on the rank's own. There, collectives run on a stream of their own, after
what torch's current stream has been given, and `Work.wait` holds the current stream until they are done; on a host rank
they block. Messages (send, recv) go through host memory, driven by CPU threads; isend and irecv return before they are
done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import beeline

__all__ = ["BeelineProcessGroup", "make_store"]

REDUCTIONS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "average",
    dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "minimum",
    dist.ReduceOp.MAX: "maximum",
    dist.ReduceOp.BAND: "bit_and",
    dist.ReduceOp.BOR: "bit_or",
    dist.ReduceOp.BXOR: "bit_xor",
}
MESSAGE_CHUNK_BYTES = 256 << 10
Tensors = Sequence[torch.Tensor]


def make_store(world: beeline.World) -> dist.Store:
    """Collective over the world: a store for `init_process_group`, served by rank 0."""
    if world.rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world.size, is_master=True, wait_for_workers=False)
        world.allgather(str(store.port).encode())
        return store
    return dist.TCPStore("127.0.0.1", int(world.allgather(b"")[0]), world.size, is_master=False)


class BeelineWork(dist.Work):
    """A call under way on the group's stream, or one that is over."""

    def __init__(self, outputs: Tensors, done: torch.cuda.Event | None) -> None:
        super().__init__()
        self._outputs = list(outputs)
        self._done = done
        # A future of torch's records what it waits for on the current stream: this is made on the group's.
        gpus = {output.device for output in outputs if output.is_cuda}
        self._future = torch.futures.Future(devices=list(gpus) or None)
        self._future.set_result(self._outputs)

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._done is not None:
            self._done.wait(torch.cuda.current_stream(self._outputs[0].device))
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done is None or self._done.query()

    def is_success(self) -> bool:
        return self.is_completed()

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> torch.futures.Future:
        return self._future


class BeelineMessage(dist.Work):
    """A message under way, driven by a thread."""

    def __init__(self, outputs: Tensors, driven: Future, source: int) -> None:
        super().__init__()
        self._outputs = list(outputs)
        self._driven = driven
        self._source = source

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._driven.result()  # every wait in it has the world's deadline
        return True

    def is_completed(self) -> bool:
        return self._driven.done()

    def is_success(self) -> bool:
        return self._driven.done() and self._driven.exception() is None

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


class BeelineProcessGroup(dist.ProcessGroup):
    """All ranks of a world, as torch.distributed calls them."""

    def __init__(self, world: beeline.World, owns_world: bool) -> None:
        super().__init__(world.rank, world.size)
        self._world = world
        self._owns_world = owns_world
        self._collectives = beeline.Collectives(world)
        self._messages = beeline.StagedChannel(world, MESSAGE_CHUNK_BYTES)
        self._drivers: dict[tuple[str, int], ThreadPoolExecutor] = {}
        self._stream: beeline.Stream | None = None
        if world.device.kind == "gpu":
            self._stream = world.make_stream()
            self._torch_stream = torch.cuda.ExternalStream(self._stream.native, f"cuda:{world.device.index}")

    @property
    def world(self) -> beeline.World:
        """The world whose ranks are this group."""
        return self._world

    def getBackendName(self) -> str:
        return "beeline"

    def getRank(self) -> int:
        return self._world.rank

    def getSize(self) -> int:
        return self._world.size

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cuda", self._world.device.index) if self._stream else torch.device("cpu")]

    # --- Collectives ----------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        (tensor,) = tensors
        reduction = reduction_of(opts)
        return self._start(tensors, lambda on: self._collectives.allreduce(tensor, tensor, reduction, **on))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        reduction = reduction_of(opts)

        def reduce_each(on: dict[str, Any]) -> None:
            for tensor in tensors:
                self._collectives.allreduce(tensor, tensor, reduction, **on)

        return self._start(tensors, reduce_each)

    def _reduce_scatter_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> dist.Work:
        reduction = reduction_of(opts)
        return self._start(
            [output], lambda on: self._collectives.reduce_scatter(output, source, reduction, **on), [source]
        )

    def reduce_scatter(self, outputs: Tensors, sources: Sequence[Tensors], opts: Any = None) -> dist.Work:
        (output,), (each,) = outputs, sources
        return self._reduce_scatter_base(output, torch.cat([part.reshape(-1) for part in each]), opts)

    def broadcast(self, tensors: Tensors, opts: Any) -> dist.Work:
        (tensor,) = tensors
        data, root = as_bytes(tensor), opts.rootRank
        return self._start([tensor], lambda on: self._collectives.broadcast(data, root, **on))

    def _allgather_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> dist.Work:
        to, data = as_bytes(output), as_bytes(source)
        return self._start([output], lambda on: self._collectives.allgather(to, data, **on), [source])

    def allgather(self, outputs: Sequence[Tensors], sources: Tensors, opts: Any = None) -> dist.Work:
        (each,), (source,) = outputs, sources
        data = as_bytes(source)

        def gather(on: dict[str, Any]) -> None:
            together = torch.empty(self.size() * data.numel(), dtype=torch.uint8, device=data.device)
            self._collectives.allgather(together, data, **on)
            for output, part in zip(each, together.chunk(self.size()), strict=True):
                output.copy_(part.view(source.dtype).view_as(output))

        return self._start(each, gather, [source])

    def alltoall_base(
        self,
        output: torch.Tensor,
        source: torch.Tensor,
        output_splits: Sequence[int],
        source_splits: Sequence[int],
        opts: Any = None,
    ) -> dist.Work:
        to, data = as_bytes(output), as_bytes(source)
        receive, send = split(output, output_splits, self.size()), split(source, source_splits, self.size())

        def exchange(on: dict[str, Any]) -> None:
            if output_splits or source_splits:
                self._collectives.alltoallv(to, receive, data, send, **on)
            else:
                self._collectives.alltoall(to, data, **on)

        return self._start([output], exchange, [source])

    def barrier(self, opts: Any = None) -> dist.Work:
        if self._stream is not None:
            # As with other back ends, the CPU waits too.
            self._torch_stream.wait_stream(torch.cuda.current_stream(self._torch_stream.device))
            self._world.synchronize(self._stream)
        self._world.barrier()
        return BeelineWork([], None)

    # --- Messages -------------------------------------------------------------------------------------------------

    def send(self, tensors: Tensors, peer: int, tag: int = 0) -> dist.Work:
        (tensor,) = tensors
        self._check(tensor)
        return self._drive("send", as_bytes(tensor), peer)

    def recv(self, tensors: Tensors, peer: int, tag: int = 0) -> dist.Work:
        (tensor,) = tensors
        self._check(tensor)
        return self._drive("receive", as_bytes(tensor), peer)

    # --- The end --------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Collective: `destroy_process_group` calls it."""
        for driver in self._drivers.values():
            driver.shutdown()
        self._drivers.clear()
        if self._stream is not None:
            self._world.synchronize(self._stream)
        if self._owns_world:
            self._world.leave()

    def abort(self) -> None:
        self._world.abort("torch.distributed aborted the process group")

    def _check(self, tensor: torch.Tensor) -> None:
        (device,) = self._device_types
        if tensor.device != device:
            raise ValueError(f"a tensor on {tensor.device}: rank {self._world.rank} of this group is on {device}")

    def _start(self, outputs: Tensors, call: Callable[[dict[str, Any]], None], sources: Tensors = ()) -> dist.Work:
        """Runs `call` with the keyword that names its stream; its tensors are kept until it is over."""
        for tensor in (*outputs, *sources):
            self._check(tensor)
        if self._world.failed:
            self._world.check()
        if self._stream is None:
            call({})
            return BeelineWork(outputs, None)
        device = self._torch_stream.device
        self._torch_stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._torch_stream):
            call({"stream": self._stream})
            for tensor in (*outputs, *sources):
                tensor.record_stream(self._torch_stream)
            done = torch.cuda.Event()
            done.record(self._torch_stream)
            return BeelineWork(outputs, done)

    def _drive(self, direction: str, data: torch.Tensor, peer: int) -> BeelineMessage:
        """Sends or receives on a thread of its own for each peer: messages between two ranks keep their order."""
        if (direction, peer) not in self._drivers:
            self._drivers[direction, peer] = ThreadPoolExecutor(1, f"beeline {direction} {peer}")
        ready = None
        if self._stream is not None:
            ready = torch.cuda.Event()
            ready.record(torch.cuda.current_stream(data.device))

        def drive() -> None:
            if ready is not None:
                ready.synchronize()
            getattr(self._messages, direction)(data, peer)

        return BeelineMessage([data], self._drivers[direction, peer].submit(drive), peer)


def reduction_of(opts: Any) -> str:
    """Beeline's word for torch's reduction; throws ValueError for those that it does not have."""
    operation = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    for known, name in REDUCTIONS.items():
        if operation == known:
            return name
    raise ValueError(f"reduction {operation}: beeline has {', '.join(REDUCTIONS.values())}")


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of any type and shape as a row of bytes, for what only moves it."""
    if not tensor.is_contiguous():
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} that is not contiguous")
    return tensor.detach().view(-1).view(torch.uint8)


def split(tensor: torch.Tensor, splits: Sequence[int], ranks: int) -> list[int]:
    """How many bytes each rank's part has: `splits` rows of the first dimension, without them as many for each."""
    rows = tensor.shape[0]
    if not splits and rows % ranks:
        raise ValueError(f"{rows} rows cannot be divided among {ranks} ranks")
    if splits and (len(splits) != ranks or sum(splits) != rows):
        raise ValueError(f"splits {list(splits)}: there are {ranks} ranks and {rows} rows")
    row = tensor[:1].nbytes
    return [each * row for each in splits or [rows // ranks] * ranks]


def _create(options: Any, world: beeline.World | None) -> BeelineProcessGroup:
    if world is not None and not isinstance(world, beeline.World):
        raise TypeError(f"pg_options: expected a beeline.World, not {type(world).__name__}")
    group_ranks = options.global_ranks_in_group
    if group_ranks and dist.is_initialized() and len(group_ranks) != dist.get_world_size():
        raise beeline.UnavailableError(f"a group of ranks {list(group_ranks)}: beeline's groups have all ranks")
    used = beeline.World.create() if world is None else world
    if (used.rank, used.size) != (options.group_rank, options.group_size):
        raise ValueError(
            f"torch.distributed calls this rank {options.group_rank} of {options.group_size}, "
            f"but it is rank {used.rank} of {used.size} of its Beeline world"
        )
    return BeelineProcessGroup(used, world is None)


dist.Backend.register_backend("beeline", _create, extended_api=True, devices=["cpu", "cuda"])
