# SPDX-License-Identifier: Apache-2.0
"""Beeline's library. Use it through the package `beeline`."""

from collections.abc import Sequence
import os


class Event:
    """A point in a stream's work, made by `Stream.record`."""

    @property
    def done(self) -> bool:
        """Whether all work before it is over, whether it failed or not."""

    def wait(self, *, timeout: float | None = None) -> None:
        """
        Blocks until all work before it is over. Raises what the world knows of a failure by then.

        timeout  in seconds: then it raises TimeoutError, the work goes on, and a later call finds it; 0: looks once
        """

class Stream:
    """
    An in-order queue of work of one rank: a CUDA stream, or a thread on a host rank.

    Made by `World.make_stream`; `World.stream` is the default one. Destroying it waits for its work.
    """

    @property
    def native(self) -> int | None:
        """
        The CUDA stream's handle, as `torch.cuda.ExternalStream` takes it; None on a host rank.
        """

    @property
    def idle(self) -> bool:
        """Whether all its work is over. Raises what went wrong in it, once."""

    def record(self) -> Event:
        """The point behind what it has been given so far."""

    def wait(self, other: Stream) -> None:
        """
        Holds what is put on this stream from now on until what `other` has been given so far is over.
        """

    def let_go(self) -> None:
        """
        Lets go of the tensors that its calls use: the caller sees to it that their memory stays until it is over.
        """

class Memory:
    """
    Elements in a heap of the world, made by `World.allocate`: at the same place on every rank.

    Speaks DLPack: `numpy.from_dlpack(memory)` and `torch.from_dlpack(memory)` are views of it, without a copy. It stays
    allocated until `free` is called or the world ends; views keep the world's memory mapped. Memory that all ranks have
    dropped without `free` is freed where an allocation finds the heap full.
    """

    @property
    def shape(self) -> tuple:
        """Its extents, in elements."""

    @property
    def dtype(self) -> str:
        """Type of an element, as 'float32'."""

    @property
    def bytes(self) -> int:
        """Its size in bytes."""

    @property
    def rank(self) -> int:
        """The rank whose memory it is."""

    @property
    def heap(self) -> str:
        """'symmetric' or 'pinned'."""

    @property
    def address(self) -> int:
        """Its address in this process."""

    def __getitem__(self, key: int | slice, /) -> Memory:
        """
        A part of the first axis, as Memory: `memory[2:5]`, `memory[-1]`. It is freed with the whole.
        """

    def __len__(self) -> int: ...

    def at(self, peer: int) -> Memory:
        """
        The same elements on rank `peer`: for `World.copy`, and, where that is a host rank of this node, for DLPack too.
        """

    def free(self) -> None:
        """
        Collective. Gives the memory back, on every rank; views of it must not be used any more.

        Waits for the default stream; the work of other streams must be over. Raises InvalidArgumentError for a part.
        """

    def __dlpack__(self, **kwargs) -> object:
        """DLPack's export, without a copy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device: (1, 0) for CPUs, (2, index) for a GPU."""

    def __array__(self, dtype: object | None = None, copy: object | None = None) -> object:
        """
        For `numpy.asarray(memory)`: a view, of memory that DLPack has a view of. Raises TypeError for bfloat16.
        """

    def __repr__(self) -> str: ...

class Team:
    """
    Some ranks of a world, with a barrier and an abort of their own.

    Made by `World.make_team`. `Collectives(team)` are its collectives.
    """

    @property
    def rank(self) -> int:
        """This rank's number in the team."""

    @property
    def size(self) -> int:
        """How many members there are."""

    @property
    def ranks(self) -> list[int]:
        """The members' ranks in the world, by their rank in the team."""

    @property
    def failed(self) -> bool:
        """
        Whether the team is aborted: by a deadline of its own, or the end of a member.
        """

    def barrier(self, *, timeout: float | None = None) -> None:
        """
        Collective over the team. Blocks until all members call it; raises DeadlineError, naming the missing rank.

        timeout  as of `World.barrier`
        """

    def allreduce(self, value: object, reduction: str = 'sum') -> object:
        """Collective over the team: as `World.allreduce`."""

    def allgather(self, data: bytes) -> list[bytes]:
        """
        Collective over the team. Everyone's bytes, by rank of the team: at most 120 of each.
        """

    def __repr__(self) -> str: ...

class Device:
    """What a rank runs on."""

    @property
    def kind(self) -> str:
        """'gpu' or 'host'."""

    @property
    def index(self) -> int | None:
        """The GPU's number in its rank's process; None for a host device."""

    @property
    def uuid(self) -> str:
        """The GPU's UUID; empty for a host device."""

    @property
    def name(self) -> str:
        """The GPU's or CPU's model."""

    @property
    def memory_bytes(self) -> int:
        """Memory in bytes."""

    def __repr__(self) -> str: ...

class RankHealth:
    """The state of a rank, as another sees it."""

    @property
    def state(self) -> str:
        """'healthy', 'failed' or 'left'."""

    @property
    def noticed_by(self) -> int | None:
        """Of a failed rank: the rank that noticed it; None: the launcher did."""

    @property
    def reason(self) -> str:
        """Of a failed rank: one line."""

    def __repr__(self) -> str: ...

class World:
    """
    One rank's view of the world: all ranks, and their memory.

    World.create() joins the world:

        with beeline.World.create() as world:
            print(world.rank, world.size)

    Functions marked collective are called by every rank, in the same order. Every wait ends by the deadline with an Error.
    A process that a rank forks has no part in the world: calls there raise InvalidArgumentError, and its end does nothing.
    Memory of the world is a copy there: what the child writes to a view reaches no rank.

    Handlers of signals (as for Ctrl-C) run while the main thread waits. An exception of a handler, such as
    KeyboardInterrupt, ends the call. After a call that takes `timeout`, the work goes on, and the same call continues it.
    Two kinds of call abort their team instead: a collective or message of a host rank that was called without `timeout`,
    and calls that do not take `timeout`.
    """

    @staticmethod
    def create(*, device: str | None = None, deadline_s: float | None = None, heap_bytes: int | None = None) -> World:
        """
        Collective. Joins the world that the environment describes, as `beeline run`, torchrun, mpirun or srun set it.

        device      'auto', 'cpu', 'cuda:ID'; None: BEELINE_DEVICE
        deadline_s  end of every wait, in seconds; None: BEELINE_DEADLINE_S, or 30
        heap_bytes  symmetric heap of a rank, in bytes; None: BEELINE_HEAP_BYTES
        Without a launcher it is a world of one.
        """

    @property
    def rank(self) -> int:
        """This rank's number."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def device(self) -> Device:
        """This rank's device."""

    @property
    def devices(self) -> list[Device]:
        """Every rank's device, by rank."""

    @property
    def mixed(self) -> bool:
        """Whether both GPU ranks and host ranks take part."""

    @property
    def deadline_s(self) -> float:
        """The end of every wait, in seconds."""

    @property
    def failed(self) -> bool:
        """Whether the world is aborted."""

    @property
    def stream(self) -> Stream:
        """This rank's default stream."""

    def allocate(self, shape: object, dtype: object = 'uint8', *, heap: str = 'symmetric') -> Memory:
        """
        Collective. Zeroed memory at the same place on every rank, 256-byte aligned.

        shape  elements: an int, or a tuple of them; the same on every rank
        dtype  'float32' and so on, or a type of numpy or torch
        heap   'symmetric': a GPU's memory on a GPU rank, host memory on a host rank; 'pinned': host memory on all
        Raises InvalidArgumentError when ranks ask for different sizes, NoResourceError when the heap is full.
        """

    def copy(self, destination: object, source: object, stream: Stream | None = None) -> None:
        """
        Copies all bytes of one tensor to another, equally large one; both may lie on any rank (`Memory.at`).

        Blocks; with a stream it returns at once, and the copy runs in the stream's order: until `synchronize` the stream keeps
        both alive, and neither may be changed. A tensor onto itself is no work. Raises ValueError before anything is touched:
        not contiguous, read-only, sizes that differ, places that overlap otherwise.
        """

    def owner_of(self, tensor: object) -> int | None:
        """
        The rank in whose part of the world's memory the tensor lies; None for memory from elsewhere.
        """

    def barrier(self, *, timeout: float | None = None) -> None:
        """
        Collective. Blocks until every rank has called it; raises DeadlineError, naming the missing rank.

        timeout  in seconds: then it raises TimeoutError, and the same call continues the barrier; until it has returned, other
                 collective functions are refused. 0: looks once
        """

    def allgather(self, data: bytes) -> list[bytes]:
        """
        Collective. Everyone's bytes, by rank; sizes may differ. For set-up: small data, by way of the CPUs.
        """

    def allreduce(self, value: object, reduction: str = 'sum') -> object:
        """
        Collective. Every rank's number combined, in the order of ranks; all get the same. By the CPUs.

        value      an int (int64; sums wrap) or a float (float64), the same on all ranks
        reduction  as of `Collectives`
        Raises InvalidArgumentError when ranks give different types or reductions.
        """

    def make_team(self, ranks: Sequence[int], allgather: object | None = None, *, deadline_s: float | None = None) -> Team | None:
        """
        Collective. A team of some ranks; None on a rank that passes no ranks, and so stays outside.

        ranks      those of the team, ascending, this one among them; several teams may be made at once if they have no rank in
                   common
        allgather  None: all ranks of the world call. Otherwise only those of the team do, and meet by this function: it gets
                   bytes and returns a list of all members' bytes, by rank of the team, and is called twice
        deadline_s  end of every wait of the team, in seconds, where `allgather` is given; None: the world's
        Raises InvalidArgumentError when members disagree, NoResourceError beyond 31 teams, and what `allgather` raises.
        """

    def survivors(self, *, deadline_s: float | None = None) -> Team:
        """
        Collective over the ranks that have neither failed nor left, after a failure or a deadline: the ranks left.

        The remaining ranks agree on the lost ones, clear the world's abort, and go on without them. From then on only the
        remaining ranks call collective functions. Returns their team, for which collectives, messages and kernels are made
        again.

        deadline_s  a rank that does not call by then, in seconds, counts as failed; None: the world's deadline
        Raises AbortedError when this rank itself counts as failed, PeerDiedError when the launcher has ended.
        """

    def make_stream(self, *, priority: str = 'normal') -> Stream:
        """
        Another stream of this rank.

        priority  'high': where kernels of several streams wait for room on the GPU, this one's get it first, also in graphs
                  that are captured from it; 'normal': after those. All streams of a host rank are alike.
        """

    def adopt_stream(self, native: int) -> Stream:
        """
        A CUDA stream that other code made, as one of this rank's: `torch.cuda.Stream(...).cuda_stream`.

        It is not destroyed with the result, and outlives it; 0: the legacy default stream. Raises UnavailableError on a host
        rank, InvalidArgumentError for another GPU's stream.
        """

    def synchronize(self, stream: Stream | None = None, *, timeout: float | None = None) -> None:
        """
        Blocks until the work of `stream` (None: the default stream) is over; raises what went wrong in it.

        timeout  in seconds: then it raises TimeoutError, the work goes on, and a later call finds it; 0: looks once
        """

    def leave(self) -> None:
        """
        Collective. Waits for the default stream, then until every rank leaves; nothing works afterwards.

        `with world:` calls it at the end, and so does the end of the program.
        """

    def health(self) -> list[RankHealth]:
        """Every rank's state, by rank, as this rank sees it. Does not block."""

    def abort(self, reason: str) -> None:
        """
        This rank gives up: every wait of the world ends with AbortedError or PeerDiedError, naming `reason`.
        """

    def check(self) -> None:
        """
        Raises if the world is aborted or a wait has failed, naming operation, ranks and values.
        """

    def __enter__(self) -> World: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None:
        """
        Leaves the world; after an exception aborts it instead, so that other ranks do not wait.
        """

    def __repr__(self) -> str: ...

class Choice:
    """The way that a collective call takes."""

    @property
    def algorithm(self) -> str:
        """Its name, as 'll_one_shot'."""

    @property
    def blocks(self) -> int | None:
        """Blocks of threads that take part; None: copy engines move the data."""

    def __repr__(self) -> str: ...

class Collectives:
    """
    Collective operations of a team's members, on tensors.

    All members make the same calls in the same order, one after the other: on one stream, or on streams that wait for each
    other. Calls that are to run at the same time use several objects, which do not wait for each other; a call while
    another thread makes one on the same object, or waits in one, is refused. Tensors are contiguous, aligned to their
    elements, and in memory that this rank's device reaches: the GPU's own, or host memory on a host rank. Memory in the
    symmetric heap, at the same place on all ranks, is used as it is by every algorithm. Roots and parts are counted by rank
    of the team. Where one tensor has a part for each rank, the other tensor may be this rank's part of it. Tensors that are
    only moved may have any type; reductions take float32, float64, float16, bfloat16, int32, int64, uint8, uint32 and
    uint64, sums and averages also complex64 and complex128. A Collectives object that all ranks have dropped
    without `free` is freed where a heap is full; that of a team lives until it is freed, or its world is left.

    reduction  'sum', 'product', 'minimum', 'maximum', 'average'; of integers also 'bit_and', 'bit_or', 'bit_xor'
    stream     None: blocks until it is over, behind the earlier work of the default stream; otherwise it returns at once,
               `World.synchronize(stream)` tells of failures, and until then the stream keeps both tensors alive.
               `stream.record()` behind it is its handle, with `done` and `wait`
    timeout    in seconds, without a stream: then it raises TimeoutError, the work goes on, and the same call, with the same
               tensors, waits on; others on this object are refused until then, or until `World.synchronize` has returned.
               0: looks once
    algorithm  by name, the same on all ranks; 'automatic': by size
    blocks     of threads, the same on all ranks; 0: by size. Copy engines have none
    symmetric  asserts, on all ranks or none, that the vectors are symmetric: at the same offset of all ranks' heaps (of
               calls that only move data, the destinations are). Copy engines then write results to their place at once, and
               'automatic' takes engines where that is quicker. If the assertion is false, the call ends with an error
               on all ranks
    All calls raise TypeError or ValueError (InvalidArgumentError among them) before anything is touched; DeadlineError and
    the like name the rank that was waited for.
    """

    def __init__(self, team: World | Team, *, sessions: int = 0, packet_bytes: int = 0, staging_bytes: int = 0, engine_bytes: int | None = None) -> None:
        """
        Collective over the team; all give the same options. 0: by the kind and number of ranks.

        team           whose members take part: a World or a Team
        sessions       blocks that may take part in a call
        packet_bytes   payload of a round of packets, of each session from each rank
        staging_bytes  of each session, for vectors that are not symmetric, twice
        engine_bytes   of the heap, through which copy engines make large calls; None: up to an eighth of the heap where
                       the team is the world, and each rank has a GPU of its own, otherwise none
        """

    @property
    def rank(self) -> int:
        """This rank's number among those that take part."""

    @property
    def size(self) -> int:
        """How many ranks take part."""

    @property
    def last_transfer(self) -> str | None:
        """
        How the vectors of the last call got to the other ranks; ask when the call is over.

        'in_place'  zero-copy: read and written by the others where they lie
        'staged'    in and out through the channel's memory: vectors outside the heaps, for reductions also unlike places, and
                    by copy engines all that is not asserted to be symmetric
        'packets'   copied into packets, as short vectors wherever they lie (and an all-to-all-v of nothing)
        None        nothing was moved yet, or there was nothing to move. A barrier changes nothing
        """

    def free(self) -> None:
        """
        Collective over those that take part. Gives the memory back; no call works afterwards.

        Waits for the default stream; the calls on other streams must be over.
        """

    def choice(self, operation: str, count: int, dtype: object, *, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> Choice:
        """
        The algorithm and number of blocks that a call takes.

        operation  'allreduce', 'broadcast' and so on; all but 'alltoallv' and 'barrier'
        count      elements of the vector, or of the piece from one rank to another
        """

    def algorithms(self, operation: str) -> dict[str, str | None]:
        """
        The operation's algorithms by name, each with the reason why these ranks cannot use it, or None.
        """

    def alltoallv(self, destination: object, source: object, send_counts: Sequence[int], receive_counts: Sequence[int], *, stream: Stream | None = None, timeout: float | None = None) -> None:
        """
        Collective. As `alltoall`, with parts of any lengths, in elements by rank, that follow each other.
        """

    def barrier(self, *, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic') -> None:
        """
        Collective. Holds later work of the stream until all ranks' streams have come here.
        """

    def allreduce(self, destination: object, source: object | None = None, reduction: str = 'sum', *, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> None:
        """
        Collective. Combines the ranks' vectors, element by element, in the order of ranks; all get the same bits.

        destination  a vector
        source       a vector; None: in place
        """

    def broadcast(self, destination: object, source: object | None = None, *, root: int, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> None:
        """
        Collective. Copies the root's vector to all.

        destination  a vector
        source       a vector, the root's; of others it may be None; None: in place
        """

    def scatter(self, destination: object, source: object | None, *, root: int, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> None:
        """
        Collective. Copies part r of the root's vector to rank r.

        destination  a vector
        source       a part for each rank, the root's; of others it may be None
        """

    def gather(self, destination: object | None, source: object, *, root: int, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0) -> None:
        """
        Collective. Copies all vectors, by rank, to the root.

        destination  a part for each rank, the root's; of others it may be None
        source       a vector
        """

    def allgather(self, destination: object, source: object, *, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> None:
        """
        Collective. Copies all vectors, by rank, to all.

        destination  a part for each rank
        source       a vector
        """

    def reduce(self, destination: object | None, source: object, reduction: str = 'sum', *, root: int, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0) -> None:
        """
        Collective. As `allreduce`, but only the root gets the result.

        destination  a vector, the root's; of others it may be None
        source       a vector
        """

    def reduce_scatter(self, destination: object, source: object, reduction: str = 'sum', *, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0) -> None:
        """
        Collective. As `allreduce`, but rank r gets part r of the result.

        destination  a vector
        source       a part for each rank
        """

    def alltoall(self, destination: object, source: object, *, stream: Stream | None = None, timeout: float | None = None, algorithm: str = 'automatic', blocks: int = 0, symmetric: bool = False) -> None:
        """
        Collective. Copies part j of rank i's vector to part i of rank j's.

        destination  a part for each rank
        source       a part for each rank
        """

class Messages:
    """
    Messages between two ranks, driven by the ranks' devices alone.

    Between two ranks messages are matched in the order of the calls, and received as they are sent: in as many bytes,
    with elements of the same type (uint8 fits all), by as many blocks, and with the same tag; another is found, and raises
    an error that names both. Short messages go into the
    receiver's memory at once (eager); longer ones wait for the receiver, so two ranks that both send first, each on one
    stream, wait for each other until the deadline: `send_receive` does both at once. Towards one rank, calls of one
    direction are made one after the other, on one stream; other ranks, and the other direction, may have streams of their
    own.
    Tensors are as those of `Collectives`, and objects that were dropped are freed like those.
    """

    def __init__(self, team: World | Team, *, sessions: int = 0, eager_bytes: int = 0, depth: int = 0, chunk_bytes: int = 0) -> None:
        """
        Collective over the team; all give the same options. 0: by the kind and number of ranks.

        team         whose members send messages, and count each other: a World or a Team
        sessions     blocks that may share in a message
        eager_bytes  longest message that is sent without asking the receiver
        depth        messages that may be under way to one receiver, a power of two
        chunk_bytes  on each session, for messages between memory outside the heaps
        Raises UnavailableError where a rank's kernels do not reach another's memory: `StagedChannel` serves there.
        """

    def send(self, source: object, peer: int, *, stream: Stream | None = None, timeout: float | None = None, blocks: int = 0, tag: int = 0) -> None:
        """
        Sends a tensor to rank `peer`.

        stream  None: blocks until the tensor may be changed; otherwise it returns at once, `World.synchronize(stream)` tells of
                failures, and until then the stream keeps the tensor alive
        timeout  as of `Collectives`
        blocks  of threads, the same as the receiver's; 0: by size
        tag  the same as the receiver's, up to 2047
        Raises TypeError or ValueError (InvalidArgumentError among them) before anything is touched, also for a message to
        oneself that is not eager; DeadlineError and the like name the rank that was waited for.
        """

    def receive(self, destination: object, peer: int, *, stream: Stream | None = None, timeout: float | None = None, blocks: int = 0, tag: int = 0) -> None:
        """
        Receives a tensor from rank `peer`; without a stream it blocks until it is there. Otherwise as `send`.
        """

    def send_receive(self, source: object, to_peer: int, destination: object, from_peer: int, *, stream: Stream | None = None, timeout: float | None = None, blocks: int = 0, tag: int = 0) -> None:
        """
        Sends `source` and receives `destination` at once, so that neighbours swap without a deadlock.
        """

    def probe(self, peer: int) -> bool:
        """
        Whether a message from rank `peer` waits to be received: MPI's Iprobe. Does not block.

        Receives from it that this rank has started must be over. Raises UnavailableError where the channel lies in a GPU's
        memory.
        """

    def is_eager(self, bytes: int) -> bool:
        """
        Whether a message of so many bytes is sent without asking the receiver.
        """

    def free(self) -> None:
        """
        Collective over those that take part. Gives the memory back; no call works afterwards.

        Waits for the default stream; the calls on other streams must be over.
        """

class Signals:
    """
    Words of 64 bits that announce data, zero at first: so many on each rank.

    In a loop let the values grow: 1 in the first round, 2 in the second, and so on, and wait for `>=` that number. A round
    that sets the same value again, without an answer of the receiver in between, is not seen as a new one: the wait finds
    the value of the round before, and reads old data. `beeline run --check` (BEELINE_CHECK) warns of such signals.

    Calls take a stream, and are then done in its order; without one they block: the calling thread does them on a host
    rank, at once and in no order with streams; on a GPU's rank they go to the default stream. It lives until its world is
    left.

    In a CUDA graph a fixed value would be the same in each run. There, and wherever values are to go on, `sequence` is
    memory of this rank with a uint64: each run of the call adds `value` to it, and signals, or waits for, the sum.
    """

    def __init__(self, world: World, count: int) -> None:
        """Collective. All ranks give the same count."""

    def __len__(self) -> int: ...

    def signal(self, index: int, value: int, peer: int, *, stream: Stream | None = None, sequence: Memory | None = None) -> None:
        """
        Sets a signal of rank `peer`, after all that the caller, or the stream, did before.

        Raises UnreachableError where a host rank is to signal in a GPU's memory.
        """

    def signal_add(self, index: int, value: int, peer: int, *, stream: Stream | None = None) -> None:
        """
        Adds to a signal of rank `peer`, so that one counts what many send; otherwise as `signal`. Raises UnreachableError where the ranks' devices share no atomics.
        """

    def put_signal(self, destination: Memory, source: object, index: int, value: int, peer: int, *, stream: Stream | None = None, sequence: Memory | None = None) -> None:
        """
        Copies a tensor to rank `peer`, then sets a signal there. A rank that has waited for it sees the data.

        destination  memory of the world, this rank's: its place is the same at the peer; as large as `source`, of its type
        source       in memory that this rank's device reaches; the stream, if any, keeps it alive
        """

    def put_signal_add(self, destination: Memory, source: object, index: int, value: int, peer: int, *, stream: Stream | None = None) -> None:
        """The same with `signal_add`."""

    def wait(self, index: int, value: int, comparison: str = '>=', *, peer: int | None = None, stream: Stream | None = None, timeout: float | None = None, sequence: Memory | None = None) -> None:
        """
        Waits until this rank's signal compares true with `value`; then the data that it announced is there.

        comparison  '==', '!=', '>', '>=', '<', '<='; streams, and GPU ranks, wait for '>='
        peer        the rank expected to send it, named in errors; None: any
        stream      None: blocks; otherwise holds the stream's later work until then
        timeout     in seconds, without a stream: then it raises TimeoutError; the call may be repeated. 0: looks once
        """

    def read(self, index: int) -> int:
        """What this rank's signal holds now."""

    def exchange(self, index: int, value: int) -> int:
        """
        Sets this rank's signal, and returns what it held. Raises UnavailableError on a GPU rank.
        """

    def free(self) -> None:
        """Collective. Gives the memory back; no call works afterwards."""

class StagedChannel:
    """
    Messages between all pairs of ranks, through host memory at the receivers.

    The CPU threads of both ends take part. Between two ranks messages keep their order; one thread of each drives a
    direction at a time. It lives until its world is left.
    """

    def __init__(self, world: World, chunk_bytes: int = 0, slots: int = 4) -> None:
        """
        Collective.

        chunk_bytes  that a message is cut into; 0: BEELINE_CHUNK_BYTES
        slots        chunks under way from one rank to another; 1: one after the other
        """

    def send(self, source: object, peer: int, *, timeout: float | None = None) -> None:
        """
        Sends a tensor to rank `peer`; blocks until it may be changed: the slots take that much ahead.

        An empty tensor is a message like any other.

        timeout  in seconds: then it raises TimeoutError, and the same call, with the same tensor, continues; until it has
                 returned, other messages to this rank are refused. 0: does what can be done at once
        Raises InvalidArgumentError (no such peer, another call to be continued), UnreachableError (memory of a GPU that this
        rank does not reach), DeadlineError, AbortedError, PeerDiedError.
        """

    def receive(self, destination: object, peer: int, *, timeout: float | None = None) -> None:
        """
        Receives a tensor of as many bytes as rank `peer` sends; blocks until they are there. Otherwise as `send`.

        Raises InvalidArgumentError, too, where the peer's next message has another length: it stays, for a tensor of that.
        """

class HybridTransfers:
    """
    Copies and puts that go directly up to a threshold, above it through host memory.

    Longer transfers are staged on this side alone, in chunks through pinned buffers; the CPU of the destination's rank
    takes no part where the network can write. With a stream a call returns at once, and is done in the stream's order;
    without one it blocks. Staged transfers of one object use its buffers one after the other. It lives until its world is
    left.
    """

    def __init__(self, world: World, *, threshold_bytes: int = 0, chunk_bytes: int = 0, chunks: int = 0) -> None:
        """
        Collective.

        threshold_bytes  that go directly at most; 0: BEELINE_HYBRID_THRESHOLD_BYTES, and where that is 0 the path decides
        chunk_bytes      largest chunk; 0: BEELINE_HYBRID_CHUNK_BYTES
        chunks           in flight, which is the number of buffers, 1 to 64; 0: BEELINE_HYBRID_CHUNKS
        Raises InvalidArgumentError when ranks ask for different sizes, NoResourceError when the pinned heap is full.
        """

    def put(self, destination: Memory, source: object, peer: int, *, stream: Stream | None = None, timeout: float | None = None) -> None:
        """
        Copies a tensor to rank `peer`.

        destination  memory of the world, this rank's: its place is the same at the peer; as large as `source`, of its type
        stream       keeps `source` alive until `synchronize`
        timeout      in seconds, without a stream: then it raises TimeoutError, the transfer goes on, and the same call, with
                     the same tensors, continues
        """

    def copy(self, destination: object, source: object, *, stream: Stream | None = None, timeout: float | None = None) -> None:
        """
        Copies one tensor to another, equally large one; both may lie on any rank (`Memory.at`). Otherwise as `put`.
        """

    def set(self, *, threshold_bytes: int = 0, chunk_bytes: int = 0, chunks: int = 0) -> None:
        """
        Sets the options of this rank's later transfers; 0: as constructed. Raises InvalidArgumentError, without effect, for chunks that do not fit into the buffers.
        """

    def is_staged(self, destination: object, source: object) -> bool:
        """Whether a copy of these tensors would be staged."""

    @property
    def threshold_bytes(self) -> int:
        """The threshold in force; 0: the path decides."""

    @property
    def chunk_bytes(self) -> int:
        """The largest chunk in force."""

    @property
    def chunks(self) -> int:
        """The chunks in flight."""

class PutBatch:
    """
    Many short puts and signals of the calling thread to one rank, with one completion.

    A batch is begun, filled and ended again and again:

        batch.begin(peer)
        for destination, source in pairs:
            batch.put(destination, source)
        batch.signal(arrived, 0, round)
        batch.end()

    Its puts have no order among each other; a signal is set once all puts before it are in place. A put that is refused
    aborts the world. It reaches host memory: on GPU ranks that of the pinned heap. It lives until its world is left.
    """

    def __init__(self, world: World, capacity: int = 256) -> None:
        """
        Collective.

        capacity  operations for which an engine has room: a longer batch is split, and waits for the engine
        """

    def begin(self, peer: int) -> None:
        """Begins a batch to rank `peer`."""

    def put(self, destination: Memory, source: object) -> None:
        """
        Copies a tensor to the peer, as `Signals.put_signal` does. Until `end` returns, it may not be changed.
        """

    def signal(self, signals: Signals, index: int, value: int) -> None:
        """
        Sets a signal of the peer once all earlier puts of the batch are in place.
        """

    def signal_add(self, signals: Signals, index: int, value: int) -> None:
        """Adds to a signal of the peer; otherwise as `signal`."""

    def end(self) -> None:
        """
        Ends the batch, and waits until its sources may be changed; does not wait for the peer.
        """

class Object:
    """
    Elements that the CPU and devices use at one address (docs/objects.md).

    shape, dtype  a number or numbers of elements, zero at first; as 'float32', numpy.float32, torch.float32
    device  whose memory has the second copy: auto (the first GPU, else a host device), cpu:INDEX, cuda:INDEX
    protocol  automatic, protection, tracking or managed: how the CPU's accesses are noticed
    hint  none, read_mostly, streaming or device_only
    block_bytes  of the blocks that move, a power of two; 0: 64 KiB or more
    deadline_s  longest wait for the object in seconds; None: BEELINE_STREAM_DEADLINE_S

    Speaks DLPack for the CPU: `numpy.asarray(object)`, `numpy.from_dlpack(object)` and `torch.from_dlpack(object)` are
    views, whose elements move when they are used. numpy lacks bfloat16: its views of such objects are those of `host`, of
    uint16. An object itself has no elements by index, no iterator and no buffer, and is not pickled: use a view. Copies by
    CUDA's own calls, as torch's `.to('cuda')`, do not notice blocks: use `on_device`.
    """

    def __init__(self, shape: object, dtype: object = 'float32', *, device: str = 'auto', protocol: str = 'automatic', hint: str = 'none', block_bytes: int = 0, deadline_s: float | None = None) -> None: ...

    @property
    def shape(self) -> tuple:
        """In elements."""

    @property
    def dtype(self) -> str:
        """Of an element, as 'float32'."""

    @property
    def address(self) -> int:
        """On the host, and on the object's GPU."""

    @property
    def statistics(self) -> dict:
        """Faults, bytes fetched and sent so far, block_bytes, protocol in use."""

    def host(self, access: str = 'write', *, first: int = 0, count: int | None = None) -> _HostBlock:
        """
        A context manager that holds elements on the host, and gives a numpy view of all.

        access  'read' or 'write'
        first, count  the elements that are held, in the order of memory; by default all

        System calls and C libraries may use the elements meanwhile. Kernels that use the object wait. The view of an object of
        bfloat16, which numpy lacks, is of uint16.
        """

    def on_device(self, device: str | None = None, *, stream: object | None = None) -> _DeviceBlock:
        """
        A context manager that hands the object to a device, and gives a view there.

        device  its name; None: the object's own
        stream  on a GPU, the stream of the work inside: a number (cudaStream_t) or a torch.cuda.Stream; None: torch's current
                stream if torch is loaded, else CUDA's default stream

        The view speaks DLPack, as for `torch.from_dlpack`; of a host device it is a numpy array, of uint16 if the object is
        of bfloat16. The object returns to the host once the stream has passed the work of the block. Do not use the view
        afterwards. Meanwhile, other threads use the object inside `host` only: a plain access waits with Python's lock held,
        which this block needs to end.
        """

    def free(self) -> None:
        """
        Releases the memory; views must not be used any more.

        Waits for kernels, and for `host` and `on_device` of other threads; raises DeadlineError if they go on. Inside the
        calling thread's own `host` or `on_device` raises InvalidArgumentError at once.
        """

    def __dlpack__(self, **kwargs) -> object:
        """DLPack's export for the CPU, without a copy."""

    def __dlpack_device__(self) -> tuple:
        """DLPack's device: (1, 0)."""

    def __array__(self, dtype: object | None = None, copy: bool | None = None) -> object:
        """
        For `numpy.asarray(object)`: a view, or a copy as inside `host('read')`. Raises TypeError for bfloat16.
        """

    def __reduce_ex__(self, protocol: object) -> None:
        """
        Raises TypeError: an object is neither pickled nor copied by `copy.copy`.
        """

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

def read_file(path: str | os.PathLike, tensor: object, *, offset: int = 0, variant: str = 'automatic', access: str = 'automatic', block_bytes: int = 0, blocks_in_flight: int = 0, deadline_s: float | None = None, progress: object | None = None) -> int:
    """
    Reads the bytes of a contiguous tensor from a regular file; returns their number.

    tensor  in memory of a CPU or GPU: a numpy array, a torch tensor, a beeline.Memory, anything with DLPack
    offset  of the first byte in the file; the file must hold all bytes of the tensor from there
    variant  automatic, or for comparison user, pinned or double_buffered (docs/files.md)
    access  automatic; direct: past the page cache; buffered: through it
    block_bytes, blocks_in_flight  of the system calls; 0: a measured default
    deadline_s  longest time without progress in seconds; None: BEELINE_DEADLINE_S
    progress  called as progress(bytes_moved, all_bytes), about ten times a second and at the end

    Blocks without Python's lock; Ctrl-C ends it. Waits for torch's current stream of the tensor's GPU first; work of other
    streams must be over. Raises InvalidArgumentError for a file that is not there, may not be read, is no regular file or
    too short, before anything is touched.
    """

def write_file(path: str | os.PathLike, tensor: object, *, offset: int = 0, variant: str = 'automatic', access: str = 'automatic', block_bytes: int = 0, blocks_in_flight: int = 0, deadline_s: float | None = None, progress: object | None = None, durable: bool = False) -> int:
    """
    Writes the bytes of a contiguous tensor to a regular file; returns their number.

    The file is made if it does not exist, extended if it is too short, and kept outside the range. The parameters are those
    of `read_file`.

    durable  returns when the data are on the storage (fsync)

    Raises NoResourceError if there is no room, before anything is touched. After a failure the file has its former length,
    and one that was made is removed, unless others have it open or have written to it (docs/files.md).
    """

class Component:
    """What a source counts."""

    def __init__(self, kind: str, name: str, device: str = '', tick_s: float = 0.0, range_joules: float | None = None) -> None: ...

    @property
    def kind(self) -> str:
        """'gpu', 'cpu' or 'dram'."""

    @property
    def name(self) -> str:
        """As gpu0; the kind alone where there is no source."""

    @property
    def device(self) -> str:
        """A GPU's UUID, a powercap zone."""

    @property
    def tick_s(self) -> float:
        """How often the counter advances."""

    @property
    def range_joules(self) -> float | None:
        """Where the counter starts again from 0; None: it never does."""

class ComponentEnergy:
    """The energy of one component in a window."""

    @property
    def component(self) -> Component: ...

    @property
    def joules(self) -> float | None:
        """None where they are not known: see `reason`."""

    @property
    def watts(self) -> float | None:
        """Average power."""

    @property
    def error(self) -> float | None:
        """A bound, as a share of the joules."""

    @property
    def seconds(self) -> float:
        """Of the window that the joules belong to."""

    @property
    def reason(self) -> str:
        """Why there are no joules."""

    @property
    def notice(self) -> str:
        """What was done to the window."""

class Measured:
    """What a window held."""

    @property
    def seconds(self) -> float: ...

    @property
    def components(self) -> list[ComponentEnergy]: ...

    @property
    def cpu_seconds(self) -> float:
        """CPU time of this process and of its children that ended."""

    @property
    def machine_cpu_seconds(self) -> float | None:
        """CPU time of all CPUs; None where the kernel does not show it."""

    @property
    def sleep_seconds(self) -> dict[str, float]:
        """
        Time in each sleep state, summed over CPUs; empty where the kernel shows none.
        """

    @property
    def cpu_reason(self) -> str:
        """Why something of the CPUs' time is missing."""

    def joules(self, kind: str | None = None) -> float | None:
        """
        Of one kind ('gpu', 'cpu', 'dram'), or of all that are known. None where a component's joules are missing.
        """

class Sample:
    """One point of a component's power over time."""

    @property
    def component(self) -> int:
        """Index in `Meter.components`."""

    @property
    def time_s(self) -> float:
        """Since the meter was made."""

    @property
    def joules(self) -> float | None:
        """Counted since the meter was made."""

    @property
    def watts(self) -> float | None:
        """As the device tells it, otherwise the counter's slope."""

    @property
    def reason(self) -> str:
        """Why joules are missing."""

class Window:
    """The beginning of a measurement, made by `Meter.start`."""

class Meter:
    """
    Meters GPUs by NVML, CPU packages and DRAM by RAPL.

    A kind without a source has a component that says why. Any thread may call; a process may have several.
    """

    def __init__(self, *, gpus: Sequence[str] = [], powercap: str = '') -> None:
        """
        gpus      UUIDs; empty: all that NVML knows
        powercap  the folder of the kernel's energy counters; empty: BEELINE_POWERCAP
        """

    @property
    def components(self) -> list[Component]: ...

    def start(self) -> Window:
        """
        Blocks until every counter has ticked, 100 ms with GPUs; the work may begin then. Windows may overlap.
        """

    def stop(self, window: Window, *, widen: bool = False) -> Measured:
        """
        Ends the window now, and blocks until every counter has ticked once more.

        widen  joules with an error of over 2 % are those up to the next tick, with a notice; otherwise they are None
        """

    def sample_every(self, seconds: float) -> None:
        """Reads all counters in a thread, from now on."""

    def take_samples(self) -> list[Sample]:
        """The samples since the last call."""

    @property
    def dropped_samples(self) -> int:
        """How many were dropped because they were not taken in time."""

    @property
    def sampling_seconds(self) -> float:
        """CPU time of the sampling thread."""
