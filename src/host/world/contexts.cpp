// SPDX-License-Identifier: Apache-2.0
#include "host/world/contexts.hpp"

#include <algorithm>
#include <thread>

namespace beeline {

namespace {

///   ranks        number of ranks on this machine; several nodes on one machine share its cores
///   spans_nodes  whether members of the team are on other nodes
Polling polling_of(const Config& config, int ranks, bool spans_nodes) {
  if (config.wait_policy >= WaitPolicy::sleep)
    return {config.wait_policy, static_cast<std::uint32_t>(config.wait_period_us)};
  // Spinning helps only if every rank has a core of its own; otherwise it takes the core from the awaited rank. A
  // running rank answers within a microsecond; a wrong placement of two ranks on a core costs about a microsecond.
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (static_cast<unsigned>(ranks) > cores) return {config.wait_policy, 2u};
  // A wait does the network's work once it yields the core: 64 polls, each with a pause, would delay that by 3 us.
  return {config.wait_policy, spans_nodes ? 16u : 64u};
}

}  // namespace

Contexts::Contexts(const Config& config, const Membership& membership, const MemoryMap& memory, const Routes& routes)
    : config_(config), membership_(membership), memory_(memory), routes_(routes) {
  barrier_ = host_ = make(Teams::world_id, membership.everyone(), true);
}

std::uint64_t Contexts::guarded_offsets(bool mixed) const {
  if (kernels_have_host_atomics(membership_.devices(), membership_.rank())) return 0;
  return mixed ? ~std::uint64_t{0} : std::uint64_t{1} << (config_.slot_shift - 1);
}

Context Contexts::make(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const {
  const bool gpu = membership_.device().is_gpu() && !for_host;
  const int rank = membership_.rank();
  HeapHeader& heap = *memory_.areas().heap_header();
  HostAreaHeader& header = *memory_.areas().host_header();
  Context made{};
  made.range = memory_.range().base();
  made.resident = true;
  made.mixed = membership_.mixes_kinds(ranks);
  made.guarded_offsets = gpu ? guarded_offsets(made.mixed) : 0;
  // Words that GPUs and CPUs both write and poll are in host memory, one for each writer, without atomics.
  made.abort_words = gpu && !made.mixed ? heap.abort : header.control.abort;
  made.host_abort_words = header.control.abort;
  made.waits = gpu ? header.control.device_waits.records : header.control.host_waits.records;
  made.wait_claims = gpu ? &heap.wait_claims : &header.wait_claims;
  made.sync = for_host ? &header.teams[team] : made.mixed ? &header.kernel_teams[team] : &heap.teams[team];
  made.deadline_ns = static_cast<std::uint64_t>(config_.deadline_ns);
  made.slot_shift = config_.slot_shift;
  made.slots = static_cast<std::uint32_t>(membership_.size());
  if (!gpu) made.checks = &memory_.checks();
  made.heap_end = memory_.node().sizes().heap_bytes;
  made.pinned_heap_end = memory_.range().layout().host_area_offset() + memory_.node().sizes().host_area_bytes;
  made.polling = polling_of(config_, membership_.ranks_on_machine(), !membership_.remote_among(ranks).empty());
  made.team = team;
  made.size = static_cast<std::uint32_t>(ranks.size());
  made.own_world_rank = static_cast<std::uint32_t>(rank);
  made.rank = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const std::vector<std::uint32_t> places = places_of(membership_, ranks);
  made.first_place = made.rank - places[made.rank];
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    const std::uint32_t place = places[member];
    if (place == no_place) continue;
    made.places = std::max(made.places, place + 1);
    // The distance stays 0 for other nodes, whose memory is not mapped, so an access to all places stays on this rank.
    if (membership_.is_local(ranks[member]))
      made.distances[place] = (ranks[member] - rank) * (1 << (config_.slot_shift - min_slot_shift));
    if (membership_.of(ranks[member]).device.is_gpu()) made.gpu_members |= std::uint64_t{1} << place;
  }
  routes_.add_to(made, ranks, places, for_host);
  return made;
}

void Contexts::regroup(std::uint32_t id, const std::vector<int>& left) {
  barrier_ = make(id, left, true);
  barrier_.team = Teams::world_id;  // waits and aborts are the world's
}

}  // namespace beeline
