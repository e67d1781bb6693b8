# SPDX-License-Identifier: Apache-2.0
"""Back end `beeline` of torch.distributed: importing this module registers it.

    import torch.distributed as dist
    import beeline.torch_backend

    dist.init_process_group(backend="beeline")

The default group has all ranks of a Beeline world, in the world's order. Ranks that torch numbers, by `env://`,
`tcp://`, `file://` or a store, join a world through torch's store; under `beeline run` the world is the launcher's.
`pg_options=world` passes an existing world, `store=beeline.torch_backend.make_store(world)` a store of its ranks.
`timeout` is the deadline of every wait; without it the deadline is BEELINE_DEADLINE_S, or else torch's default.

`dist.new_group(ranks)` makes a group of any of these ranks, which is a team of the world. Its members find each other
through torch's store. They take memory for the group from the world's heap (70 to 90 MB on a GPU, 5 on a host rank)
until all of them have called `dist.destroy_process_group(group)`. A rank may be in 30 groups at a time. If the default
group belongs to another back end, the first group with `backend="beeline"` must have all ranks; later groups may have
any.

Tensors are contiguous, and on a GPU rank they are in the memory of the rank's own GPU. There, collectives run on
torch's current stream. Collectives with `async_op=True` run on a stream of the group, after the earlier work of the
current stream, and `Work.wait` holds the current stream until they are done. On a host rank `Work.wait` blocks until
then. Calls of different groups do not wait for each other. torch is 2.11 or later.

Messages (send, recv, isend, irecv) have a stream for each peer and direction, on host ranks too, so that each message
of a batch waits for its own peer only. Between two members of a group, messages are matched in order. A receive has the
tag of its send, up to 2047; a different tag is an error. On host ranks, recv and irecv without a source take the first
message of any member.

Calls of more than some 100 KB use tensors without a copy where they can; `last_transfer` says how. `registered`:
tensors in GPU memory that torch has allocated by cudaMalloc; the ranks map a segment of this memory in their first
calls with it. `in_place`: tensors at the same offset of the symmetric heap on all ranks, where `mem_pool` places them,
from the first call on. With more than two GPUs, all-reduces of more than 192 MB go by copy engines through the
channel's memory, which is faster than either. Memory of registered tensors that torch gives back
(`torch.cuda.empty_cache`) is free once this rank and the others have made their next calls.

Collectives go from torch to the library without Python in between, through a part in C++. This part is compiled for the
installed torch: once, in the background of the first program (half a minute of one core), or beforehand by `beeline
build-torch`. That needs a C++ compiler and Python's headers. Without the part, or with BEELINE_TORCH_NATIVE=0, calls go
through Python, with the same results; `native` of a group says which. With BEELINE_TORCH_NATIVE=1 a program waits until
the part is compiled, and ends with ImportError if that fails.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import os
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

import beeline
from beeline import torch_native
from beeline.library import _beeline
from beeline.torch_compilation import not_compiled
from beeline.torch_join import Meeting, asked_deadline_s, default_deadline_s, serve_store, session_of
from beeline.torch_messages import TorchMessages
from beeline.torch_store import MemberStore
from beeline.torch_streams import give_back, take_stream
from beeline.torch_tensors import (
    REDUCTIONS,
    Tensors,
    check_dense,
    check_parts,
    check_rows,
    check_types,
    in_a_row,
    is_async,
    put_together,
    reduction_number,
    reduction_of,
    split,
    take_apart,
)
from beeline.torch_work import BarrierWork, BeelineWork, UnfinishedWork, numbers_of

__all__ = ["BeelineProcessGroup", "last_transfer", "make_store", "mem_pool"]

_log = logging.getLogger("beeline")
Started = tuple[Any, Callable[[], None]]  # the end of a collective, and a function that copies results out

# Each waiting stream needs a hardware queue of its own; CUDA reads this variable at its first use.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")


def make_store(world: beeline.World) -> dist.Store:
    """Collective over the world: a store for `init_process_group`, served by rank 0, also for ranks on other hosts."""
    return serve_store(world)


def last_transfer(group: dist.ProcessGroup | None = None) -> str | None:
    """How the tensors of the last collective call on `group` got to the other ranks: `Collectives.last_transfer`.

    Waits until the group's calls are over. 'registered': as 'in_place', for tensors outside the symmetric heap.
    'staged: REASON' if such tensors are not registered, as tensors of expandable segments and tensors that the capture
    of a graph allocates, and for all-reduces so long that copy engines are faster.
    """
    asked = dist.group.WORLD if group is None else group
    if not isinstance(asked, BeelineProcessGroup):
        raise TypeError(f"group: expected one of the back end beeline, not {type(asked).__name__}")
    return asked.last_transfer()


def mem_pool(world: beeline.World | None = None) -> torch.cuda.MemPool:
    """A pool of GPU memory in the symmetric heap of `world` (None: the default group's), for `torch.cuda.use_mem_pool`.

        with torch.cuda.use_mem_pool(beeline.torch_backend.mem_pool()):
            gradients = torch.empty(count, device="cuda")

    Tensors that all ranks allocate inside it with the same sizes, in the same order, are at the same offset of the heap
    on all ranks, so that collectives use them without a copy. torch asks the heap for segments (2 MB for tensors of up
    to 1 MB, 20 MB up to 10 MB, then multiples of 2 MB) and places tensors in them; a request for a segment is
    collective over the world, and blocks until all ranks make it. So all ranks must allocate and release the same
    tensors in a pool. Otherwise offsets differ, and calls go through staging, which is slower but correct, or a request
    that other ranks do not make ends at the world's deadline. Tensors stay valid until the program ends, also after the
    world was left. If the heap (BEELINE_HEAP_BYTES) is full, or at the deadline, torch.OutOfMemoryError is raised; the
    log says which.

    Segments that torch gives back, by `torch.cuda.empty_cache` or with the pool, return to the heap at the next request
    after all ranks have given them back. A GPU serves one world of a process.
    """
    used = _root_world() if world is None else world
    if used.device.kind != "gpu":
        raise beeline.UnavailableError(f"rank {used.rank} runs on a CPU: torch has memory pools for GPUs", used.rank)
    _beeline._serve_pool(used)
    return torch.cuda.MemPool(_pool_allocator())


@functools.cache
def _pool_allocator() -> Any:
    """torch's handle of the C functions. Never released: pools point to it, and may outlive Python."""
    functions = torch.cuda.memory.CUDAPluggableAllocator(
        _beeline.__file__, "beeline_pool_allocate", "beeline_pool_free"
    )
    handle = functions.allocator()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))
    return handle


@not_compiled
class BeelineProcessGroup(dist.ProcessGroup):
    """All ranks of a world, or some of them, as torch.distributed calls them."""

    # Read by torch through `_get_backend`.
    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False

    _native = "no: a class derived from it may change its calls in Python"  # unless `_make_group` makes it
    reduction_number = staticmethod(reduction_number)

    def __init__(
        self,
        world: beeline.World,
        store: MemberStore,
        owns_world: bool,
        team: beeline.Team | None = None,
        root: BeelineProcessGroup | None = None,
    ) -> None:
        """All ranks of `world`; or `team`, a part of the group `root`: collective over the team's members alone."""
        self._members = world if team is None else team
        self.session = ""  # distinguishes the world of a group of all ranks from other worlds
        self._own_rank, self._own_size = self._members.rank, self._members.size
        native = self._construct(self._own_rank, self._own_size)
        self._world = world
        self._store = store
        self._owns_world = owns_world
        self._root = root
        self._name = self._description = ""
        self._is_over = False
        self._reported: set[str] = set()  # failures of the world's groups that were logged
        device = None
        stream = None
        if world.device.kind == "gpu":
            device = torch.device("cuda", world.device.index)
            self._torch_stream = take_stream(device)
            stream = self._torch_stream.cuda_stream
        self._device = torch.device("cpu") if device is None else device
        self._calls = _beeline._TorchCalls(self._members, torch.empty(0), stream, _wait_for_all_groups)
        if native is not None:
            own = None if device is None else self._torch_stream
            native.attach(self, self._calls.capsule, REDUCTIONS, BeelineProcessGroup, numbers_of(own))
        self._messages = TorchMessages(world, self._members, device, self._calls.record)
        _groups.add(self)

    def _construct(self, rank: int, size: int) -> ModuleType | None:
        """Makes the part of this object with torch's class: torch's own, or that of the module that this returns."""
        super().__init__(rank, size)
        return None

    @property
    def native(self) -> str:
        """Whether calls reach the library without Python in between: 'yes', or 'no: REASON'.

        The module's documentation says more.
        """
        return self._native

    @property
    def world(self) -> beeline.World:
        """The world whose ranks are in this group."""
        return self._world

    @property
    def symmetric(self) -> bool:
        """Whether the program asserts, on all ranks or none, that tensors of `mem_pool` are symmetric.

        The assertion: the tensors that the ranks pass to a collective call of this group are at the same offset of
        their heaps, as they are if all ranks make the same allocations. Copy engines then write large results (96 MB
        and more) directly to their destinations. If the assertion is false, the group ends with an error, and may have
        written where symmetric tensors would be. If this is False, calls find out themselves whether tensors are
        symmetric.
        """
        return self._calls.symmetric

    @symmetric.setter
    def symmetric(self, asserted: bool) -> None:
        self._calls.symmetric = asserted

    def last_transfer(self) -> str | None:
        """See the function of this name."""
        return self._calls.last_transfer

    def getBackendName(self) -> str:
        return "beeline"

    def getRank(self) -> int:
        return self._own_rank

    def getSize(self) -> int:
        return self._own_size

    def _get_backend(self, device: torch.device) -> BeelineProcessGroup:
        return self

    # The base class keeps names in its back ends, and a group in Python has none.
    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    group_name = property(getGroupName)

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        return [self._device]

    # --- Collectives ----------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        (tensor,) = tensors
        return self._work(self._calls.allreduce(tensor, tensor, is_async(opts), reduction_of(opts)), tensors)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        how = is_async(opts), reduction_of(opts)
        ends = [self._calls.allreduce(tensor, tensor, *how) for tensor in tensors]
        return self._work(ends[-1], tensors)

    def reduce(self, tensors: Tensors, opts: Any) -> dist.Work:
        (tensor,) = tensors
        end = self._calls.reduce(tensor, tensor, is_async(opts), reduction_of(opts), opts.rootRank)
        return self._work(end, tensors)

    def _reduce_scatter_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> dist.Work:
        end = self._calls.reduce_scatter(output, source, is_async(opts), reduction_of(opts))
        return self._work(end, [output], [source])

    def reduce_scatter(self, outputs: Tensors, sources: Sequence[Tensors], opts: Any = None) -> dist.Work:
        (output,), (each,) = outputs, sources
        check_parts(each, output)
        return self._reduce_scatter_base(output, torch.cat([part.reshape(-1) for part in each]), opts)

    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, sources: Tensors, opts: Any = None) -> dist.Work:
        how = is_async(opts), reduction_of(opts)
        ends = [self._calls.reduce_scatter(*pair, *how) for pair in zip(outputs, sources, strict=True)]
        return self._work(ends[-1], outputs, sources)

    def broadcast(self, tensors: Tensors, opts: Any) -> dist.Work:
        (tensor,) = tensors
        return self._work(self._calls.broadcast(tensor, tensor, is_async(opts), root=opts.rootRank), tensors)

    def _allgather_base(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> dist.Work:
        return self._work(self._calls.allgather(output, source, is_async(opts)), [output], [source])

    def allgather_into_tensor_coalesced(self, outputs: Tensors, sources: Tensors, opts: Any = None) -> dist.Work:
        pairs = zip(outputs, sources, strict=True)
        ends = [self._calls.allgather(output, source, is_async(opts)) for output, source in pairs]
        return self._work(ends[-1], outputs, sources)

    def allgather(self, outputs: Sequence[Tensors], sources: Tensors, opts: Any = None) -> dist.Work:
        (each,), (_,) = outputs, sources
        return self.allgather_coalesced([[part] for part in each], sources, opts)

    def allgather_coalesced(self, outputs: Sequence[Tensors], sources: Tensors, opts: Any = None) -> dist.Work:
        """Makes `outputs[rank][i]` a copy of tensor i of rank `rank`."""
        lengths = [len(each) for each in outputs]
        if lengths != [len(sources)] * self.size():
            raise ValueError(f"lists of {lengths} tensors: {self.size()} ranks give {len(sources)} each")
        for source, *parts in zip(sources, *outputs, strict=True):
            check_parts(parts, source)

        def gather(is_async: bool) -> Started:
            mine = put_together(sources)
            together = torch.empty(self.size(), mine.numel(), dtype=mine.dtype, device=mine.device)

            def finish() -> None:
                for part, each in zip(together, outputs, strict=True):
                    take_apart(part, each)

            return self._calls.allgather(together, mine, is_async), finish

        return self._start(gather, [output for each in outputs for output in each], sources, opts)

    def gather(self, outputs: Sequence[Tensors], sources: Tensors, opts: Any) -> dist.Work:
        (source,), root = sources, opts.rootRank
        each = outputs[0] if root == self.rank() else []
        check_parts(each, source)
        data = in_a_row(source)

        def gather(is_async: bool) -> Started:
            together = torch.empty(len(each) * data.numel(), dtype=data.dtype, device=data.device) if each else None
            end = self._calls.gather(together, data, is_async, root=root)
            return end, lambda: None if together is None else take_apart(together, each)

        return self._start(gather, each, [source], opts)

    def scatter(self, outputs: Tensors, sources: Sequence[Tensors], opts: Any) -> dist.Work:
        (output,), root = outputs, opts.rootRank
        each = sources[0] if root == self.rank() else []
        check_parts(each, output)

        def scatter(is_async: bool) -> Started:
            together = put_together(each) if each else None
            return self._calls.scatter(output, together, is_async, root=root), lambda: None

        return self._start(scatter, [output], each, opts)

    def alltoall_base(
        self,
        output: torch.Tensor,
        source: torch.Tensor,
        output_splits: Sequence[int],
        source_splits: Sequence[int],
        opts: Any = None,
    ) -> dist.Work:
        if output_splits or source_splits:
            receive, send = split(output, output_splits, self.size()), split(source, source_splits, self.size())
            end = self._calls.alltoallv(output, source, send, receive, is_async(opts))
        else:
            check_rows(output, self.size())
            check_rows(source, self.size())
            end = self._calls.alltoall(output, source, is_async(opts))
        return self._work(end, [output], [source])

    def alltoall(self, outputs: Tensors, sources: Tensors, opts: Any = None) -> dist.Work:
        check_types([*outputs, *sources])
        receive, send = [output.nbytes for output in outputs], [source.nbytes for source in sources]

        def send_parts(is_async: bool) -> Started:
            together = torch.empty(sum(receive), dtype=torch.uint8, device=outputs[0].device).view(outputs[0].dtype)
            end = self._calls.alltoallv(together, put_together(sources), send, receive, is_async)
            return end, lambda: take_apart(together, outputs)

        return self._start(send_parts, outputs, sources, opts)

    def barrier(self, opts: Any = None) -> dist.Work:
        end = self._calls.barrier(is_async(opts))  # one call for both forms: members may differ
        if is_async(opts):
            stream = self._torch_stream if self._device.type == "cuda" else None
            return BarrierWork(end, stream, self._calls.synchronize_current)
        self._calls.synchronize()
        self._calls.synchronize_current()  # as with other back ends, the CPU waits too
        return BeelineWork([])

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        self._store.monitored_barrier(timeout, wait_all_ranks)

    # Names of these functions in torch since 2.15.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    # --- Messages -------------------------------------------------------------------------------------------------

    def send(self, tensors: Tensors, peer: int, tag: int = 0) -> dist.Work:
        (tensor,) = tensors
        self._check(tensor)
        return self._messages.start("send", tensor, peer, tag)

    def recv(self, tensors: Tensors, peer: int, tag: int = 0) -> dist.Work:
        (tensor,) = tensors
        self._check(tensor)
        return self._messages.start("receive", tensor, peer, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> dist.Work:
        (tensor,) = tensors
        self._check(tensor)
        return self._messages.receive_from_any(tensor, tag)

    # --- The end --------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Collective over the group: `destroy_process_group` calls it."""
        if self._is_over:
            return
        self._is_over = True
        if self._root is not None:
            if not self._root._is_over:
                self._finish()
                if not self._world.failed:
                    self._free()
            self._members = self._world  # the team ends: from here on only the world's failures count
            return
        for group in list(_groups):
            if group is self or (group._root is self and not group._is_over):
                group._finish()
        if self._owns_world:
            self._world.leave()
        elif not self._world.failed:
            self._free()

    def _finish(self) -> None:
        """Waits for all started calls. If the group has failed, its calls have raised the failure before."""
        try:
            self._messages.finish()
            self._calls.synchronize()
        except beeline.Error as failure:
            reported = (self._root or self)._reported
            if (text := str(failure)) not in reported:  # a failed world ends all its groups for the same reason
                reported.add(text)
                _log.warning("beeline: the end of a process group that has failed: %s", text)

    def _free(self) -> None:
        if self._device.type == "cuda":
            give_back(self._torch_stream)
        self._messages.free()
        self._calls.free()

    def abort(self) -> None:
        self._world.abort("torch.distributed aborted the process group")

    def _check(self, tensor: torch.Tensor) -> None:
        if tensor.device != self._device:
            raise ValueError(f"a tensor on {tensor.device}: rank {self._world.rank} of this group is on {self._device}")
        check_dense(tensor)

    def _work(self, end: Any, outputs: Tensors, sources: Tensors = ()) -> BeelineWork:
        """The work that torch waits for. `end` belongs to an asynchronous call on the group's stream."""
        if end is None or self._device.type == "cpu":
            return BeelineWork(outputs, end)
        for tensor in (*outputs, *sources):
            tensor.record_stream(self._torch_stream)  # torch keeps the memory until the stream has reached this point
        return BeelineWork(outputs, end, self._torch_stream)

    def _start(
        self, call: Callable[[bool], Started], outputs: Tensors, sources: Tensors, opts: Any
    ) -> BeelineWork | UnfinishedWork:
        """Runs `call`, which makes tensors and starts a collective on them, either asynchronously or in stream
        order."""
        for tensor in (*outputs, *sources):
            self._check(tensor)
        if not is_async(opts):
            call(False)[1]()
            return BeelineWork(outputs)
        if self._device.type == "cpu":
            return UnfinishedWork(outputs, *call(True))
        self._torch_stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._torch_stream):
            call(False)[1]()
            end = self._calls.record()
        return self._work(end, outputs, sources)


@not_compiled
class NativeProcessGroup(BeelineProcessGroup):
    """The same with the C++ part: collectives go from torch to the library without Python in between."""

    _native = "yes"

    def _construct(self, rank: int, size: int) -> ModuleType | None:
        native = torch_native.native_part()
        native.construct(self, rank, size)
        return native


# The functions of torch's class, which call the C++ part, replace those in Python. Their names depend on torch's
# version.
for _name in (
    "allreduce", "allreduce_coalesced", "reduce", "broadcast", "barrier",
    "allgather", "gather", "scatter", "reduce_scatter", "alltoall",
    "_allgather_base", "all_gather_single", "allgather_into_tensor_coalesced", "all_gather_single_coalesced",
    "_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single_coalesced", "alltoall_base", "all_to_all_single",
):  # fmt: skip
    if _name in vars(dist.ProcessGroup):
        setattr(NativeProcessGroup, _name, vars(dist.ProcessGroup)[_name])

_groups: weakref.WeakSet[BeelineProcessGroup] = weakref.WeakSet()
_roots: list[BeelineProcessGroup] = []  # groups of all ranks; other groups are made from their worlds


def _wait_for_all_groups() -> None:
    """Waits for all work of this process's groups."""
    for group in list(_groups):
        if not group._is_over:
            group._calls.synchronize()


def _root() -> BeelineProcessGroup | None:
    """The latest group of all ranks that has not ended."""
    _roots[:] = [group for group in _roots if not group._is_over]
    return _roots[-1] if _roots else None


def _root_world() -> beeline.World:
    root = _root()
    if root is None:
        raise beeline.UnavailableError("no process group of the back end beeline: pass a world")
    return root.world


def _make_group(world: beeline.World, *arguments: Any) -> BeelineProcessGroup:
    """Makes a group, with the C++ part if that is available."""
    try:
        torch_native.native_part()
    except torch_native.Unavailable as reason:
        group = BeelineProcessGroup(world, *arguments)
        group._native = f"no: {reason}"
        if group.rank() == 0:
            torch_native.report(reason)
        return group
    return NativeProcessGroup(world, *arguments)


def _create_team(options: Any, root: BeelineProcessGroup, ranks: list[int]) -> BeelineProcessGroup:
    deadline_s, world = asked_deadline_s(options), root.world
    store = MemberStore(options, root.session, deadline_s or world.deadline_s)
    team = world.make_team(ranks, store.allgather, deadline_s=deadline_s)
    return _make_group(world, store, False, team, root)


def _create(options: Any, world: beeline.World | None) -> BeelineProcessGroup:
    if world is not None and not isinstance(world, beeline.World):
        raise TypeError(f"pg_options: expected a beeline.World, not {type(world).__name__}")
    ranks, root = list(options.global_ranks_in_group), _root()
    if ranks and root is not None and world in (None, root.world):
        return _create_team(options, root, ranks)
    if ranks and len(ranks) != dist.get_world_size():
        raise beeline.UnavailableError(f"a group of ranks {ranks}: make one of all ranks with backend='beeline' first")
    asked_s = asked_deadline_s(options)
    if world is not None and (world.rank, world.size) != (options.group_rank, options.group_size):
        raise ValueError(
            f"torch.distributed calls this rank {options.group_rank} of {options.group_size}, "
            f"but it is rank {world.rank} of {world.size} of its Beeline world"
        )
    if world is not None and asked_s is not None and not math.isclose(asked_s, world.deadline_s, rel_tol=1e-5):
        raise ValueError(
            f"timeout of {asked_s:g} s: the waits of the world in pg_options end after {world.deadline_s:g} s, as "
            "World.create(deadline_s=) has set it"
        )
    used = Meeting(options, asked_s or default_deadline_s()).join() if world is None else world
    session = session_of(used)
    group = _make_group(used, MemberStore(options, session, used.deadline_s), world is None)
    group.session = session
    _roots.append(group)
    return group


# torch's flight recorder (2.15) would hook into the C++ part of a group, which groups in Python lack; it skips back
# ends that are registered as recording themselves.
getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set()).add("beeline")
dist.Backend.register_backend("beeline", _create, extended_api=True, devices=["cpu", "cuda"])
