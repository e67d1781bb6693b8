// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/triggers.hpp"

#include <cstddef>
#include <memory>

#include "c/call.hpp"

using namespace beeline;
using c::guarded;
using c::object_of;

struct beeline_triggers : c::Handle<0xbee1000b> {
  beeline_triggers(Team& in, const TriggerOptions& options) : team(&in), triggers(in, options) {}
  Team* team;
  Triggers triggers;
};

namespace {

static_assert(sizeof(beeline_trigger_options) == 24 && offsetof(beeline_trigger_options, by) == 4);
static_assert(offsetof(beeline_trigger_options, tags) == 8 && offsetof(beeline_trigger_options, entries) == 12);
static_assert(offsetof(beeline_trigger_options, queues) == 16 && offsetof(beeline_trigger_options, streams) == 20);
static_assert(sizeof(beeline_condition) == 32 && offsetof(beeline_condition, threshold) == 8);
static_assert(offsetof(beeline_condition, deadline_ns) == 16 && offsetof(beeline_condition, then) == 24);
static_assert(sizeof(beeline_armed) == 8 && offsetof(beeline_armed, turn) == 4);
static_assert(BEELINE_BY_ENGINE == static_cast<int>(TriggeredBy::engine));
static_assert(BEELINE_BY_DEVICE_ENGINE == static_cast<int>(TriggeredBy::device_engine));
static_assert(BEELINE_BY_STREAM == static_cast<int>(TriggeredBy::stream));
static_assert(BEELINE_BY_GUARDED_STREAM == static_cast<int>(TriggeredBy::guarded_stream));

void set_unless_zero(std::uint32_t& option, std::uint32_t value) {
  if (value != 0) option = value;
}

TriggerOptions options_of(const beeline_trigger_options* given) {
  TriggerOptions options;
  if (given == nullptr) return options;
  const beeline_trigger_options& wanted = c::structure_of(given, "options");
  c::require_enumerator(wanted.by, 4, "options.by");
  options.by = static_cast<TriggeredBy>(wanted.by);
  set_unless_zero(options.tags, wanted.tags);
  set_unless_zero(options.entries, wanted.entries);
  set_unless_zero(options.queues, wanted.queues);
  set_unless_zero(options.streams, wanted.streams);
  return options;
}

/// Arms `operation(peer)`, followed by a signal if there is one.
template <class Operation>
beeline_status arm(const char* function, beeline_triggers* handle, const beeline_condition* when, std::int32_t peer,
                   beeline_armed* armed, const Operation& operation) noexcept {
  return guarded(function, [&] {
    beeline_triggers& of = object_of(handle, "triggers");
    const beeline_condition& given = c::structure_of(when, "when");
    const TriggerCondition condition{.tag = given.tag,
                                     .threshold = given.threshold,
                                     .then = given.chains != 0 ? given.then : no_chain,
                                     .deadline_ns = given.deadline_ns};
    const int target = static_cast<int>(c::peer_of(*of.team, peer));
    const ArmedOperation made = of.triggers.arm(operation(target), condition);
    if (armed != nullptr) armed->entry = made.entry, armed->turn = made.turn;
  });
}

TriggeredOperation signaled(const TriggeredOperation& moves, std::uint64_t* signal, std::uint64_t value) {
  return signal == nullptr ? moves : moves.and_signal(signal, value);
}

ArmedOperation armed_of(const beeline_armed* armed) {
  c::require_pointer(armed, "armed");
  return {armed->entry, armed->turn};
}

}  // namespace

beeline_status beeline_triggers_create(beeline_team* team, const beeline_trigger_options* options,
                                       beeline_triggers** triggers) noexcept {
  return c::collective("beeline_triggers_create", team, [&](Team& of) {
    c::require_pointer(triggers, "triggers");
    *triggers = std::make_unique<beeline_triggers>(of, options_of(options)).release();
  });
}

beeline_status beeline_triggers_destroy(beeline_triggers* triggers) noexcept {
  return guarded("beeline_triggers_destroy", [&] { delete &object_of(triggers, "triggers"); });
}

beeline_status beeline_arm_put(beeline_triggers* triggers, const beeline_condition* when, void* destination,
                               const void* source, size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                               beeline_armed* armed) noexcept {
  return arm("beeline_arm_put", triggers, when, peer, armed, [&](int target) {
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    const auto put = TriggeredOperation::put(static_cast<std::byte*>(destination),
                                             static_cast<const std::byte*>(source), bytes, target);
    return signaled(put, signal, value);
  });
}

beeline_status beeline_arm_get(beeline_triggers* triggers, const beeline_condition* when, void* destination,
                               const void* source, size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                               beeline_armed* armed) noexcept {
  return arm("beeline_arm_get", triggers, when, peer, armed, [&](int target) {
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    const auto get = TriggeredOperation::get(static_cast<std::byte*>(destination),
                                             static_cast<const std::byte*>(source), bytes, target);
    return signaled(get, signal, value);
  });
}

beeline_status beeline_arm_signal(beeline_triggers* triggers, const beeline_condition* when, uint64_t* signal,
                                  uint64_t value, int32_t peer, beeline_armed* armed) noexcept {
  return arm("beeline_arm_signal", triggers, when, peer, armed, [&](int target) {
    c::require_pointer(signal, "signal");
    return TriggeredOperation::signal(signal, value, target);
  });
}

beeline_status beeline_trigger(beeline_triggers* triggers, uint32_t tag, uint64_t count) noexcept {
  return guarded("beeline_trigger", [&] { object_of(triggers, "triggers").triggers.trigger(tag, count); });
}

beeline_status beeline_trigger_count(const beeline_triggers* triggers, uint32_t tag, uint64_t* reached) noexcept {
  return guarded("beeline_trigger_count", [&] {
    const Triggers& of = object_of(triggers, "triggers").triggers;
    c::require_pointer(reached, "reached");
    *reached = of.count(tag);
  });
}

beeline_status beeline_armed_wait(beeline_triggers* triggers, const beeline_armed* armed,
                                  uint64_t timeout_ns) noexcept {
  return guarded("beeline_armed_wait",
                 [&] { return object_of(triggers, "triggers").triggers.wait(armed_of(armed), Timeout{timeout_ns}); });
}

beeline_status beeline_armed_cancel(beeline_triggers* triggers, const beeline_armed* armed) noexcept {
  return guarded("beeline_armed_cancel", [&] {
    return object_of(triggers, "triggers").triggers.cancel(armed_of(armed)) ? Status::ok : Status::in_progress;
  });
}
