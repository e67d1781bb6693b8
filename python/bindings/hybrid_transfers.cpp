// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/hybrid_transfers.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <utility>

#include "bindings.hpp"
#include "joined_world.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "tensor.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Transfers that their world keeps.
class HybridObject {
 public:
  /// Collective.
  HybridObject(std::shared_ptr<JoinedWorld> world, std::size_t threshold_bytes, std::size_t chunk_bytes,
               std::uint32_t chunks)
      : world_(std::move(world)) {
    World& made = world_->world();
    const HybridOptions options{threshold_bytes, chunk_bytes, chunks};
    transfers_ = &world_->adopt(unlocked([&] { return std::make_unique<HybridTransfers>(made, options); }, &made));
  }

  void put(const nb::object& target, const nb::object& source, int peer, StreamObject* stream, Seconds timeout) {
    const Tensor from = tensor_of(source, "source", Access::read, *world_);
    void* const to = destination_of_put(target, from, world_);
    if (stream == nullptr)
      return finish("put", timeout,
                    [&](Timeout limit) { return transfers_->put(to, from.data, from.bytes, peer, limit); });
    Stream& queue = own(*stream, timeout);
    stream->keep({&from});
    const nb::gil_scoped_release unlocked;
    transfers_->put_on_stream(to, from.data, from.bytes, peer, &queue);
  }
  void copy(const nb::object& destination, const nb::object& source, StreamObject* stream, Seconds timeout) {
    const auto [to, from] = ends(destination, source);
    if (stream == nullptr)
      return finish("copy", timeout,
                    [&](Timeout limit) { return transfers_->copy(to.data, from.data, from.bytes, limit); });
    Stream& queue = own(*stream, timeout);
    stream->keep({&to, &from});
    const nb::gil_scoped_release unlocked;
    transfers_->copy_on_stream(to.data, from.data, from.bytes, &queue);
  }
  void set(std::size_t threshold_bytes, std::size_t chunk_bytes, std::uint32_t chunks) {
    static_cast<void>(world_->world());  // throws if it was left
    transfers_->set({threshold_bytes, chunk_bytes, chunks});
  }
  [[nodiscard]] HybridOptions options() const {
    static_cast<void>(world_->world());
    return transfers_->options();
  }
  [[nodiscard]] bool is_staged(const nb::object& destination, const nb::object& source) const {
    const auto [to, from] = ends(destination, source);
    static_cast<void>(world_->world());
    return transfers_->is_staged(to.data, from.data, from.bytes);
  }

 private:
  [[nodiscard]] std::pair<Tensor, Tensor> ends(const nb::object& destination, const nb::object& source) const {
    Tensor to = tensor_of(destination, "destination", Access::write, *world_);
    Tensor from = tensor_of(source, "source", Access::read, *world_);
    require_same_size(to, from);
    return {std::move(to), std::move(from)};
  }
  [[nodiscard]] Stream& own(const StreamObject& stream, Seconds timeout) const {
    if (stream.joined() != world_) throw nb::value_error("stream: it belongs to another world");
    if (timeout) throw nb::value_error("timeout: a call on a stream does not block; `synchronize` takes one");
    static_cast<void>(world_->world());
    return stream.stream();
  }
  template <class Transfer>
  void finish(const char* call, Seconds timeout, const Transfer& transfer) const {
    const Timeout limit = timeout_of(timeout);
    const World& world = world_->world();  // throws if it was left
    require_over(unlocked([&] { return transfer(limit); }), call, timeout, world.rank());
  }

  std::shared_ptr<JoinedWorld> world_;
  HybridTransfers* transfers_ = nullptr;
};

}  // namespace

void bind_hybrid_transfers(nb::module_& module) {
  nb::class_<HybridObject>(module, "HybridTransfers",
                           R"(Copies and puts that go directly up to a threshold, above it through host memory.

Longer transfers are staged on this side alone, in chunks through pinned buffers; the CPU of the destination's rank
takes no part where the network can write. With a stream a call returns at once, and is done in the stream's order;
without one it blocks. Staged transfers of one object use its buffers one after the other. It lives until its world is
left.)")
      .def(nb::init<std::shared_ptr<JoinedWorld>, std::size_t, std::size_t, std::uint32_t>(), nb::arg("world"),
           nb::kw_only(), nb::arg("threshold_bytes") = 0, nb::arg("chunk_bytes") = 0, nb::arg("chunks") = 0,
           R"(Collective.

threshold_bytes  that go directly at most; 0: BEELINE_HYBRID_THRESHOLD_BYTES, and where that is 0 the path decides
chunk_bytes      largest chunk; 0: BEELINE_HYBRID_CHUNK_BYTES
chunks           in flight, which is the number of buffers, 1 to 64; 0: BEELINE_HYBRID_CHUNKS
Raises InvalidArgumentError when ranks ask for different sizes, NoResourceError when the pinned heap is full.)")
      .def("put", &HybridObject::put, nb::arg("destination"), nb::arg("source"), nb::arg("peer"), nb::kw_only(),
           nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(),
           nb::sig("def put(self, destination: Memory, source: object, peer: int, *, stream: Stream | None = None, "
                   "timeout: float | None = None) -> None"),
           R"(Copies a tensor to rank `peer`.

destination  memory of the world, this rank's: its place is the same at the peer; as large as `source`, of its type
stream       keeps `source` alive until `synchronize`
timeout      in seconds, without a stream: then it raises TimeoutError, the transfer goes on, and the same call, with
             the same tensors, continues)")
      .def("copy", &HybridObject::copy, nb::arg("destination"), nb::arg("source"), nb::kw_only(),
           nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(),
           "Copies one tensor to another, equally large one; both may lie on any rank (`Memory.at`). Otherwise as "
           "`put`.")
      .def("set", &HybridObject::set, nb::kw_only(), nb::arg("threshold_bytes") = 0, nb::arg("chunk_bytes") = 0,
           nb::arg("chunks") = 0,
           "Sets the options of this rank's later transfers; 0: as constructed. Raises InvalidArgumentError, without "
           "effect, for chunks that do not fit into the buffers.")
      .def("is_staged", &HybridObject::is_staged, nb::arg("destination"), nb::arg("source"),
           "Whether a copy of these tensors would be staged.")
      .def_prop_ro(
          "threshold_bytes", [](const HybridObject& self) { return self.options().threshold_bytes; },
          "The threshold in force; 0: the path decides.")
      .def_prop_ro(
          "chunk_bytes", [](const HybridObject& self) { return self.options().chunk_bytes; },
          "The largest chunk in force.")
      .def_prop_ro(
          "chunks", [](const HybridObject& self) { return self.options().chunks; }, "The chunks in flight.");
}

}  // namespace beeline::python
