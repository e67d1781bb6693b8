// SPDX-License-Identifier: Apache-2.0
#include "torch_table.hpp"

#include <cstddef>
#include <exception>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "bindings.hpp"

namespace nb = nanobind;

namespace beeline::torch_table {

struct Calls {
  std::shared_ptr<python::GroupCalls> group;
};

struct End {
  python::CallEnd end;
};

}  // namespace beeline::torch_table

namespace beeline::python {

namespace {

using torch_table::Calls;
using torch_table::Collective;
using torch_table::End;
using torch_table::Manner;
using torch_table::Operand;

constexpr Operation numbered[] = {Operation::allreduce,      Operation::broadcast, Operation::scatter,
                                  Operation::gather,         Operation::allgather, Operation::reduce,
                                  Operation::reduce_scatter, Operation::alltoall};
static_assert(std::size(numbered) == static_cast<std::size_t>(Collective::alltoall) + 1);

const CollectiveShape& shape_of(Collective collective) {
  static_assert([] {
    for (std::size_t i = 0; i < std::size(numbered); ++i)
      if (collective_shapes[i].operation != numbered[i]) return false;
    return true;
  }());
  return collective_shapes[static_cast<std::size_t>(collective)];
}

thread_local std::exception_ptr failure;  ///< from the latest failed call of this thread

/// Runs a function of the table; stores its exception, if any, and returns the status.
template <class Part>
int guarded(const Part& part) {
  try {
    part();
    return 0;
  } catch (...) {
    failure = std::current_exception();
    return 1;
  }
}

void hand_over(Ended ended, End** end) { *end = ended ? new End{std::move(*ended)} : nullptr; }

GroupCalls::Operand described(const Operand* operand, const char* argument, const GroupCalls& calls) {
  const auto& tensor = *static_cast<const nb::dlpack::dltensor*>(operand->tensor);
  return {reached_elements(tensor, "Tensor", argument, *calls.joined()), *operand};
}

int call(Calls* calls, Collective collective, const Operand* output, const Operand* source, std::uint32_t reduction,
         int root, const Manner* manner, End** end) {
  return guarded([&] {
    GroupCalls& group = *calls->group;
    const CollectiveShape& shape = shape_of(collective);
    const GroupCalls::Parts parts = group.parts(shape, root);
    const bool in_place = parts.output != 0 && output->tensor == source->tensor;
    GroupCalls::Operand to, from;
    if (parts.output != 0) to = described(output, "output", group);
    if (parts.source != 0) from = in_place ? to : described(source, "input", group);
    hand_over(group.call(shape, to, from, static_cast<Reduction>(reduction), root, *manner), end);
  });
}

int alltoallv(Calls* calls, const Operand* output, const Operand* source, const std::size_t* send_bytes,
              const std::size_t* receive_bytes, const Manner* manner, End** end) {
  return guarded([&] {
    GroupCalls& group = *calls->group;
    const GroupCalls::Operand to = described(output, "output", group), from = described(source, "input", group);
    const Counts send(send_bytes, send_bytes + group.ranks()), receive(receive_bytes, receive_bytes + group.ranks());
    hand_over(group.alltoallv(to, from, send, receive, *manner), end);
  });
}

int barrier(Calls* calls, const Manner* manner, End** end) {
  return guarded([&] { hand_over(calls->group->barrier(*manner), end); });
}

int record(Calls* calls, void* current_stream, End** end) {
  return guarded([&] { *end = new End{calls->group->record(current_stream)}; });
}

int synchronize(Calls* calls) {
  return guarded([&] { calls->group->synchronize(); });
}

int synchronize_current(Calls* calls, void* current_stream) {
  return guarded([&] { calls->group->synchronize_current(current_stream); });
}

int wait(const End* end, double timeout_s, void* current_stream) {
  return guarded([&] { end->end.wait(timeout_s < 0 ? std::nullopt : Seconds(timeout_s), current_stream); });
}

bool is_reached(const End* end) { return end->end.query(); }

void let_go(End* end) { delete end; }

void raise() {
  try {
    std::rethrow_exception(std::exchange(failure, nullptr));
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

constexpr torch_table::Table table{.version = torch_table::current_version,
                                   .call = call,
                                   .alltoallv = alltoallv,
                                   .barrier = barrier,
                                   .record = record,
                                   .synchronize = synchronize,
                                   .synchronize_current = synchronize_current,
                                   .wait = wait,
                                   .is_reached = is_reached,
                                   .let_go = let_go,
                                   .raise = raise};

}  // namespace

nb::object table_capsule() { return nb::capsule(&table, torch_table::table_capsule); }

nb::object calls_capsule(const std::shared_ptr<GroupCalls>& calls) {
  return nb::capsule(new Calls{calls}, torch_table::calls_capsule,
                     [](void* held) noexcept { delete static_cast<Calls*>(held); });
}

}  // namespace beeline::python
