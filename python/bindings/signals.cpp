// SPDX-License-Identifier: Apache-2.0
#include "signals.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <iterator>
#include <string_view>

#include "beeline/device/put_get.hpp"
#include "beeline/host/stream_operations.hpp"
#include "bindings.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "tensor.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

constexpr std::size_t short_copy = 4096;  ///< bytes; for shorter copies Python's lock is not released

Compare comparison_of(std::string_view symbol) {
  constexpr std::string_view symbols[] = {"==", "!=", ">", ">=", "<", "<="};  // in the order of Compare
  for (std::size_t i = 0; i < std::size(symbols); ++i)
    if (symbols[i] == symbol) return static_cast<Compare>(i);
  throw nb::value_error(fmt::format("comparison {}: known are ==, !=, >, >=, <, <=", symbol).c_str());
}

/// Without a stream, a host rank's call is carried out by the calling thread; otherwise in the order of a stream.
class SignalsObject {
 public:
  /// Collective.
  SignalsObject(const std::shared_ptr<JoinedWorld>& world, std::size_t count)
      : world_(world), count_(count), by_thread_(!world->world().device().is_gpu()) {
    const nb::dlpack::dtype word{static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), 64, 1};
    World& joined = world->world();
    const Heap heap = joined.mixed() ? Heap::pinned : Heap::symmetric;
    memory_ = unlocked([&] { return Memory::allocate(world, {count}, word, heap); }, &joined);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  [[nodiscard]] std::uint64_t* word(std::size_t index) const {
    if (index >= count_)
      throw nb::index_error(fmt::format("signal {}: there are {}, from 0 on", index, count_).c_str());
    return static_cast<std::uint64_t*>(memory_.address()) + index;
  }
  void free() { memory_.free(); }

  void signal(std::size_t index, std::uint64_t value, int peer, StreamObject* stream, const Memory* sequence) const {
    change(nullptr, nullptr, {.signal = word(index), .value = value, .sequence = word_of(sequence, stream)}, peer,
           stream);
  }
  void signal_add(std::size_t index, std::uint64_t value, int peer, StreamObject* stream) const {
    change(nullptr, nullptr, {.signal = word(index), .value = value, .adds = true}, peer, stream);
  }
  void put_signal(const nb::object& destination, const nb::object& source, std::size_t index, std::uint64_t value,
                  int peer, StreamObject* stream, const Memory* sequence) const {
    put(destination, source, {.signal = word(index), .value = value, .sequence = word_of(sequence, stream)}, peer,
        stream);
  }
  void put_signal_add(const nb::object& destination, const nb::object& source, std::size_t index, std::uint64_t value,
                      int peer, StreamObject* stream) const {
    put(destination, source, {.signal = word(index), .value = value, .adds = true}, peer, stream);
  }

  void wait(std::size_t index, std::uint64_t value, const std::string& comparison, std::optional<int> peer,
            StreamObject* stream, Seconds timeout, const Memory* sequence) const {
    const Compare compare = comparison_of(comparison);
    const Timeout limit = timeout_of(timeout);
    std::uint64_t* const signal = word(index);
    World& world = world_->world();
    if (stream == nullptr && by_thread_) return wait_here(signal, compare, value, peer, timeout);
    if (compare != Compare::greater_equal)
      throw nb::value_error(fmt::format("comparison {}: streams wait for >= only", comparison).c_str());
    if (stream != nullptr && timeout)
      throw nb::value_error("timeout: a call on a stream does not block; `synchronize` takes one");
    Stream& queue = stream == nullptr ? world.stream() : own(*stream);
    const WaitCall call{.signal = signal,
                        .value = value,
                        .stream = &queue,
                        .sequence = word_of(sequence, stream),
                        .peer = peer ? member(*peer) : no_peer};
    const Status status = unlocked([&] {
      wait_on_stream(world, call);
      return stream == nullptr ? world.synchronize(queue, limit) : Status::ok;
    });
    require_over(status, "wait", timeout, world.rank());
  }

  [[nodiscard]] std::uint64_t read(std::size_t index) const {
    std::uint64_t* const signal = word(index);
    if (by_thread_) return detail::load_signal(signal, Order::memory);
    std::uint64_t value = 0;
    const nb::gil_scoped_release unlocked;
    world_->world().copy(&value, signal, sizeof value);
    return value;
  }

  [[nodiscard]] std::uint64_t exchange(std::size_t index, std::uint64_t value) const {
    require(by_thread_, Status::unavailable,
            "exchange: a GPU's signals are not changed by CPUs; let their values grow");
    std::uint64_t before = 0;
    finish(beeline::exchange(world_->world().host_context(), word(index), value, before));
    return before;
  }

 private:
  /// The word to which a call adds its values; nullptr without `sequence`.
  [[nodiscard]] std::uint64_t* word_of(const Memory* sequence, const StreamObject* stream) const {
    if (sequence == nullptr) return nullptr;
    if (stream == nullptr) throw nb::value_error("sequence: of calls on a stream only");
    if (sequence->joined() != world_ || sequence->rank() != world_->known().rank() ||
        sequence->bytes() < sizeof(std::uint64_t))
      throw nb::value_error("sequence: memory of this rank's world is expected, a uint64");
    return static_cast<std::uint64_t*>(sequence->address());
  }
  [[nodiscard]] std::uint32_t member(int peer) const {
    const int size = world_->known().size();
    if (peer < 0 || peer >= size) throw nb::value_error(fmt::format("peer {} of a world of {}", peer, size).c_str());
    return static_cast<std::uint32_t>(peer);
  }
  [[nodiscard]] Stream& own(const StreamObject& stream) const {
    if (stream.joined() != world_) throw nb::value_error("stream: it belongs to another world");
    return stream.stream();
  }
  void finish(Status status) const { require_ok(world_->world(), status); }

  void put(const nb::object& target, const nb::object& source, SignalCall how, int peer, StreamObject* stream) const {
    const Tensor from = reached_tensor(source, "source", Access::read, *world_);
    change(&from, destination_of_put(target, from, world_), how, peer, stream);
  }

  /// Puts `from`, if any, and then changes the signal.
  void change(const Tensor* from, void* destination, SignalCall how, int peer, StreamObject* stream) const {
    const std::uint32_t to = member(peer);
    World& world = world_->world();
    const std::size_t bytes = from == nullptr ? 0 : from->bytes;
    if (stream == nullptr && by_thread_) {
      const auto* const source = from == nullptr ? nullptr : static_cast<const std::byte*>(from->data);
      std::optional<nb::gil_scoped_release> unlocked;
      if (bytes > short_copy) unlocked.emplace();
      const auto call = [&](auto operation) {
        return operation(Thread{}, world.host_context(), static_cast<std::byte*>(destination), source, bytes,
                         how.signal, how.value, to, QueueId{});
      };
      const Status status = how.adds ? call([](auto&&... all) { return beeline::put_signal_add(all...); })
                                     : call([](auto&&... all) { return beeline::put_signal(all...); });
      unlocked.reset();
      return finish(status);
    }
    how.stream = stream == nullptr ? &world.stream() : &own(*stream);
    if (stream != nullptr && from != nullptr) stream->keep({from});
    const nb::gil_scoped_release unlocked;
    if (from == nullptr)
      signal_on_stream(world, peer, how);
    else
      put_signal_on_stream(world, destination, from->data, bytes, peer, how);
    if (stream == nullptr) world.synchronize(*how.stream);
  }

  void wait_here(const std::uint64_t* signal, Compare compare, std::uint64_t value, std::optional<int> peer,
                 Seconds timeout) const {
    if (test(signal, compare, value)) return;
    const std::uint32_t from = peer ? member(*peer) : no_peer;
    World& world = world_->world();
    const Timeout limit = timeout_of(timeout);
    const Status status =
        unlocked([&] { return beeline::wait(Thread{}, world.host_context(), signal, compare, value, from, limit); });
    require_over(status, "wait", timeout, world.rank());
    finish(status);
  }

  std::shared_ptr<JoinedWorld> world_;
  std::size_t count_;
  bool by_thread_;
  Memory memory_;
};

}  // namespace

std::uint64_t* signal_of(const nb::object& signals, std::size_t index, const std::shared_ptr<JoinedWorld>& world) {
  if (!nb::isinstance<SignalsObject>(signals))
    throw nb::type_error(fmt::format("signals: expected a beeline.Signals, not {}", type_of(signals)).c_str());
  const auto& of = nb::cast<const SignalsObject&>(signals);
  if (of.joined() != world) throw nb::value_error("signals: they belong to another world");
  return of.word(index);
}

void bind_signals(nb::module_& module) {
  nb::class_<SignalsObject>(module, "Signals",
                            R"(Words of 64 bits that announce data, zero at first: so many on each rank.

In a loop let the values grow: 1 in the first round, 2 in the second, and so on, and wait for `>=` that number. A round
that sets the same value again, without an answer of the receiver in between, is not seen as a new one: the wait finds
the value of the round before, and reads old data. `beeline run --check` (BEELINE_CHECK) warns of such signals.

Calls take a stream, and are then done in its order; without one they block: the calling thread does them on a host
rank, at once and in no order with streams; on a GPU's rank they go to the default stream. It lives until its world is
left.

In a CUDA graph a fixed value would be the same in each run. There, and wherever values are to go on, `sequence` is
memory of this rank with a uint64: each run of the call adds `value` to it, and signals, or waits for, the sum.)")
      .def(nb::init<const std::shared_ptr<JoinedWorld>&, std::size_t>(), nb::arg("world"), nb::arg("count"),
           "Collective. All ranks give the same count.")
      .def("__len__", &SignalsObject::count)
      .def("signal", &SignalsObject::signal, nb::arg("index"), nb::arg("value"), nb::arg("peer"), nb::kw_only(),
           nb::arg("stream") = nb::none(), nb::arg("sequence") = nb::none(),
           R"(Sets a signal of rank `peer`, after all that the caller, or the stream, did before.

Raises UnreachableError where a host rank is to signal in a GPU's memory.)")
      .def("signal_add", &SignalsObject::signal_add, nb::arg("index"), nb::arg("value"), nb::arg("peer"), nb::kw_only(),
           nb::arg("stream") = nb::none(),
           "Adds to a signal of rank `peer`, so that one counts what many send; otherwise as `signal`. Raises "
           "UnreachableError where the ranks' devices share no atomics.")
      .def("put_signal", &SignalsObject::put_signal, nb::arg("destination"), nb::arg("source"), nb::arg("index"),
           nb::arg("value"), nb::arg("peer"), nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("sequence") = nb::none(),
           nb::sig("def put_signal(self, destination: Memory, source: object, index: int, value: int, peer: int, *, "
                   "stream: Stream | None = None, sequence: Memory | None = None) -> None"),
           R"(Copies a tensor to rank `peer`, then sets a signal there. A rank that has waited for it sees the data.

destination  memory of the world, this rank's: its place is the same at the peer; as large as `source`, of its type
source       in memory that this rank's device reaches; the stream, if any, keeps it alive)")
      .def("put_signal_add", &SignalsObject::put_signal_add, nb::arg("destination"), nb::arg("source"),
           nb::arg("index"), nb::arg("value"), nb::arg("peer"), nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::sig("def put_signal_add(self, destination: Memory, source: object, index: int, value: int, peer: int, "
                   "*, stream: Stream | None = None) -> None"),
           "The same with `signal_add`.")
      .def("wait", &SignalsObject::wait, nb::arg("index"), nb::arg("value"),
           nb::arg("comparison") = ">=", nb::kw_only(), nb::arg("peer") = nb::none(), nb::arg("stream") = nb::none(),
           nb::arg("timeout") = nb::none(), nb::arg("sequence") = nb::none(),
           R"(Waits until this rank's signal compares true with `value`; then the data that it announced is there.

comparison  '==', '!=', '>', '>=', '<', '<='; streams, and GPU ranks, wait for '>='
peer        the rank expected to send it, named in errors; None: any
stream      None: blocks; otherwise holds the stream's later work until then
timeout     in seconds, without a stream: then it raises TimeoutError; the call may be repeated. 0: looks once)")
      .def("read", &SignalsObject::read, nb::arg("index"), "What this rank's signal holds now.")
      .def("exchange", &SignalsObject::exchange, nb::arg("index"), nb::arg("value"),
           "Sets this rank's signal, and returns what it held. Raises UnavailableError on a GPU rank.")
      .def("free", &SignalsObject::free, nb::call_guard<nb::gil_scoped_release>(),
           "Collective. Gives the memory back; no call works afterwards.");
}

}  // namespace beeline::python
