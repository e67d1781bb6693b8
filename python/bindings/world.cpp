// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <utility>

#include "beeline/runtime/bootstrap.hpp"
#include "bindings.hpp"
#include "joined_world.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "team.hpp"
#include "tensor.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

using Shared = std::shared_ptr<JoinedWorld>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

/// The ranks that are threads of this process, until each of them has joined.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks) {
    require(ranks >= 1 && ranks <= static_cast<int>(max_ranks), Status::invalid_argument,
            fmt::format("a world has 1 to {} ranks, not {}", max_ranks, ranks));
    bootstraps_ = make_thread_bootstraps(ranks);
  }
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  Shared join(int rank, const Settings& settings) {
    require(rank >= 0 && rank < static_cast<int>(bootstraps_.size()) && bootstraps_[static_cast<std::size_t>(rank)],
            Status::invalid_argument, fmt::format("rank {} has joined already, or does not exist", rank));
    return JoinedWorld::create(settings, std::move(bootstraps_[static_cast<std::size_t>(rank)]));
  }

 private:
  std::vector<std::unique_ptr<Bootstrap>> bootstraps_;
};

/// The rank; None for -1 in C++.
std::optional<int> rank_or_none(int rank) { return rank < 0 ? std::nullopt : std::optional(rank); }

Memory::Shape shape_of(const nb::object& shape) {
  Memory::Shape extents;
  const auto add = [&extents](nb::handle extent) {
    const std::optional<std::int64_t> value = integer_of(extent);
    if (!value) throw nb::type_error("shape: expected an int or a tuple of them");
    if (*value < 0) throw nb::value_error(fmt::format("shape: an extent of {}", *value).c_str());
    extents.push_back(static_cast<std::size_t>(*value));
  };
  if (PyIndex_Check(shape.ptr()) != 0) {
    add(shape);
  } else if (nb::isinstance<nb::tuple>(shape) || nb::isinstance<nb::list>(shape)) {
    for (const nb::handle extent : shape) add(extent);
  } else {
    throw nb::type_error("shape: expected an int or a tuple of them");
  }
  return extents;
}

Memory allocate(const Shared& self, const nb::object& shape, const nb::object& dtype, const std::string& heap) {
  if (heap != "symmetric" && heap != "pinned")
    throw nb::value_error(fmt::format("heap {}: known are symmetric, pinned", heap).c_str());
  Memory::Shape extents = shape_of(shape);
  const nb::dlpack::dtype type = element_type(dtype);
  const Heap where = heap == "pinned" ? Heap::pinned : Heap::symmetric;
  return unlocked([&] { return Memory::allocate(self, std::move(extents), type, where); }, &self->world());
}

StreamObject make_stream(const Shared& self, const std::string& priority) {
  if (priority != "normal" && priority != "high")
    throw nb::value_error(fmt::format("priority {}: known are normal, high", priority).c_str());
  return {self, self->world().make_stream(priority == "high" ? StreamPriority::high : StreamPriority::normal)};
}

/// Returns the stream, after checking that it belongs to this world.
StreamObject& own_stream(const Shared& self, StreamObject& stream) {
  if (stream.joined() != self) throw nb::value_error("stream: it belongs to another world");
  return stream;
}

void copy(const Shared& self, const nb::object& destination, const nb::object& source, StreamObject* stream) {
  const Tensor to = tensor_of(destination, "destination", Access::write, *self);
  const Tensor from = tensor_of(source, "source", Access::read, *self);
  require_same_size(to, from);
  World& world = self->world();
  if (stream == nullptr) {
    const nb::gil_scoped_release unlocked;
    world.copy(to.data, from.data, to.bytes);
    return;
  }
  StreamObject& queue = own_stream(self, *stream);
  queue.keep({&to, &from});
  world.copy(to.data, from.data, to.bytes, queue.stream());
}

void synchronize_stream(const Shared& self, StreamObject* stream, Seconds timeout) {
  World& world = self->world();
  Stream& queue = stream == nullptr ? world.stream() : own_stream(self, *stream).stream();
  const Timeout limit = timeout_of(timeout);
  if (&queue == &world.stream()) self->hold_default_stream();
  BlockingCall blocking;
  const auto [status, failure] = wait_unlocked(blocking, [&] { return world.synchronize(queue, limit); });
  if (&queue == &world.stream() && status != Status::timeout) self->open_calls.clear();
  if (failure) std::rethrow_exception(failure);
  require_over(status, "synchronize", timeout, world.rank());
  if (stream != nullptr) stream->let_go();
}

/// Returns one object for all calls, because it keeps the objects that the stream's work uses.
nb::object default_stream(nb::handle self) {
  constexpr const char* place = "_stream";
  if (!nb::hasattr(self, place)) nb::setattr(self, place, nb::cast(StreamObject(nb::cast<Shared>(self))));
  return self.attr(place);
}

void barrier_of_world(const Shared& self, Seconds timeout) {
  World& world = self->world();
  const Timeout limit = timeout_of(timeout);
  require_over(unlocked([&] { return world.barrier(limit); }), "barrier", timeout, world.rank());
}

StreamObject adopt_stream(const Shared& self, std::uintptr_t native) {
  return {self, self->world().adopt_stream(reinterpret_cast<void*>(native))};
}

std::vector<nb::bytes> allgather(const Shared& self, const nb::bytes& mine) { return gathered(self->world(), mine); }

std::vector<Device> devices(const Shared& self) {
  std::vector<Device> all;
  for (int rank = 0; rank < self->known().size(); ++rank) all.push_back(self->known().device(rank));
  return all;
}

std::optional<int> owner_of(const Shared& self, const nb::object& tensor) {
  return rank_or_none(self->world().owner_of(tensor_of(tensor, "tensor", Access::read, *self).data));
}

void leave(const Shared& self) {
  if (!self->has_left()) unlocked([&] { self->leave(); }, &self->world());
}

/// Describes an exception. If the exception's own text raises, the description still names its type.
std::string text_of_exception(const nb::object& type, const nb::object& value) {
  const auto name = nb::cast<std::string>(type.attr("__name__"));
  try {
    return fmt::format("{}: {}", name, nb::str(value).c_str());
  } catch (const nb::python_error&) {
    return name + ", whose text cannot be made";
  }
}

/// The end of `with world:`. After an exception it aborts the world, because the other ranks would wait for this rank.
/// In a forked child it does nothing, since the world is the parent's.
void leave_or_abort(const Shared& self, const nb::object& type, const nb::object& value,
                    const nb::object& /*traceback*/) {
  if (self->known().life()->is_forked()) return;
  if (type.is_none()) return leave(self);
  const std::string reason = text_of_exception(type, value);
  const nb::gil_scoped_release unlocked;
  self->abort(reason);
}

void bind_device(nb::module_& module) {
  nb::class_<Device>(module, "Device", "What a rank runs on.")
      .def_prop_ro(
          "kind", [](const Device& self) { return self.is_gpu() ? "gpu" : "host"; }, "'gpu' or 'host'.")
      .def_prop_ro(
          "index", [](const Device& self) { return rank_or_none(self.is_gpu() ? self.index : -1); },
          "The GPU's number in its rank's process; None for a host device.")
      .def_ro("uuid", &Device::uuid, "The GPU's UUID; empty for a host device.")
      .def_ro("name", &Device::name, "The GPU's or CPU's model.")
      .def_ro("memory_bytes", &Device::memory_bytes, "Memory in bytes.")
      .def("__repr__", [](const Device& self) {
        return self.is_gpu() ? fmt::format("<beeline.Device gpu {}: {}>", self.index, self.name)
                             : fmt::format("<beeline.Device host: {}>", self.name);
      });
}

void bind_health(nb::module_& module) {
  nb::class_<RankHealth>(module, "RankHealth", "The state of a rank, as another sees it.")
      .def_prop_ro(
          "state", [](const RankHealth& self) { return name(self.state); }, "'healthy', 'failed' or 'left'.")
      .def_prop_ro(
          "noticed_by", [](const RankHealth& self) { return rank_or_none(self.noticed_by); },
          "Of a failed rank: the rank that noticed it; None: the launcher did.")
      .def_ro("reason", &RankHealth::reason, "Of a failed rank: one line.")
      .def("__repr__", [](const RankHealth& self) {
        return fmt::format("<beeline.RankHealth {}{}{}>", name(self.state), self.reason.empty() ? "" : ": ",
                           self.reason);
      });
}

using WorldClass = nb::class_<JoinedWorld>;

void bind_members(WorldClass& world) {
  world
      .def_prop_ro(
          "rank", [](const Shared& self) { return self->known().rank(); }, "This rank's number.")
      .def_prop_ro(
          "size", [](const Shared& self) { return self->known().size(); }, "How many ranks there are.")
      .def_prop_ro(
          "device", [](const Shared& self) { return self->known().device(); }, "This rank's device.")
      .def_prop_ro("devices", devices, "Every rank's device, by rank.")
      .def_prop_ro(
          "mixed", [](const Shared& self) { return self->known().mixed(); },
          "Whether both GPU ranks and host ranks take part.")
      .def_prop_ro(
          "deadline_s",
          [](const Shared& self) { return static_cast<double>(self->known().config().deadline_ns) / 1e9; },
          "The end of every wait, in seconds.")
      .def_prop_ro(
          "failed", [](const Shared& self) { return self->known().failed(); }, "Whether the world is aborted.")
      .def_prop_ro("stream", default_stream, nb::for_getter(nb::sig("def stream(self) -> Stream")),
                   "This rank's default stream.");
}

void bind_memory_functions(WorldClass& world) {
  world
      .def("allocate", allocate, nb::arg("shape"), nb::arg("dtype") = "uint8", nb::kw_only(),
           nb::arg("heap") = "symmetric",
           R"(Collective. Zeroed memory at the same place on every rank, 256-byte aligned.

shape  elements: an int, or a tuple of them; the same on every rank
dtype  'float32' and so on, or a type of numpy or torch
heap   'symmetric': a GPU's memory on a GPU rank, host memory on a host rank; 'pinned': host memory on all
Raises InvalidArgumentError when ranks ask for different sizes, NoResourceError when the heap is full.)")
      .def("copy", copy, nb::arg("destination"), nb::arg("source"), nb::arg("stream") = nb::none(),
           R"(Copies all bytes of one tensor to another, equally large one; both may lie on any rank (`Memory.at`).

Blocks; with a stream it returns at once, and the copy runs in the stream's order: until `synchronize` the stream keeps
both alive, and neither may be changed. A tensor onto itself is no work. Raises ValueError before anything is touched:
not contiguous, read-only, sizes that differ, places that overlap otherwise.)")
      .def("owner_of", owner_of, nb::arg("tensor"),
           "The rank in whose part of the world's memory the tensor lies; None for memory from elsewhere.");
}

void bind_working_together(WorldClass& world) {
  world
      .def("barrier", barrier_of_world, nb::kw_only(), nb::arg("timeout") = nb::none(),
           R"(Collective. Blocks until every rank has called it; raises DeadlineError, naming the missing rank.

timeout  in seconds: then it raises TimeoutError, and the same call continues the barrier; until it has returned, other
         collective functions are refused. 0: looks once)")
      .def("allgather", allgather, nb::arg("data"),
           "Collective. Everyone's bytes, by rank; sizes may differ. For set-up: small data, by way of the CPUs.")
      .def(
          "allreduce",
          [](const Shared& self, nb::handle value, const std::string& reduction) {
            return allreduced(self->world(), value, reduction);
          },
          nb::arg("value"), nb::arg("reduction") = "sum",
          R"(Collective. Every rank's number combined, in the order of ranks; all get the same. By the CPUs.

value      an int (int64; sums wrap) or a float (float64), the same on all ranks
reduction  as of `Collectives`
Raises InvalidArgumentError when ranks give different types or reductions.)")
      .def("make_team", &TeamObject::make, nb::arg("ranks"), nb::arg("allgather") = nb::none(), nb::kw_only(),
           nb::arg("deadline_s") = nb::none(),
           R"(Collective. A team of some ranks; None on a rank that passes no ranks, and so stays outside.

ranks      those of the team, ascending, this one among them; several teams may be made at once if they have no rank in
           common
allgather  None: all ranks of the world call. Otherwise only those of the team do, and meet by this function: it gets
           bytes and returns a list of all members' bytes, by rank of the team, and is called twice
deadline_s  end of every wait of the team, in seconds, where `allgather` is given; None: the world's
Raises InvalidArgumentError when members disagree, NoResourceError beyond 31 teams, and what `allgather` raises.)")
      .def(
          "survivors", &TeamObject::survivors, nb::kw_only(), nb::arg("deadline_s") = nb::none(),
          R"(Collective over the ranks that have neither failed nor left, after a failure or a deadline: the ranks left.

The remaining ranks agree on the lost ones, clear the world's abort, and go on without them. From then on only the
remaining ranks call collective functions. Returns their team, for which collectives, messages and kernels are made
again.

deadline_s  a rank that does not call by then, in seconds, counts as failed; None: the world's deadline
Raises AbortedError when this rank itself counts as failed, PeerDiedError when the launcher has ended.)")
      .def("make_stream", make_stream, nb::kw_only(), nb::arg("priority") = "normal",
           R"(Another stream of this rank.

priority  'high': where kernels of several streams wait for room on the GPU, this one's get it first, also in graphs
          that are captured from it; 'normal': after those. All streams of a host rank are alike.)")
      .def("adopt_stream", adopt_stream, nb::arg("native"),
           R"(A CUDA stream that other code made, as one of this rank's: `torch.cuda.Stream(...).cuda_stream`.

It is not destroyed with the result, and outlives it; 0: the legacy default stream. Raises UnavailableError on a host
rank, InvalidArgumentError for another GPU's stream.)")
      .def("synchronize", synchronize_stream, nb::arg("stream") = nb::none(), nb::kw_only(),
           nb::arg("timeout") = nb::none(),
           R"(Blocks until the work of `stream` (None: the default stream) is over; raises what went wrong in it.

timeout  in seconds: then it raises TimeoutError, the work goes on, and a later call finds it; 0: looks once)")
      .def("leave", leave,
           R"(Collective. Waits for the default stream, then until every rank leaves; nothing works afterwards.

`with world:` calls it at the end, and so does the end of the program.)");
}

void bind_failure(WorldClass& world) {
  world
      .def(
          "health", [](const Shared& self) { return self->world().health(); },
          "Every rank's state, by rank, as this rank sees it. Does not block.")
      .def(
          "abort", [](const Shared& self, const std::string& reason) { self->world().abort(reason); },
          nb::arg("reason"), Unlocked(),
          "This rank gives up: every wait of the world ends with AbortedError or PeerDiedError, naming `reason`.")
      .def(
          "check", [](const Shared& self) { self->world().check(); }, Unlocked(),
          "Raises if the world is aborted or a wait has failed, naming operation, ranks and values.")
      .def("__enter__", [](const Shared& self) { return self; })
      .def("__exit__", leave_or_abort, nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
           "Leaves the world; after an exception aborts it instead, so that other ranks do not wait.")
      .def("__repr__", [](const Shared& self) {
        return fmt::format("<beeline.World rank {} of {}>", self->known().rank(), self->known().size());
      });
}

}  // namespace

void bind_world(nb::module_& module) {
  bind_device(module);
  bind_health(module);
  WorldClass world(module, "World", nb::dynamic_attr(), R"(One rank's view of the world: all ranks, and their memory.

World.create() joins the world:

    with beeline.World.create() as world:
        print(world.rank, world.size)

Functions marked collective are called by every rank, in the same order. Every wait ends by the deadline with an Error.
A process that a rank forks has no part in the world: calls there raise InvalidArgumentError, and its end does nothing.
Memory of the world is a copy there: what the child writes to a view reaches no rank.

Handlers of signals (as for Ctrl-C) run while the main thread waits. An exception of a handler, such as
KeyboardInterrupt, ends the call. After a call that takes `timeout`, the work goes on, and the same call continues it.
Two kinds of call abort their team instead: a collective or message of a host rank that was called without `timeout`,
and calls that do not take `timeout`.)");
  world.def_static(
      "create",
      [](std::optional<std::string> device, std::optional<double> deadline_s, std::optional<std::size_t> heap_bytes) {
        return unlocked([&] { return JoinedWorld::create({std::move(device), deadline_s, heap_bytes}); });
      },
      nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("deadline_s") = nb::none(),
      nb::arg("heap_bytes") = nb::none(),
      R"(Collective. Joins the world that the environment describes, as `beeline run`, torchrun, mpirun or srun set it.

device      'auto', 'cpu', 'cuda:ID'; None: BEELINE_DEVICE
deadline_s  end of every wait, in seconds; None: BEELINE_DEADLINE_S, or 30
heap_bytes  symmetric heap of a rank, in bytes; None: BEELINE_HEAP_BYTES
Without a launcher it is a world of one.)");
  bind_members(world);
  bind_memory_functions(world);
  bind_working_together(world);
  bind_failure(world);

  module.def(
      "_join_world",
      [](int rank, int size, const std::string& host, const nb::callable& share, std::optional<double> deadline_s) {
        require(size >= 1 && size <= static_cast<int>(max_ranks) && rank >= 0 && rank < size, Status::invalid_argument,
                fmt::format("rank {} of {}: a world has 1 to {} ranks", rank, size, max_ranks));
        const ShareText text = [&share](const std::string& mine) {
          const nb::gil_scoped_acquire locked;
          return nb::cast<std::string>(share(mine));
        };
        const Settings settings{.device = std::nullopt, .deadline_s = deadline_s, .heap_bytes = std::nullopt};
        return unlocked([&] { return JoinedWorld::create(settings, Meeting{rank, size, host, text}); });
      },
      nb::arg("rank"), nb::arg("size"), nb::arg("host"), nb::arg("share"), nb::arg("deadline_s").none(),
      "Collective. The world of ranks that another library has counted, which meet by `share` (C++: `join_world`).");

  nb::class_<ThreadRanks>(module, "_ThreadRanks", "Ranks that are threads of this process: for `beeline.run`.")
      .def(nb::init<int>(), nb::arg("ranks"))
      .def(
          "deadline_s",
          [](const ThreadRanks& /*self*/, std::optional<double> deadline_s) {
            return static_cast<double>(Settings{std::nullopt, deadline_s, std::nullopt}.config().deadline_ns) * 1e-9;
          },
          nb::arg("deadline_s").none(), "End of a rank's waits, in seconds.")
      .def(
          "join",
          [](ThreadRanks& self, int rank, std::optional<std::string> device, std::optional<double> deadline_s,
             std::optional<std::size_t> heap_bytes) {
            return self.join(rank, {std::move(device), deadline_s, heap_bytes});
          },
          nb::arg("rank"), nb::arg("device").none(), nb::arg("deadline_s").none(), nb::arg("heap_bytes").none(),
          Unlocked(), "Collective. The world of this thread's rank.");
  module.def(
      "_end_worlds", [](const std::string& reason) { unlocked([&] { JoinedWorld::end_all(reason); }); },
      nb::arg("reason"), "Leaves the worlds of this process, or aborts them with a reason.");
}

}  // namespace beeline::python
