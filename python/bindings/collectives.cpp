// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/collectives.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <map>
#include <utility>

#include "bindings.hpp"
#include "channel.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// The enumerator from `first` on whose name is `wanted`; throws ValueError that lists all names up to number `count`.
template <class Enumeration>
Enumeration by_name(const std::string& wanted, std::uint32_t count, const char* argument, Enumeration first = {}) {
  const auto start = static_cast<std::uint32_t>(first);
  for (std::uint32_t i = start; i < count; ++i)
    if (wanted == name(static_cast<Enumeration>(i))) return static_cast<Enumeration>(i);
  std::string known;
  for (std::uint32_t i = start; i < count; ++i)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(static_cast<Enumeration>(i)));
  throw nb::value_error(fmt::format("{} {}: known are {}", argument, wanted, known).c_str());
}

/// A value of this rank's, combined with those of the others, without Python's lock.
template <class T>
nb::object reduced_value(Team& team, T value, Reduction reduction) {
  return nb::cast(unlocked([&] { return team.allreduce(value, reduction); }, &team));
}

/// The operation of that name that has algorithms of the registry.
Operation collective_operation(const std::string& wanted) {
  return by_name(wanted, operations, "operation", Operation::broadcast);
}

/// How a call is to be made, in Python's words.
struct Choice {
  std::string algorithm;
  std::optional<unsigned> blocks;  ///< nothing where no blocks take part
};

CollectiveCall call_of(const std::string& algorithm, unsigned blocks, bool symmetric = false) {
  return {
      .algorithm = by_name<Algorithm>(algorithm, algorithms, "algorithm"), .blocks = blocks, .symmetric = symmetric};
}

using Counts = std::vector<std::size_t>;

class CollectivesObject : public ChannelObject<Collectives> {
 public:
  /// Collective.
  CollectivesObject(const Members& team, unsigned sessions, std::size_t packet_bytes, std::size_t staging_bytes,
                    std::optional<std::size_t> engine_bytes)
      : ChannelObject("collectives", team,
                      CollectiveOptions{.sessions = sessions,
                                        .packet_bytes = packet_bytes,
                                        .staging_bytes = staging_bytes,
                                        .engine_bytes = engine_bytes}) {}

  [[nodiscard]] std::size_t rank() const { return channel().team().context().rank; }
  [[nodiscard]] std::size_t ranks() const { return channel().team().context().size; }
  [[nodiscard]] std::optional<std::string> last_transfer() const {
    const Transfer transfer = channel().last_transfer();
    return transfer == Transfer::none ? std::nullopt : std::optional<std::string>(name(transfer));
  }

  void allreduce(const nb::object& destination, const nb::object& source, const std::string& reduction,
                 StreamObject* stream, Seconds timeout, const std::string& algorithm, unsigned blocks, bool symmetric) {
    const Tensor to = vector(destination, "destination", Access::write);
    const Tensor from = source.is_none() || source.is(destination) ? to : vector(source, "source", Access::read);
    check_alike(to, from, 1, 1);
    const auto [type, how] = reduced(to, reduction);
    run_on(place("allreduce", stream, timeout, reduction, algorithm, blocks, symmetric),
           call_of(algorithm, blocks, symmetric), {&to, &from}, [&](const CollectiveCall& call) {
             channel().allreduce_on_stream(to.data, from.data, to.elements, type, how, call);
           });
  }

  void reduce(const nb::object& destination, const nb::object& source, const std::string& reduction, int root,
              StreamObject* stream, Seconds timeout, const std::string& algorithm, unsigned blocks) {
    const Tensor from = vector(source, "source", Access::read);
    const Tensor to = at_root(destination, "destination", Access::write, root);
    if (is(root)) check_alike(to, from, 1, 1);
    const auto [type, how] = reduced(from, reduction);
    run_on(place("reduce", stream, timeout, reduction, root, algorithm, blocks), call_of(algorithm, blocks),
           {&to, &from}, [&](const CollectiveCall& call) {
             channel().reduce_on_stream(to.data, from.data, from.elements, type, how, root, call);
           });
  }

  void reduce_scatter(const nb::object& destination, const nb::object& source, const std::string& reduction,
                      StreamObject* stream, Seconds timeout, const std::string& algorithm, unsigned blocks) {
    const auto [to, from] = vectors(destination, source);
    check_alike(to, from, 1, ranks());
    const auto [type, how] = reduced(to, reduction);
    run_on(place("reduce_scatter", stream, timeout, reduction, algorithm, blocks), call_of(algorithm, blocks),
           {&to, &from}, [&](const CollectiveCall& call) {
             channel().reduce_scatter_on_stream(to.data, from.data, to.elements, type, how, call);
           });
  }

  void broadcast(const nb::object& destination, const nb::object& source, int root, StreamObject* stream,
                 Seconds timeout, const std::string& algorithm, unsigned blocks, bool symmetric) {
    const Tensor to = vector(destination, "destination", Access::write);
    const Tensor from = source.is_none() || !is(root) ? to : vector(source, "source", Access::read);
    check_alike(to, from, 1, 1);
    const Words words = moved(to);
    run_on(place("broadcast", stream, timeout, root, algorithm, blocks, symmetric),
           call_of(algorithm, blocks, symmetric), {&to, &from}, [&](const CollectiveCall& call) {
             channel().broadcast_on_stream(to.data, from.data, to.elements * words.each, words.type, root, call);
           });
  }

  void scatter(const nb::object& destination, const nb::object& source, int root, StreamObject* stream, Seconds timeout,
               const std::string& algorithm, unsigned blocks, bool symmetric) {
    const Tensor to = vector(destination, "destination", Access::write);
    const Tensor from = at_root(source, "source", Access::read, root);
    if (is(root)) check_alike(to, from, 1, ranks());
    const Words words = moved(to);
    run_on(place("scatter", stream, timeout, root, algorithm, blocks, symmetric), call_of(algorithm, blocks, symmetric),
           {&to, &from}, [&](const CollectiveCall& call) {
             channel().scatter_on_stream(to.data, from.data, to.elements * words.each, words.type, root, call);
           });
  }

  void gather(const nb::object& destination, const nb::object& source, int root, StreamObject* stream, Seconds timeout,
              const std::string& algorithm, unsigned blocks) {
    const Tensor from = vector(source, "source", Access::read);
    const Tensor to = at_root(destination, "destination", Access::write, root);
    if (is(root)) check_alike(to, from, ranks(), 1);
    const Words words = moved(from);
    run_on(place("gather", stream, timeout, root, algorithm, blocks), call_of(algorithm, blocks), {&to, &from},
           [&](const CollectiveCall& call) {
             channel().gather_on_stream(to.data, from.data, from.elements * words.each, words.type, root, call);
           });
  }

  void allgather(const nb::object& destination, const nb::object& source, StreamObject* stream, Seconds timeout,
                 const std::string& algorithm, unsigned blocks, bool symmetric) {
    const auto [to, from] = vectors(destination, source);
    check_alike(to, from, ranks(), 1);
    const Words words = moved(from);
    run_on(place("allgather", stream, timeout, algorithm, blocks, symmetric), call_of(algorithm, blocks, symmetric),
           {&to, &from}, [&](const CollectiveCall& call) {
             channel().allgather_on_stream(to.data, from.data, from.elements * words.each, words.type, call);
           });
  }

  void alltoall(const nb::object& destination, const nb::object& source, StreamObject* stream, Seconds timeout,
                const std::string& algorithm, unsigned blocks, bool symmetric) {
    const auto [to, from] = vectors(destination, source);
    check_alike(to, from, 1, 1);
    if (from.elements % ranks() != 0)
      throw nb::value_error(
          fmt::format("{} elements cannot be divided among {} ranks", from.elements, ranks()).c_str());
    const Words words = moved(from);
    run_on(place("alltoall", stream, timeout, algorithm, blocks, symmetric), call_of(algorithm, blocks, symmetric),
           {&to, &from}, [&](const CollectiveCall& call) {
             channel().alltoall_on_stream(to.data, from.data, from.elements / ranks() * words.each, words.type, call);
           });
  }

  void alltoallv(const nb::object& destination, const nb::object& source, const Counts& send, const Counts& receive,
                 StreamObject* stream, Seconds timeout) {
    const auto [to, from] = vectors(destination, source);
    if (to.type != from.type)
      throw nb::value_error(
          fmt::format("destination is of {}, source of {}", type_name(to.type), type_name(from.type)).c_str());
    const Words words = moved(from);
    const Row received = row_of(receive, to, "receive_counts", words), sent = row_of(send, from, "send_counts", words);
    const auto tables = fmt::format("{} {} {} {}", fmt::join(sent.counts, ","), fmt::join(sent.offsets, ","),
                                    fmt::join(received.counts, ","), fmt::join(received.offsets, ","));
    run_on(place("alltoallv", stream, timeout, tables), CollectiveCall{}, {&to, &from},
           [&](const CollectiveCall& call) {
             channel().alltoallv_on_stream(
                 to.data, from.data, {sent.counts, sent.offsets, received.counts, received.offsets}, words.type, call);
           });
  }

  void barrier(StreamObject* stream, Seconds timeout, const std::string& algorithm) {
    const auto how = by_name<Algorithm>(algorithm, algorithms, "algorithm");
    run_on(place("barrier", stream, timeout, algorithm), CollectiveCall{}, {},
           [&](const CollectiveCall& call) { channel().barrier_on_stream({.stream = call.stream, .algorithm = how}); });
  }

  [[nodiscard]] Choice choice(const std::string& operation, std::size_t count, const nb::object& dtype,
                              const std::string& algorithm, unsigned blocks, bool symmetric) const {
    const auto which = collective_operation(operation);
    const auto type = by_name<ElementType>(type_name(element_type(dtype)), element_types, "element type");
    const CollectiveCall choice = channel().choice(which, count, type, call_of(algorithm, blocks, symmetric));
    return {name(choice.algorithm), choice.blocks == 0 ? std::nullopt : std::optional(choice.blocks)};
  }

  [[nodiscard]] std::map<std::string, std::optional<std::string>> algorithms_of(const std::string& operation) const {
    const auto which = collective_operation(operation);
    std::map<std::string, std::optional<std::string>> all;
    for (const MethodRow& row : method_rows) {
      if (row.operation != which || !row.is_by(Control::stream)) continue;
      std::string reason = reason_against(channel().team(), row.algorithm);
      all[name(row.algorithm)] = reason.empty() ? std::nullopt : std::optional(std::move(reason));
    }
    return all;
  }

 private:
  /// `arguments`: all of the call but its tensors.
  template <class... Arguments>
  [[nodiscard]] Place place(const char* call, StreamObject* stream, Seconds timeout,
                            const Arguments&... arguments) const {
    std::string text;
    if (may_continue(*joined(), timeout)) (fmt::format_to(std::back_inserter(text), "{} ", arguments), ...);
    return {joined(), call, stream, timeout, channel().team(), &channel(), std::move(text)};
  }

  /// A tensor that this rank's device reaches.
  [[nodiscard]] Tensor vector(const nb::object& object, const char* argument, Access access) const {
    return reached_tensor(object, argument, access, *joined());
  }

  [[nodiscard]] std::pair<Tensor, Tensor> vectors(const nb::object& destination, const nb::object& source) const {
    return {vector(destination, "destination", Access::write), vector(source, "source", Access::read)};
  }
  /// What only the root passes; nothing on other ranks.
  [[nodiscard]] Tensor at_root(const nb::object& object, const char* argument, Access access, int root) const {
    return is(root) ? vector(object, argument, access) : Tensor{};
  }
  [[nodiscard]] bool is(int root) const { return root >= 0 && rank() == static_cast<std::size_t>(root); }
  /// Throws ValueError unless types are the same, and sizes as `to_parts` to `from_parts`.
  static void check_alike(const Tensor& to, const Tensor& from, std::size_t to_parts, std::size_t from_parts) {
    if (to.type == from.type && to.elements * from_parts == from.elements * to_parts) return;
    throw nb::value_error(fmt::format("destination has {} elements of {}, source {} of {}: types must be the same, and "
                                      "sizes as {} to {}",
                                      to.elements, type_name(to.type), from.elements, type_name(from.type), to_parts,
                                      from_parts)
                              .c_str());
  }

  static std::pair<ElementType, Reduction> reduced(const Tensor& tensor, const std::string& reduction) {
    const std::optional<ElementType> type = computed_type(tensor.type);
    return {type ? *type : by_name<ElementType>(type_name(tensor.type), element_types, "element type"),
            by_name<Reduction>(reduction, reductions, "reduction")};
  }

  /// What is only moved may be of any type: as bytes, where collectives do not know it.
  struct Words {
    ElementType type;
    std::size_t each;  ///< of the tensor's elements
  };
  static Words moved(const Tensor& tensor) {
    if (const std::optional<ElementType> type = computed_type(tensor.type)) return {*type, 1};
    return {ElementType::uint8, tensor.elements == 0 ? 1 : tensor.bytes / tensor.elements};
  }

  /// One side of an all-to-all-v: pieces that follow each other.
  struct Row {
    Counts counts, offsets;
  };
  [[nodiscard]] Row row_of(const Counts& counts, const Tensor& tensor, const char* argument, Words words) const {
    Row row;
    std::size_t offset = 0;
    for (const std::size_t count : counts) {
      row.counts.push_back(count * words.each);
      row.offsets.push_back(offset * words.each);
      if (count > tensor.elements - offset) offset = SIZE_MAX;
      if (offset == SIZE_MAX) break;
      offset += count;
    }
    if (counts.size() != ranks() || offset != tensor.elements)
      throw nb::value_error(
          fmt::format("{}: {} counts must be given, which add up to {} elements", argument, ranks(), tensor.elements)
              .c_str());
    return row;
  }
};

using CollectivesClass = nb::class_<CollectivesObject>;

/// The keywords that all calls have, behind those of their own.
#define BEELINE_CALL_KEYWORDS                                                                          \
  nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(), nb::arg("algorithm") = "automatic", \
  nb::arg("blocks") = 0

void bind_reductions(CollectivesClass& collectives) {
  collectives
      .def("reduce", &CollectivesObject::reduce, nb::arg("destination").none(), nb::arg("source"),
           nb::arg("reduction") = "sum", nb::kw_only(), nb::arg("root"), BEELINE_CALL_KEYWORDS,
           "Collective. As `allreduce`, but only rank `root` gets the result; of others `destination` may be None.")
      .def("reduce_scatter", &CollectivesObject::reduce_scatter, nb::arg("destination"), nb::arg("source"),
           nb::arg("reduction") = "sum", nb::kw_only(), BEELINE_CALL_KEYWORDS,
           R"(Collective. As `allreduce`, but rank r gets part r of the result.

source       as many equal parts as ranks
destination  one part; may be this rank's part of `source`)");
}

void bind_movement(CollectivesClass& collectives) {
  collectives
      .def("broadcast", &CollectivesObject::broadcast, nb::arg("destination"), nb::arg("source") = nb::none(),
           nb::kw_only(), nb::arg("root"), BEELINE_CALL_KEYWORDS, nb::arg("symmetric") = false,
           R"(Collective. Copies the root's vector to all; elements of any type, as in all calls that only move them.

source  the root's; None: its `destination`
symmetric  you assert that the destinations lie at the same place of all ranks' heaps, as in `allreduce`)")
      .def("scatter", &CollectivesObject::scatter, nb::arg("destination"), nb::arg("source").none(), nb::kw_only(),
           nb::arg("root"), BEELINE_CALL_KEYWORDS, nb::arg("symmetric") = false,
           "Collective. Copies part r of the root's `source` to rank r; of others it may be None. `symmetric`: as "
           "`broadcast`.")
      .def("gather", &CollectivesObject::gather, nb::arg("destination").none(), nb::arg("source"), nb::kw_only(),
           nb::arg("root"), BEELINE_CALL_KEYWORDS,
           "Collective. Copies all vectors, by rank, to the root's `destination`; of others it may be None.")
      .def("allgather", &CollectivesObject::allgather, nb::arg("destination"), nb::arg("source"), nb::kw_only(),
           BEELINE_CALL_KEYWORDS, nb::arg("symmetric") = false,
           R"(Collective. Copies all vectors, by rank, to all; `source` may be this rank's part of `destination`.

symmetric  as `broadcast`)")
      .def("alltoall", &CollectivesObject::alltoall, nb::arg("destination"), nb::arg("source"), nb::kw_only(),
           BEELINE_CALL_KEYWORDS, nb::arg("symmetric") = false,
           "Collective. Copies part j of rank i's vector to part i of rank j's; all parts are equal. `symmetric`: as "
           "`broadcast`.")
      .def("alltoallv", &CollectivesObject::alltoallv, nb::arg("destination"), nb::arg("source"),
           nb::arg("send_counts"), nb::arg("receive_counts"), nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("timeout") = nb::none(),
           "Collective. The same with parts of any lengths, in elements by rank, that follow each other.")
      .def("barrier", &CollectivesObject::barrier, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("timeout") = nb::none(), nb::arg("algorithm") = "alltoall",
           "Collective. Holds later work of the stream until all ranks' streams have come here.");
}

#undef BEELINE_CALL_KEYWORDS

}  // namespace

nb::object allreduced(Team& team, nb::handle value, const std::string& reduction) {
  const auto how = by_name<Reduction>(reduction, reductions, "reduction");
  const bool is_whole = PyIndex_Check(value.ptr()) != 0;
  if (std::int64_t whole = 0; is_whole && nb::try_cast(value, whole)) return reduced_value(team, whole, how);
  if (double number = 0; !is_whole && nb::try_cast(value, number)) return reduced_value(team, number, how);
  throw nb::type_error("value: expected a float, or an int of 64 bits");
}

void bind_collectives(nb::module_& module) {
  nb::class_<Choice>(module, "Choice", "The way that a collective call takes.")
      .def_ro("algorithm", &Choice::algorithm, "Its name, as 'll_one_shot'.")
      .def_ro("blocks", &Choice::blocks, "Blocks of threads that take part; None: copy engines move the data.")
      .def("__repr__", [](const Choice& self) {
        const std::string blocks = self.blocks ? fmt::format(" in {} blocks", *self.blocks) : "";
        return fmt::format("<beeline.Choice {}{}>", self.algorithm, blocks);
      });

  CollectivesClass collectives(module, "Collectives", R"(Collective operations of a team's members, on tensors.

All of them make the same calls in the same order, one after the other: on one stream, or on streams that wait for each
other. Calls that are to go on at the same time use several objects. Tensors are contiguous, aligned to their elements,
and in memory that this rank's device reaches: the GPU's own, or host memory on a host rank. Memory in the symmetric
heap, at the same place on all ranks, is used as it is by every algorithm. Roots and parts are counted by rank of the
team. It lives until it is freed, or its world is left.)");
  collectives
      .def(nb::init<Members, unsigned, std::size_t, std::size_t, std::optional<std::size_t>>(), nb::arg("team"),
           nb::kw_only(), nb::arg("sessions") = 0, nb::arg("packet_bytes") = 0, nb::arg("staging_bytes") = 0,
           nb::arg("engine_bytes") = nb::none(),
           R"(Collective over the team; all give the same options. 0: by the kind and number of ranks.

team           whose members take part: a World or a Team
sessions       blocks that may take part in a call
packet_bytes   payload of a round of packets, of each session from each rank
staging_bytes  of each session, for vectors that do not lie alike on all ranks, twice
engine_bytes   of the heap, through which copy engines make large calls; None: up to an eighth of the heap where
               the team is the world, and each rank has a GPU of its own, otherwise none)")
      .def("allreduce", &CollectivesObject::allreduce, nb::arg("destination"), nb::arg("source") = nb::none(),
           nb::arg("reduction") = "sum", nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(),
           nb::arg("algorithm") = "automatic", nb::arg("blocks") = 0, nb::arg("symmetric") = false,
           R"(Collective. Combines the ranks' vectors, element by element, in the order of ranks; all get the same bits.

source     alike on all ranks; None, or the same object as `destination`: in place. float32, float64, float16, bfloat16,
           int32, int64, uint8, uint32, uint64
reduction  'sum', 'product', 'minimum', 'maximum', 'average'; of integers also 'bit_and', 'bit_or', 'bit_xor'
stream     None: blocks until it is over; otherwise it returns at once, `World.synchronize(stream)` tells of failures,
           and until then the stream keeps both tensors alive
timeout    in seconds, without a stream: then it raises TimeoutError, the work goes on, and the same call, with the same
           tensors, waits on; others are refused until then, or until `World.synchronize` has returned. 0: looks once
algorithm  by name, the same on all ranks; 'automatic': by size
blocks     of threads, the same on all ranks; 0: by size. Copy engines have none
symmetric  you assert, on all ranks or none, that the vectors lie at the same place of all ranks' heaps: copy
           engines then put results there at once, and 'automatic' takes them where they are quicker so. Where they
           are taken and it is not so, the call ends all with an error
Raises TypeError or ValueError (InvalidArgumentError among them) before anything is touched; DeadlineError and the like
name who was waited for.)")
      .def_prop_ro("rank", &CollectivesObject::rank, "This rank's number among those that take part.")
      .def_prop_ro("size", &CollectivesObject::ranks, "How many ranks take part.")
      .def_prop_ro("last_transfer", &CollectivesObject::last_transfer, nb::call_guard<nb::gil_scoped_release>(),
                   R"(How the vectors of the last call got to the other ranks; ask when the call is over.

'in_place'  zero-copy: read and written by the others where they lie
'staged'    in and out through the channel's memory: vectors outside the heaps, for reductions also unlike places, and
            by copy engines all that is not asserted to be symmetric
'packets'   copied into packets, as short vectors wherever they lie (and an all-to-all-v of nothing)
None        nothing was moved yet, or there was nothing to move. A barrier changes nothing)")
      .def("free", &CollectivesObject::free, nb::call_guard<nb::gil_scoped_release>(),
           R"(Collective over those that take part. Gives the memory back; no call works afterwards.

Waits for the default stream; the calls on other streams must be over.)")
      .def("choice", &CollectivesObject::choice, nb::arg("operation"), nb::arg("count"), nb::arg("dtype"),
           nb::kw_only(), nb::arg("algorithm") = "automatic", nb::arg("blocks") = 0, nb::arg("symmetric") = false,
           R"(The algorithm and number of blocks that a call takes.

operation  'allreduce', 'broadcast' and so on; all but 'alltoallv' and 'barrier'
count      elements of the vector, or of the piece from one rank to another)")
      .def("algorithms", &CollectivesObject::algorithms_of, nb::arg("operation"),
           "The operation's algorithms by name, each with the reason why these ranks cannot use it, or None.");
  bind_reductions(collectives);
  bind_movement(collectives);
}

}  // namespace beeline::python
