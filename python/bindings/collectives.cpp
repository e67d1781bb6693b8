// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/collectives.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "joined_world.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// The enumerator whose name is `wanted`; throws ValueError that lists all `count` names.
template <class Enumeration>
Enumeration by_name(const std::string& wanted, std::uint32_t count, const char* argument) {
  std::string known;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* const each = name(static_cast<Enumeration>(i));
    if (wanted == each) return static_cast<Enumeration>(i);
    known += fmt::format("{}{}", i == 0 ? "" : ", ", each);
  }
  throw nb::value_error(fmt::format("{} {}: known are {}", argument, wanted, known).c_str());
}

/// How a call is to be made, in Python's words.
struct Choice {
  std::string algorithm;
  unsigned blocks;
};

CollectiveCall call_of(const std::string& algorithm, unsigned blocks) {
  return {.algorithm = by_name<Algorithm>(algorithm, algorithms, "algorithm"), .blocks = blocks};
}

/// A channel that its world keeps.
class CollectivesObject {
 public:
  /// Collective.
  CollectivesObject(std::shared_ptr<JoinedWorld> world, unsigned lanes, std::size_t packet_bytes,
                    std::size_t staging_bytes, bool checks)
      : world_(std::move(world)) {
    const CollectiveOptions options{
        .lanes = lanes, .packet_bytes = packet_bytes, .staging_bytes = staging_bytes, .checks = checks};
    const nb::gil_scoped_release unlocked;
    collectives_ = &world_->adopt(std::make_unique<Collectives>(world_->world(), options));
  }

  void allreduce(const nb::object& destination, const nb::object& source, const std::string& reduction,
                 StreamObject* stream, const std::string& algorithm, unsigned blocks) {
    const Tensor to = vector(destination, "destination", Access::write);
    const Tensor from = source.is_none() || source.is(destination) ? to : vector(source, "source", Access::read);
    check_alike(to, from);
    const auto type = by_name<ElementType>(to.type, element_types, "element type");
    const auto how = by_name<Reduction>(reduction, reductions, "reduction");
    run(stream, call_of(algorithm, blocks), {to.owner, from.owner}, [&](const CollectiveCall& call) {
      collectives_->allreduce_on_stream(to.data, from.data, to.elements, type, how, call);
    });
  }

  [[nodiscard]] Choice allreduce_choice(std::size_t count, const nb::object& dtype, const std::string& algorithm,
                                        unsigned blocks) const {
    const auto type = by_name<ElementType>(type_name(element_type(dtype)), element_types, "element type");
    static_cast<void>(world_->world());
    const CollectiveCall choice = collectives_->allreduce_choice(count, type, call_of(algorithm, blocks));
    return {name(choice.algorithm), choice.blocks};
  }

 private:
  /// A tensor that this rank's device reaches.
  [[nodiscard]] Tensor vector(const nb::object& object, const char* argument, Access access) const {
    Tensor tensor = tensor_of(object, argument, access, *world_);
    const World& world = world_->world();
    const Device& device = world.device();
    const bool reached =
        device.is_gpu() ? tensor.gpu == device.index || world.owner_of(tensor.data) >= 0 : tensor.gpu < 0;
    if (!reached)
      throw nb::value_error(fmt::format("{}: a tensor {}, but rank {} runs on {}", argument,
                                        tensor.gpu < 0 ? "in host memory" : fmt::format("on GPU {}", tensor.gpu),
                                        world.rank(), device.is_gpu() ? fmt::format("GPU {}", device.index) : "a CPU")
                                .c_str());
    return tensor;
  }

  static void check_alike(const Tensor& to, const Tensor& from) {
    if (to.type != from.type || to.elements != from.elements)
      throw nb::value_error(fmt::format("destination has {} elements of {}, source {} of {}: they must be alike",
                                        to.elements, to.type, from.elements, from.type)
                                .c_str());
  }

  /// Makes a call on `stream`, which keeps the tensors; without one, on the default stream, and blocks until it is
  /// over.
  template <class Call>
  void run(StreamObject* stream, CollectiveCall how, std::initializer_list<nb::object> tensors, Call call) {
    World& world = world_->world();
    if (stream == nullptr) {
      const nb::gil_scoped_release unlocked;
      call(how);
      world.synchronize();
      return;
    }
    if (stream->joined() != world_) throw nb::value_error("stream: it belongs to another world");
    stream->keep(tensors);
    how.stream = &stream->stream();
    const nb::gil_scoped_release unlocked;
    call(how);
  }

  std::shared_ptr<JoinedWorld> world_;
  Collectives* collectives_ = nullptr;
};

}  // namespace

void bind_collectives(nb::module_& module) {
  nb::class_<Choice>(module, "Choice", "The way that a collective call takes.")
      .def_ro("algorithm", &Choice::algorithm, "Its name, as 'packets_one_shot'.")
      .def_ro("blocks", &Choice::blocks, "Blocks of threads that take part.")
      .def("__repr__", [](const Choice& self) {
        return fmt::format("<beeline.Choice {} in {} blocks>", self.algorithm, self.blocks);
      });

  nb::class_<CollectivesObject>(module, "Collectives", R"(Collective operations of all ranks, on tensors.

All ranks make the same calls in the same order, one after the other: on one stream, or on streams that wait for each
other. Calls that are to go on at the same time use several objects. Tensors are contiguous, aligned to their elements,
and in memory that this rank's device reaches: the GPU's own, or host memory on a host rank. Memory in the symmetric
heap, at the same place on all ranks, is used as it is by every algorithm. It lives until its world is left.)")
      .def(nb::init<std::shared_ptr<JoinedWorld>, unsigned, std::size_t, std::size_t, bool>(), nb::arg("world"),
           nb::kw_only(), nb::arg("lanes") = 0, nb::arg("packet_bytes") = 0, nb::arg("staging_bytes") = 0,
           nb::arg("checks") = false,
           R"(Collective; all ranks give the same options. 0: by the kind and number of ranks.

lanes          blocks that may take part in a call
packet_bytes   payload of a round of packets, on each lane from each rank
staging_bytes  on each lane, for vectors that do not lie alike on all ranks, twice
checks         the ranks compare every call, and find those that differ or overlap)")
      .def("allreduce", &CollectivesObject::allreduce, nb::arg("destination"), nb::arg("source") = nb::none(),
           nb::arg("reduction") = "sum", nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("algorithm") = "automatic", nb::arg("blocks") = 0,
           R"(Collective. Combines the ranks' vectors, element by element, in the order of ranks; all get the same bits.

source     alike on all ranks; None, or the same object as `destination`: in place. float32, float64, float16, bfloat16,
           int32, int64, uint8
reduction  'sum', 'product', 'minimum', 'maximum', 'average'; of integers also 'bit_and', 'bit_or', 'bit_xor'
stream     None: blocks until it is over; otherwise it returns at once, `World.synchronize(stream)` tells of failures,
           and until then the stream keeps both tensors alive
algorithm  by name, the same on all ranks; 'automatic': by size
blocks     of threads, the same on all ranks; 0: by size
Raises TypeError or ValueError (InvalidArgumentError among them) before anything is touched; DeadlineError and the like
name who was waited for.)")
      .def("allreduce_choice", &CollectivesObject::allreduce_choice, nb::arg("count"), nb::arg("dtype"), nb::kw_only(),
           nb::arg("algorithm") = "automatic", nb::arg("blocks") = 0,
           "The algorithm and number of blocks that `allreduce` takes for `count` elements.");
}

}  // namespace beeline::python
