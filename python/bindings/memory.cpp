// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <utility>

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
  memory.freed_ = std::make_shared<bool>(false);
  const std::size_t bytes = detail::array_bytes(element_count(shape), type.bits / 8u);
  memory.shape_ = std::move(shape);
  memory.mine_ = world->world().allocate(bytes, heap);
  return memory;
}

void Memory::free() {
  World& world = world_->world();
  require(rank_ == world.rank(), Status::invalid_argument,
          fmt::format("rank {} frees memory of rank {}: each rank frees its own", world.rank(), rank_));
  world.free(address());
  *freed_ = true;
}

Memory Memory::at(int peer) const {
  static_cast<void>(world_->world().at(static_cast<std::byte*>(mine_), peer));  // whether there is such a rank
  Memory theirs = *this;
  theirs.rank_ = peer;
  return theirs;
}

void* Memory::address() const {
  const World& world = world_->world();
  if (*freed_) throw Error(Status::invalid_argument, "this memory was freed");
  return rank_ == world.rank() ? mine_ : world.at(static_cast<std::byte*>(mine_), rank_);
}

std::size_t Memory::elements() const { return element_count(shape_); }
std::size_t Memory::bytes() const { return elements() * (type_.bits / 8u); }

bool Memory::on_gpu() const { return heap_ == Heap::symmetric && world_->known().device(rank_).is_gpu(); }

std::pair<int, int> Memory::dlpack_device() const {
  if (!on_gpu()) return {nb::device::cpu::value, 0};
  if (rank_ != world_->known().rank())
    throw nb::buffer_error(fmt::format("memory of rank {}'s GPU: reach it with World.copy", rank_).c_str());
  return {nb::device::cuda::value, world_->known().device().index};
}

namespace {

/// Keywords as DLPack has them are answered by nanobind's array. Streams need no care: what has been put on one before
/// is the caller's to order.
nb::object to_dlpack(const nb::object& self, const nb::kwargs& keywords) {
  const Memory& memory = nb::cast<const Memory&>(self);
  const auto [kind, number] = memory.dlpack_device();
  const nb::ndarray<nb::array_api> array(memory.address(), memory.shape().size(), memory.shape().data(), self, nullptr,
                                         memory.type(), kind, number);
  return nb::cast(array).attr("__dlpack__")(**keywords);
}

nb::tuple shape_tuple(const Memory& memory) {
  nb::list extents;
  for (const std::size_t extent : memory.shape()) extents.append(extent);
  return nb::tuple(extents);
}

std::string describe(const Memory& memory) {
  return fmt::format("<beeline.Memory of rank {}: {} x ({}) in the {} heap>", memory.rank(), type_name(memory.type()),
                     fmt::join(memory.shape(), ", "), memory.heap() == Heap::pinned ? "pinned" : "symmetric");
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory",
                     R"(Elements in a heap of the world, made by `World.allocate`: at the same place on every rank.

Speaks DLPack: `numpy.from_dlpack(memory)` and `torch.from_dlpack(memory)` are views of it, without a copy. It stays
allocated until `free` is called or the world ends; views keep the world's memory mapped.)")
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
      .def("at", &Memory::at, nb::arg("peer"),
           "The same elements on rank `peer`: for `World.copy`, and, where that is a host rank, for DLPack too.")
      .def("free", &Memory::free, nb::call_guard<nb::gil_scoped_release>(),
           R"(Collective. Gives the memory back, on every rank; views of it must not be used any more.

Waits for the default stream; the work of other streams must be over.)")
      .def("__dlpack__", to_dlpack, "DLPack's export, without a copy.")
      .def("__dlpack_device__", &Memory::dlpack_device, "DLPack's device: (1, 0) for CPUs, (2, index) for a GPU.")
      .def("__repr__", describe);
}

}  // namespace beeline::python
