// SPDX-License-Identifier: Apache-2.0
#include "beeline/control/put_batch.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "joined_world.hpp"
#include "memory.hpp"
#include "signals.hpp"
#include "tensor.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Memory for a batch's entries, which its world keeps.
using Entries = SymmetricArray<BatchEntry>;

class BatchObject {
 public:
  /// Collective.
  BatchObject(std::shared_ptr<JoinedWorld> world, std::uint32_t capacity) : world_(std::move(world)) {
    if (capacity == 0) throw nb::value_error("capacity: 0 operations");
    World& made = world_->world();
    Entries& entries =
        world_->adopt(unlocked([&] { return std::make_unique<Entries>(made, capacity, Heap::pinned); }, &made));
    batch_ = std::make_unique<PutBatch>(made.host_context(), entries.data(), capacity);
  }

  void begin(int peer) {
    World& world = world_->world();
    if (peer < 0 || peer >= world.size())
      throw nb::value_error(fmt::format("peer {} of a world of {}", peer, world.size()).c_str());
    require_ok(world, batch_->begin(Thread{}, static_cast<std::uint32_t>(peer)));
  }
  void put(const nb::object& target, const nb::object& source) {
    Tensor from = reached_tensor(source, "source", Access::read, *world_);
    auto* const to = static_cast<std::byte*>(destination_of_put(target, from, world_));
    require_ok(world_->world(), batch_->put(Thread{}, to, static_cast<const std::byte*>(from.data), from.bytes));
    if (from.bytes > max_inline_bytes_in_batch) sources_.push_back(std::move(from.owner));
  }
  void signal(const nb::object& signals, std::size_t index, std::uint64_t value) {
    require_ok(world_->world(), batch_->signal(Thread{}, signal_of(signals, index, world_), value));
  }
  void signal_add(const nb::object& signals, std::size_t index, std::uint64_t value) {
    require_ok(world_->world(), batch_->signal_add(Thread{}, signal_of(signals, index, world_), value));
  }
  void end() {
    World& world = world_->world();
    Status status = batch_->end(Thread{});
    if (status == Status::ok)
      status = unlocked([&] { return flush(Thread{}, world.host_context(), QueueId{}); }, &world);
    sources_.clear();
    require_ok(world, status);
  }

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<PutBatch> batch_;
  std::vector<nb::object> sources_;  ///< an engine may read them until the end
};

}  // namespace

void bind_put_batch(nb::module_& module) {
  nb::class_<BatchObject>(module, "PutBatch",
                          R"(Many short puts and signals of the calling thread to one rank, with one completion.

A batch is begun, filled and ended again and again:

    batch.begin(peer)
    for destination, source in pairs:
        batch.put(destination, source)
    batch.signal(arrived, 0, round)
    batch.end()

Its puts have no order among each other; a signal is set once all puts before it are in place. A put that is refused
aborts the world. It reaches host memory: on GPU ranks that of the pinned heap. It lives until its world is left.)")
      .def(nb::init<std::shared_ptr<JoinedWorld>, std::uint32_t>(), nb::arg("world"), nb::arg("capacity") = 256,
           R"(Collective.

capacity  operations for which an engine has room: a longer batch is split, and waits for the engine)")
      .def("begin", &BatchObject::begin, nb::arg("peer"), "Begins a batch to rank `peer`.")
      .def("put", &BatchObject::put, nb::arg("destination"), nb::arg("source"),
           nb::sig("def put(self, destination: Memory, source: object) -> None"),
           R"(Copies a tensor to the peer, as `Signals.put_signal` does. Until `end` returns, it may not be changed.)")
      .def("signal", &BatchObject::signal, nb::arg("signals"), nb::arg("index"), nb::arg("value"),
           nb::sig("def signal(self, signals: Signals, index: int, value: int) -> None"),
           "Sets a signal of the peer once all earlier puts of the batch are in place.")
      .def("signal_add", &BatchObject::signal_add, nb::arg("signals"), nb::arg("index"), nb::arg("value"),
           nb::sig("def signal_add(self, signals: Signals, index: int, value: int) -> None"),
           "Adds to a signal of the peer; otherwise as `signal`.")
      .def("end", &BatchObject::end,
           "Ends the batch, and waits until its sources may be changed; does not wait for the peer.");
}

}  // namespace beeline::python
