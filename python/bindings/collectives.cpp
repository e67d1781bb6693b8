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
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "channel.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// The enumerator in [first, count) named `wanted`; throws ValueError that lists all names if there is none.
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

/// Combines `value` over the ranks, without Python's lock.
template <class T>
nb::object reduced_value(Team& team, T value, Reduction reduction) {
  return nb::cast(unlocked([&] { return team.allreduce(value, reduction); }, &team));
}

/// The operation of that name; only operations for which the registry has algorithms.
Operation collective_operation(const std::string& wanted) {
  return by_name(wanted, operations, "operation", Operation::broadcast);
}

/// The choices for a call, as Python objects.
struct Choice {
  std::string algorithm;
  std::optional<unsigned> blocks;  ///< nothing if no blocks take part
};

CollectiveCall call_of(const std::string& algorithm, unsigned blocks, bool symmetric) {
  return {
      .algorithm = by_name<Algorithm>(algorithm, algorithms, "algorithm"), .blocks = blocks, .symmetric = symmetric};
}

/// The options of a call, apart from its vectors.
struct CallOptions {
  CollectiveCall how;
  Reduction reduction = Reduction::sum;
  int root = -1;
};

/// Whether Python's call without a source works in place: every rank's destination holds a vector of the same length.
constexpr bool may_be_in_place(const CollectiveShape& shape) {
  return !shape.any_pieces() && !is_of_root(shape.destination);
}

class CollectivesObject : public ChannelObject<Collectives> {
 public:
  /// Collective over the members.
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

  /// Makes a call whose vectors have parts of equal length, as its shape says.
  void call(const CollectiveShape& shape, const nb::object& destination, const nb::object& source, StreamObject* stream,
            Seconds timeout, const CallOptions& options) {
    const Context& ctx = channel().team().context();
    const bool is_root = ctx.rank == static_cast<std::uint32_t>(options.root);
    const std::size_t to_parts = parts_of(shape.destination, ctx.size, is_root),
                      from_parts = parts_of(shape.source, ctx.size, is_root);
    const Tensor to = to_parts == 0 ? Tensor{} : vector(destination, "destination", Access::write);
    const bool in_place = may_be_in_place(shape) && (source.is_none() || source.is(destination) || from_parts == 0);
    const Tensor from = in_place ? to : from_parts == 0 ? Tensor{} : vector(source, "source", Access::read);
    if (to_parts != 0 && from_parts != 0) check_alike(to, from, to_parts, from_parts);
    const Tensor& known = from_parts == 1 || to_parts == 0 ? from : to;
    const std::size_t parts = &known == &from ? from_parts : to_parts;
    const std::size_t count = parts == 1 ? known.elements : known.elements / parts;
    if (count * parts != known.elements)
      throw nb::value_error(
          fmt::format("{} elements cannot be divided among {} ranks", known.elements, ranks()).c_str());
    const Words words = shape.reduces ? reduced_words(known, options.reduction) : moved_words(known);
    const CallDescription what{.operation = shape.operation,
                               .element = {words.type},
                               .reduction = options.reduction,
                               .root = static_cast<std::uint32_t>(options.root),
                               .count = count * words.each};
    const Place here = place(name(shape.operation), stream, timeout, name(options.reduction), options.root,
                             name(options.how.algorithm), options.how.blocks, options.how.symmetric);
    run_on(here, options.how, {&to, &from},
           [&](const CollectiveCall& call) { channel().call_on_stream(what, to.data, from.data, call); });
  }

  void alltoallv(const nb::object& destination, const nb::object& source, const Counts& send, const Counts& receive,
                 StreamObject* stream, Seconds timeout) {
    const Tensor to = vector(destination, "destination", Access::write), from = vector(source, "source", Access::read);
    if (to.type != from.type)
      throw nb::value_error(
          fmt::format("destination is of {}, source of {}", type_name(to.type), type_name(from.type)).c_str());
    const Words words = moved_words(from);
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
  ///   arguments  all arguments of the call but its tensors
  template <class... Arguments>
  [[nodiscard]] Place place(const char* call, StreamObject* stream, Seconds timeout,
                            const Arguments&... arguments) const {
    std::string text;
    if (may_continue(*joined(), timeout)) (fmt::format_to(std::back_inserter(text), "{} ", arguments), ...);
    return {joined(), call, stream, timeout, channel().team(), &channel(), nb::find(*this), std::move(text)};
  }

  /// The tensor that `object` is; throws unless this rank's device reaches it.
  [[nodiscard]] Tensor vector(const nb::object& object, const char* argument, Access access) const {
    return reached_tensor(object, argument, access, *joined());
  }

  /// Throws ValueError unless the types are equal, and the sizes are in the ratio `to_parts` : `from_parts`.
  static void check_alike(const Tensor& to, const Tensor& from, std::size_t to_parts, std::size_t from_parts) {
    if (to.type == from.type && to.elements * from_parts == from.elements * to_parts) return;
    throw nb::value_error(fmt::format("destination has {} elements of {}, source {} of {}: types must be the same, and "
                                      "sizes as {} to {}",
                                      to.elements, type_name(to.type), from.elements, type_name(from.type), to_parts,
                                      from_parts)
                              .c_str());
  }

  /// One side of an all-to-all-v: consecutive pieces.
  struct Row {
    Counts counts, offsets;
  };
  [[nodiscard]] Row row_of(const Counts& counts, const Tensor& tensor, const char* argument, Words words) const {
    const auto places = places_of(counts, ranks(), tensor.elements);
    if (!places)
      throw nb::value_error(
          fmt::format("{}: {} counts must be given, which add up to {} elements", argument, ranks(), tensor.elements)
              .c_str());
    Row row{counts, *places};
    for (Counts* const column : {&row.counts, &row.offsets})
      for (std::size_t& elements : *column) elements *= words.each;
    return row;
  }
};

using CollectivesClass = nb::class_<CollectivesObject>;

/// Parameters that only some calls have.
template <class... Types>
struct Pack {};
template <bool exists, class Type>
using PackIf = std::conditional_t<exists, Pack<Type>, Pack<>>;
template <bool exists, class... Arguments>
auto arguments_if(const Arguments&... arguments) {
  if constexpr (exists)
    return std::tuple(arguments...);
  else
    return std::tuple();
}

template <bool may_be_none>
auto vector_argument(const char* name) {
  if constexpr (may_be_none)
    return nb::arg(name).none();
  else
    return nb::arg(name);
}

/// The help text for one side of a call.
std::string describe(const char* argument, Side side) {
  return fmt::format("\n{:11}  {}{}", argument, has_pieces(side) ? "a part for each rank" : "a vector",
                     is_of_root(side) ? ", the root's; of others it may be None" : "");
}

template <std::size_t index, class... OfReduction, class... OfRoot, class... OfSymmetric>
void bind_call(CollectivesClass& collectives, Pack<OfReduction...>, Pack<OfRoot...>, Pack<OfSymmetric...>) {
  static constexpr const CollectiveShape& shape = collective_shapes[index];
  const auto call = [](CollectivesObject& self, const nb::object& destination, const nb::object& source,
                       const OfReduction&... reduction, OfRoot... root, StreamObject* stream, Seconds timeout,
                       const std::string& algorithm, unsigned blocks, OfSymmetric... symmetric) {
    CallOptions options{call_of(algorithm, blocks, (symmetric || ... || false))};
    ((options.reduction = by_name<Reduction>(reduction, reductions, "reduction")), ...), ((options.root = root), ...);
    self.call(shape, destination, source, stream, timeout, options);
  };
  const auto source = [] {
    if constexpr (may_be_in_place(shape))
      return nb::arg("source") = nb::none();
    else
      return vector_argument<is_of_root(shape.source)>("source");
  }();
  const std::string help =
      fmt::format("Collective. {}\n{}{}{}", shape.summary, describe("destination", shape.destination),
                  describe("source", shape.source), may_be_in_place(shape) ? "; None: in place" : "");
  const auto arguments =
      std::tuple_cat(std::tuple(vector_argument<is_of_root(shape.destination)>("destination")), std::tuple(source),
                     arguments_if<sizeof...(OfReduction) != 0>(nb::arg("reduction") = "sum"), std::tuple(nb::kw_only()),
                     arguments_if<sizeof...(OfRoot) != 0>(nb::arg("root")),
                     std::tuple(nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(),
                                nb::arg("algorithm") = "automatic", nb::arg("blocks") = 0),
                     arguments_if<sizeof...(OfSymmetric) != 0>(nb::arg("symmetric") = false));
  std::apply([&](const auto&... each) { collectives.def(name(shape.operation), call, each..., help.c_str()); },
             arguments);
}

/// Binds one method for every collective.
template <std::size_t index = 0>
void bind_calls(CollectivesClass& collectives) {
  static constexpr const CollectiveShape& shape = collective_shapes[index];
  constexpr bool by_engines = contains(algorithms_of(shape.operation, Control::stream), Algorithm::copy_engine);
  if constexpr (!shape.varies)
    bind_call<index>(collectives, PackIf<shape.reduces, std::string>(), PackIf<shape.has_root(), int>(),
                     PackIf<by_engines, bool>());
  if constexpr (index + 1 < std::size(collective_shapes)) bind_calls<index + 1>(collectives);
}

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
the like name the rank that was waited for.)");
  collectives
      .def(nb::init<Members, unsigned, std::size_t, std::size_t, std::optional<std::size_t>>(), nb::arg("team"),
           nb::kw_only(), nb::arg("sessions") = 0, nb::arg("packet_bytes") = 0, nb::arg("staging_bytes") = 0,
           nb::arg("engine_bytes") = nb::none(),
           R"(Collective over the team; all give the same options. 0: by the kind and number of ranks.

team           whose members take part: a World or a Team
sessions       blocks that may take part in a call
packet_bytes   payload of a round of packets, of each session from each rank
staging_bytes  of each session, for vectors that are not symmetric, twice
engine_bytes   of the heap, through which copy engines make large calls; None: up to an eighth of the heap where
               the team is the world, and each rank has a GPU of its own, otherwise none)")
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
           "The operation's algorithms by name, each with the reason why these ranks cannot use it, or None.")
      .def("alltoallv", &CollectivesObject::alltoallv, nb::arg("destination"), nb::arg("source"),
           nb::arg("send_counts"), nb::arg("receive_counts"), nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("timeout") = nb::none(),
           "Collective. As `alltoall`, with parts of any lengths, in elements by rank, that follow each other.")
      .def("barrier", &CollectivesObject::barrier, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("timeout") = nb::none(), nb::arg("algorithm") = "automatic",
           "Collective. Holds later work of the stream until all ranks' streams have come here.");
  bind_calls(collectives);
}

}  // namespace beeline::python
