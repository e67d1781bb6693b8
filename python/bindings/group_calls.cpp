// SPDX-License-Identifier: Apache-2.0
#include "group_calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "beeline/host/impl/blocking_stream.hpp"
#include "beeline/transport/impl/known_capture.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Throws ValueError.
void check_types(const Elements& to, const Elements& from) {
  if (to.type == from.type) return;
  throw nb::value_error(
      fmt::format("output is of {}, input of {}: types must be the same", type_name(to.type), type_name(from.type))
          .c_str());
}

/// Throws ValueError unless the types are equal, and the sizes are in the ratio of the parts of output and source.
void check_alike(const Elements& to, const Elements& from, const GroupCalls::Parts& parts) {
  check_types(to, from);
  if (to.bytes * parts.source == from.bytes * parts.output) return;
  throw nb::value_error(fmt::format("output has {} bytes, input {}: sizes must be as {} to {}", to.bytes, from.bytes,
                                    parts.output, parts.source)
                            .c_str());
}

/// Whether this is CUDA's default stream, which most programs use. It is never captured or destroyed, so the end of its
/// latest call can be recorded when it is first needed; the event then also covers later work of the stream.
bool is_legacy(const Stream& stream) {
  return reinterpret_cast<std::uintptr_t>(stream.native()) == 1;  // cudaStreamLegacy
}

/// Records the end of the latest call, unless it is recorded.
template <class Latest>
void record_end(Latest& latest) {
  if (!latest.is_recorded) latest.stream->record(*latest.end);
  latest.is_recorded = true;
}

}  // namespace

void CallEnd::wait(Seconds timeout, void* current_stream) const {
  if (world_->has_left()) return;
  World& world = world_->world();
  if (world.device().is_gpu()) return world_->foreign_stream(current_stream).wait_event(*event_);
  const Timeout limit = timeout_of(timeout);
  require_over(BlockingCall().run([&] { return world.synchronize(*event_, limit); }), "wait", timeout, world.rank());
}

GroupCalls::GroupCalls(const Members& members, std::optional<std::uintptr_t> stream, std::function<void()> make_room)
    : ChannelObject("collectives", members, CollectiveOptions{}), rank_(channel().team().context().rank),
      ranks_(channel().team().context().size), own_(stream ? &joined()->foreign_stream(reinterpret_cast<void*>(*stream))
                                                           : &joined()->adopt(joined()->world().make_stream())),
      is_host_(!stream), make_room_(std::move(make_room)) {
  keep_when_dropped();  // calls on torch's streams may be pending
  if (!is_host_) begun_ = own_->make_event();
  make_mappings(std::holds_alternative<std::shared_ptr<JoinedWorld>>(members));
}

/// Makes the mappings of torch's segments; collective over the world, for the first group of all its ranks.
void GroupCalls::make_mappings(bool of_all) {
  World& world = joined()->world();
  const bool maps = of_all && world.device().is_gpu() && !world.mixed() &&
                    static_cast<std::uint32_t>(world.size()) <= detail::most_mapping_members;
  if (!maps || joined()->mappings != nullptr) return;
  const nb::gil_scoped_release unlocked;
  joined()->mappings = &joined()->adopt(std::make_unique<SegmentMappings>(world));
}

GroupCalls::Parts GroupCalls::parts(const CollectiveShape& shape, int root) const {
  const bool is_root = root >= 0 && rank_ == static_cast<std::size_t>(root);
  return {parts_of(shape.destination, ranks(), is_root), parts_of(shape.source, ranks(), is_root)};
}

bool GroupCalls::is_in_heap(const Elements& elements) const {
  const Context& ctx = channel().team().context();
  return ctx.owner_of(elements.data) == ctx.own_world_rank;
}

Ended GroupCalls::call(const CollectiveShape& shape, const Operand& output, const Operand& source, Reduction reduction,
                       int root, const Manner& manner) {
  const Elements &to = output.elements, &from = source.elements;
  const Parts counts = parts(shape, root);
  if (counts.output != 0 && counts.source != 0) check_alike(to, from, counts);
  const bool knows_source = counts.source != 0;
  const Elements& known = knows_source ? from : to;
  const Words words = shape.reduces ? reduced_words(known, reduction) : moved_words(known);
  const CallDescription what{.operation = shape.operation,
                             .element = {words.type},
                             .reduction = reduction,
                             .root = static_cast<std::uint32_t>(root),
                             .count = known.elements * words.each / (knows_source ? counts.source : counts.output)};
  const bool is_symmetric = symmetric && is_in_heap(to) && (!shape.reduces || is_in_heap(from));
  return start(manner, {output.owner, source.owner}, [&](CollectiveCall call) {
    call.symmetric = is_symmetric;
    channel().call_on_stream(what, to.data, from.data, call);
  });
}

GroupCalls::Row GroupCalls::row_of(const Counts& lengths, const Elements& elements, ElementType type) const {
  const auto places = places_of(lengths, ranks(), elements.bytes);
  if (!places)
    throw nb::value_error(
        fmt::format("pieces of {} bytes for {} ranks and {} bytes", fmt::join(lengths, ", "), ranks(), elements.bytes)
            .c_str());
  Row row{lengths, *places};
  for (Counts* const column : {&row.counts, &row.offsets})
    for (std::size_t& words : *column) words /= bytes_of(type);
  return row;
}

Ended GroupCalls::alltoallv(const Operand& output, const Operand& source, const Counts& send, const Counts& receive,
                            const Manner& manner) {
  const Elements &to = output.elements, &from = source.elements;
  check_types(to, from);
  const Words words = moved_words(from);
  const Row sent = row_of(send, from, words.type), received = row_of(receive, to, words.type);
  return start(manner, {output.owner, source.owner}, [&](const CollectiveCall& call) {
    channel().alltoallv_on_stream(to.data, from.data, {sent.counts, sent.offsets, received.counts, received.offsets},
                                  words.type, call);
  });
}

Ended GroupCalls::barrier(const Manner& manner) {
  return start(manner, {}, [&](const CollectiveCall& call) { channel().barrier_on_stream({.stream = call.stream}); });
}

void GroupCalls::free() {
  if (is_host_) joined()->destroy(own_, nullptr);  // waits for the stream's work, which uses the channel
  ChannelObject::free();
}

GroupCalls::~GroupCalls() {
  for (const Use& use : uses_) use.let_go();
}

void GroupCalls::synchronize() {
  if (joined()->has_left()) return;  // leaving the world has waited for the calls
  World& world = joined()->world();
  if (is_host_) {
    BlockingCall().run([&] { return world.synchronize(*own_, Timeout::none()); });
    return let_go_of_ended();
  }
  std::shared_ptr<Event> last;
  {
    const std::lock_guard lock(mutex_);
    if (eager_.end == nullptr) return;
    record_end(eager_);
    last = eager_.end;
  }
  BlockingCall().run([&] { world.synchronize(*last); });
}

void GroupCalls::synchronize_current(void* current_stream) {
  if (is_host_) return;
  World& world = joined()->world();
  Stream& current = stream_of(current_stream);
  BlockingCall().run([&] {
    const std::unique_ptr<Event> here = current.make_event();
    current.record(*here);
    world.synchronize(*here);
  });
}

CallEnd GroupCalls::record(void* current_stream) const {
  Stream& current = stream_of(current_stream);
  std::shared_ptr<Event> here = current.make_event();
  current.record(*here);
  return {joined(), std::move(here)};
}

std::optional<std::string> GroupCalls::last_transfer() {
  synchronize();
  const Transfer transfer = channel().last_transfer();
  if (transfer == Transfer::none) return std::nullopt;
  const std::string reason = reason_of_staging();
  return transfer != Transfer::staged || reason.empty() ? name(transfer) : fmt::format("staged: {}", reason);
}

std::string GroupCalls::reason_of_staging() const {
  if (channel().last_algorithm() == Algorithm::copy_engine) return "copy engines carry it, in chunks";
  if (joined()->mappings != nullptr) return joined()->mappings->reason();
  World& world = joined()->world();
  if (world.mixed()) return "ranks of both kinds do not reach each other's memory";
  if (!world.device().is_gpu() || static_cast<std::uint32_t>(world.size()) <= detail::most_mapping_members) return {};
  return fmt::format("{} ranks: at most {} map each other's memory", world.size(), detail::most_mapping_members);
}

/// Makes a call on torch's current stream, or an asynchronous call on the group's stream after it.
template <class Call>
Ended GroupCalls::start(const Manner& manner, const std::array<Owner, 2>& owners, const Call& call) {
  World& world = joined()->world();
  if (world.failed()) world.check();
  if (is_host_) return start_on_host(manner.is_async, owners, call);
  std::unique_lock lock(mutex_);
  Stream& current = current_stream(manner.current_stream);
  Stream& on = manner.is_async ? *own_ : current;
  if (&on != &current) {
    current.record(*begun_);
    on.wait_event(*begun_);
  }
  const detail::KnownCapture capture(on);
  // Programs compute on the default stream; a call on another stream, outside a graph, is to overlap with that.
  const bool is_beside = manner.is_async || (!is_legacy(on) && capture.id() == 0);
  Latest& latest = come_after_latest(on, capture.id());
  lock.unlock();
  with_room([&] { call(CollectiveCall{.stream = &on, .mappings = joined()->mappings, .overlapped = is_beside}); });
  lock.lock();
  latest.is_recorded = false;
  if (!is_legacy(on)) record_end(latest);
  return &on == &current ? Ended() : Ended(CallEnd(joined(), latest.end));
}

/// The stream of the handle. Programs mostly pass the same one as before.
Stream& GroupCalls::current_stream(void* native) {
  if (current_.stream == nullptr || current_.native != native) current_ = {native, &stream_of(native)};
  return *current_.stream;
}

/// Makes a call on the group's stream, so that calls of other groups need not be complete. If no call is pending, the
/// caller runs its call itself, which is faster than waking the stream's thread.
template <class Call>
Ended GroupCalls::start_on_host(bool is_async, const std::array<Owner, 2>& owners, const Call& call) {
  const CollectiveCall how{.stream = own_};
  if (!is_async) {
    with_room([&] {
      BlockingCall blocking;
      blocking.run([&] {
        const WorkHere here(*own_);
        if (here.is_here()) blocking.hold(channel().team());
        call(how);
      });
    });
    synchronize();
    return std::nullopt;
  }
  let_go_of_ended();
  with_room([&] { call(how); });
  std::shared_ptr<Event> end = own_->make_event();
  own_->record(*end);
  Use use{end, owners};
  for (Owner& each : use.owners)
    if (each.owner != nullptr) each.owner = each.keep(each.owner);
  const std::lock_guard lock(mutex_);
  uses_.push_back(std::move(use));
  return CallEnd(joined(), std::move(end));
}

template <class Call>
void GroupCalls::with_room(const Call& call) const {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() != Status::no_resource) throw;
  }
  make_room_();
  call();
}

/// Orders a call on a stream after the latest one, and returns its entry, with an event that only this entry holds.
GroupCalls::Latest& GroupCalls::come_after_latest(Stream& on, std::uint64_t capture) {
  Latest& latest = capture == 0 ? eager_ : captured_;
  if (latest.capture != capture) latest = {};  // calls captured in one graph do not wait for calls outside it
  if (latest.end != nullptr && latest.stream != &on) {
    record_end(latest);
    on.wait_event(*latest.end);
  }
  if (latest.end != nullptr && latest.end.use_count() > 1) ends_.push_back(std::move(latest.end));
  if (latest.end == nullptr) latest.end = unused_event(on);
  latest.stream = &on;
  latest.capture = capture;
  return latest;
}

/// An event that no work holds. Making one takes longer than recording it, so events of earlier calls are used again;
/// only a few are looked at, since a program may keep any number of works.
std::shared_ptr<Event> GroupCalls::unused_event(Stream& of) {
  for (std::size_t looks = std::min<std::size_t>(ends_.size(), 4); looks > 0; --looks) {
    std::shared_ptr<Event> oldest = std::move(ends_.front());
    ends_.pop_front();
    if (oldest.use_count() == 1) return oldest;
    ends_.push_back(std::move(oldest));
  }
  return of.make_event();
}

/// Releases the tensors of asynchronous calls that have ended.
void GroupCalls::let_go_of_ended() {
  std::vector<Use> ended;
  {
    const std::lock_guard lock(mutex_);
    while (!uses_.empty() && uses_.front().end->done()) {
      ended.push_back(std::move(uses_.front()));
      uses_.pop_front();
    }
  }
  for (const Use& use : ended) use.let_go();
}

void GroupCalls::Use::let_go() const {
  for (const Owner& each : owners)
    if (each.owner != nullptr) each.let_go(each.owner);
}

}  // namespace beeline::python
