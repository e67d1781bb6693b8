// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "beeline/device/access.hpp"
#include "bindings.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

std::size_t element_count(const Memory::Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count)) return SIZE_MAX;
  return count;
}

}  // namespace

Memory Memory::allocate(const std::shared_ptr<JoinedWorld>& world, Shape shape, nb::dlpack::dtype type, Heap heap) {
  Memory memory;
  memory.world_ = world;
  memory.type_ = type;
  memory.heap_ = heap;
  memory.rank_ = world->world().rank();
  const std::size_t bytes = detail::array_bytes(element_count(shape), type.bits / 8u);
  memory.shape_ = std::move(shape);
  memory.mine_ = world->make_room_for([&] { return world->world().allocate(bytes, heap); });
  memory.allocation_.reset(new Allocation{*world, memory.mine_, bytes, heap});
  return memory;
}

void Memory::free() {
  World& world = world_->world();
  require(rank_ == world.rank(), Status::invalid_argument,
          fmt::format("rank {} frees memory of rank {}: each rank frees its own", world.rank(), rank_));
  require(mine_ == allocation_->address && bytes() == allocation_->bytes, Status::invalid_argument,
          "a part of memory is freed with the whole: free what World.allocate returned");
  world.free(address());
  allocation_->is_freed = true;
}

Memory::Allocation::~Allocation() {
  using Kind = JoinedWorld::Dropped::Kind;
  if (is_freed) return;
  world.drop({heap == Heap::pinned ? Kind::pinned : Kind::symmetric,
              world.known().host_context().offset_in_slot(address), address});
}

Memory Memory::part(std::size_t first, std::optional<std::size_t> count) const {
  Memory some = *this;
  if (count)
    some.shape_.front() = *count;
  else
    some.shape_.erase(some.shape_.begin());
  const std::size_t one = element_count({shape_.begin() + 1, shape_.end()}) * (type_.bits / 8u);
  some.mine_ = static_cast<std::byte*>(mine_) + first * one;
  return some;
}

Memory Memory::at(int peer) const {
  static_cast<void>(world_->world().at(static_cast<std::byte*>(mine_), peer));  // throws if there is no such rank
  Memory theirs = *this;
  theirs.rank_ = peer;
  return theirs;
}

void* Memory::address() const {
  const World& world = world_->world();
  if (allocation_->is_freed) throw Error(Status::invalid_argument, "this memory was freed");
  return rank_ == world.rank() ? mine_ : world.at(static_cast<std::byte*>(mine_), rank_);
}

std::size_t Memory::elements() const { return element_count(shape_); }
std::size_t Memory::bytes() const { return elements() * (type_.bits / 8u); }

void* destination_of_put(const nb::object& target, const Elements& source, const std::shared_ptr<JoinedWorld>& world) {
  if (!nb::isinstance<Memory>(target))
    throw nb::type_error(
        fmt::format("destination: expected a beeline.Memory, made by World.allocate, not {}", type_of(target)).c_str());
  const auto& destination = nb::cast<const Memory&>(target);
  if (destination.joined() != world || destination.rank() != world->known().rank())
    throw nb::value_error(
        "destination: this rank's memory in this world is expected (World.allocate), and the peer as a number");
  Elements to;
  to.bytes = destination.bytes(), to.type = destination.type();
  require_same_size(to, source);
  return destination.address();
}

bool Memory::on_gpu() const { return heap_ == Heap::symmetric && world_->known().device(rank_).is_gpu(); }

bool Memory::is_remote() const {
  const World& world = world_->known();
  return rank_ != world.rank() &&
         world.host_context().access_to(static_cast<std::uint32_t>(rank_)).access != PeerAccess::direct;
}

std::pair<int, int> Memory::dlpack_device() const {
  if (is_remote() && !on_gpu())
    throw nb::buffer_error(fmt::format("rank {} has no view of memory of rank {}, which is on another node: reach it "
                                       "with World.copy",
                                       world_->known().rank(), rank_)
                               .c_str());
  if (!on_gpu()) return {nb::device::cpu::value, 0};
  if (rank_ != world_->known().rank())
    throw nb::buffer_error(fmt::format("memory of rank {}'s GPU: reach it with World.copy", rank_).c_str());
  return {nb::device::cuda::value, world_->known().device().index};
}

namespace {

/// nanobind's array handles DLPack's keywords. Streams need no handling: the caller orders earlier work of a stream.
nb::object to_dlpack(const nb::object& self, const nb::kwargs& keywords) {
  const Memory& memory = nb::cast<const Memory&>(self);
  const auto [kind, number] = memory.dlpack_device();
  const nb::ndarray<nb::array_api> array(memory.address(), memory.shape().size(), memory.shape().data(), self, nullptr,
                                         memory.type(), kind, number);
  return nb::cast(array).attr("__dlpack__")(**keywords);
}

/// Called by numpy.asarray; without it numpy would treat memory as a sequence of objects.
nb::object to_numpy(const nb::object& self, const nb::object& type, const nb::object& copy) {
  const nb::object view = numpy_view_of(self, nb::cast<const Memory&>(self).type());
  return nb::module_::import_("numpy").attr("array")(view, nb::arg("dtype") = type, nb::arg("copy") = copy);
}

/// `memory[key]`, for a number or a slice.
Memory item(const Memory& memory, const nb::object& key) {
  if (memory.shape().empty()) throw nb::index_error("this memory has no axis");
  const std::size_t extent = memory.shape().front();
  if (nb::isinstance<nb::slice>(key)) {
    const auto [first, end, step, count] = nb::cast<nb::slice>(key).compute(extent);
    if (step != 1) throw nb::value_error(fmt::format("a slice with step {}: only 1 is possible", step).c_str());
    return memory.part(static_cast<std::size_t>(first), count);
  }
  const std::optional<std::int64_t> number = integer_of(key);
  if (!number) throw nb::type_error("memory[...]: expected an int or a slice of the first axis");
  std::int64_t index = *number;
  if (index < 0) index += static_cast<std::int64_t>(extent);
  if (index < 0 || index >= static_cast<std::int64_t>(extent))
    throw nb::index_error(fmt::format("the first axis has {} elements", extent).c_str());
  return memory.part(static_cast<std::size_t>(index), std::nullopt);
}

nb::tuple shape_tuple(const Memory& memory) {
  nb::list extents;
  for (const std::size_t extent : memory.shape()) extents.append(extent);
  return nb::tuple(extents);
}

std::string describe_memory(const Memory& memory) {
  return fmt::format("<beeline.Memory of rank {}: {} x ({}) in the {} heap>", memory.rank(), type_name(memory.type()),
                     fmt::join(memory.shape(), ", "), memory.heap() == Heap::pinned ? "pinned" : "symmetric");
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory",
                     R"(Elements in a heap of the world, made by `World.allocate`: at the same place on every rank.

Speaks DLPack: `numpy.from_dlpack(memory)` and `torch.from_dlpack(memory)` are views of it, without a copy. It stays
allocated until `free` is called or the world ends; views keep the world's memory mapped. Memory that all ranks have
dropped without `free` is freed where an allocation finds the heap full.)")
      .def_prop_ro("shape", shape_tuple, "Its extents, in elements.")
      .def_prop_ro(
          "dtype", [](const Memory& self) { return type_name(self.type()); }, "Type of an element, as 'float32'.")
      .def_prop_ro("bytes", &Memory::bytes, "Its size in bytes.")
      .def_prop_ro("rank", &Memory::rank, "The rank whose memory it is.")
      .def_prop_ro(
          "heap", [](const Memory& self) { return self.heap() == Heap::pinned ? "pinned" : "symmetric"; },
          "'symmetric' or 'pinned'.")
      .def_prop_ro(
          "address", [](const Memory& self) { return reinterpret_cast<std::uintptr_t>(self.address()); },
          "Its address in this process.")
      .def("__getitem__", item, nb::arg("key"), nb::sig("def __getitem__(self, key: int | slice, /) -> Memory"),
           "A part of the first axis, as Memory: `memory[2:5]`, `memory[-1]`. It is freed with the whole.")
      .def("__len__",
           [](const Memory& self) {
             if (self.shape().empty()) throw nb::type_error("this memory has no axis");
             return self.shape().front();
           })
      .def(
          "at", &Memory::at, nb::arg("peer"),
          "The same elements on rank `peer`: for `World.copy`, and, where that is a host rank of this node, for DLPack "
          "too.")
      .def("free", &Memory::free, nb::call_guard<nb::gil_scoped_release>(),
           R"(Collective. Gives the memory back, on every rank; views of it must not be used any more.

Waits for the default stream; the work of other streams must be over. Raises InvalidArgumentError for a part.)")
      .def("__dlpack__", to_dlpack, "DLPack's export, without a copy.")
      .def("__dlpack_device__", &Memory::dlpack_device, "DLPack's device: (1, 0) for CPUs, (2, index) for a GPU.")
      .def("__array__", to_numpy, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           "For `numpy.asarray(memory)`: a view, of memory that DLPack has a view of. Raises TypeError for bfloat16.")
      .def("__repr__", describe_memory);
}

}  // namespace beeline::python
