// SPDX-License-Identifier: Apache-2.0
// The construction of a world, part by part.
#include <fmt/format.h>

#include "beeline/host/impl/launch.hpp"
#include "host/carried_work.hpp"
#include "host/repeated_signals.hpp"
#include "host/world_implementation.hpp"
#include "memory/memory_users.hpp"
#include "transports/network_engine.hpp"

namespace beeline {

World::Implementation::Implementation(const Config& settings, std::unique_ptr<Bootstrap> joined)
    : config(settings), bootstrap(std::make_unique<NamedBootstrap>(std::move(joined))), process(bootstrap->rank()) {
  set_log_level(config.log_level);
  try {
    membership = std::make_unique<Membership>(discover_members(*bootstrap, config));
    teams = std::make_unique<Teams>(membership->everyone());
    agree_on_sizes(*bootstrap, config, *membership);
    std::vector<MemoryMember> paths = find_copy_paths(*membership, config.peer_access);
    const std::uint64_t secret = agree_on_secret(*bootstrap, config.deadline_ns);
    memory = std::make_unique<MemoryMap>(*bootstrap, config, *membership, secret, paths);
    const Areas& areas = memory->areas();
    if (config.check) memory->watch_repeated_signals(std::make_unique<RepeatedSignalLog>(areas, rank()));
    routes = std::make_unique<Routes>(*membership, std::move(paths), areas, memory->addresses(), is_gpu_memory());
    launches = std::make_unique<Launches>(*membership, areas, process);
    make_failures();
    make_engine(secret);
    contexts = std::make_unique<Contexts>(config, *membership, *memory, *routes);
    if (membership->device().is_gpu())
      for (const KernelCode& kernel : detail::registered_kernels()) load_kernel(kernel, membership->device().index);
    grids = std::make_unique<Grids>(areas.heap_header()->grids, membership->device());
    make_streams();
    zero(areas.heap_header(), sizeof(HeapHeader));
    serve_engine();
    bootstrap->on_abort([this](int culprit, const std::string& reason) { failures->note_end(culprit, reason); });
    bootstrap->barrier(config.deadline_ns);
    launches->count_cores();
    fork_handler_.emplace([this] { seal_in_child(); });
  } catch (const std::exception& error) {
    bootstrap->on_abort(nullptr);    // the handler uses parts that are destroyed before the bootstrap
    bootstrap->abort(error.what());  // so other ranks learn why this rank is missing
    throw;
  }
}

World::Implementation::~Implementation() {
  bootstrap->on_abort(nullptr);  // the handler uses the copy stream
  streams->end();
  engines->end();
  bootstrap.reset();  // no abort is handled from here on
}

std::function<bool(const void*)> World::Implementation::is_gpu_memory() const {
  return [&range = memory->range()](const void* address) { return range.is_gpu_memory(address); };
}

void World::Implementation::make_failures() {
  meetings = std::make_unique<Meetings>(
      *membership, memory->areas(), *teams,
      [this](int other, void* to, const void* at, std::size_t bytes) { return read_soon(other, to, at, bytes); });
  FailureActions actions;
  actions.zero = [this](void* address, std::size_t bytes) { zero(address, bytes); };
  actions.notify_kernels = [this] {
    if (!membership->device().is_gpu() || streams == nullptr) return;
    try {
      streams->with_copies([this](Stream& stream) {
        stream.copy(memory->areas().heap_header()->abort, memory->areas().host_header()->control.abort,
                    sizeof(HeapHeader::abort));
      });
    } catch (const Error& error) {
      log(LogLevel::error, std::string("kernels could not be told of the abort: ") + error.what(), rank());
    }
  };
  actions.end_sources = [this](const std::vector<int>& ranks) {
    if (engines->of_peers() != nullptr) engines->of_peers()->end_sources(ranks);
  };
  failures = std::make_unique<Failures>(*membership, memory->areas(), *teams, *meetings, process, std::move(actions));
}

void World::Implementation::make_engine(std::uint64_t secret) {
  engines = std::make_unique<Engines>(config, membership->device(), [this] { return engine_client(); });
  if (config.engines != nullptr)
    engines->use(config.engines->make(rank(), membership->devices()));
  else if (membership->spans_nodes())
    engines->use(make_network(secret));
  if (engines->of_peers() != nullptr) routes->ask(*engines->of_peers());
}

std::unique_ptr<Engine> World::Implementation::make_network(std::uint64_t secret) {
  NetworkPlan plan;
  plan.rank = rank(), plan.world = secret, plan.is_split = config.split_nodes > 1;
  plan.transports = config.transports, plan.is_secure = config.secure, plan.token = config.token;
  plan.keys = config.memory_keys, plan.gpu_payloads = config.gpu_payloads;
  plan.is_gpu = membership->device().is_gpu();
  plan.deadline_ns = config.deadline_ns, plan.poll_us = config.engine_poll_us;
  plan.meeting_point = config.rendezvous.empty() ? config.launcher.address : config.rendezvous;
  for (const Member& member : membership->all()) {
    plan.node_of.push_back(member.node);
    plan.host_of.push_back(member.host);
    plan.is_staged.push_back(member.device.is_gpu() || !config.peer_access);
  }
  FailureEvents events;
  events.members_to_notify = [this](std::uint32_t team) { return membership->members_to_notify(teams->members(team)); };
  events.cause = [this](std::uint32_t team) { return failures->cause_for_others(team); };
  events.aborted = [this](std::uint32_t team, std::uint64_t word, const std::string& cause) {
    failures->take_remote_abort(team, word, cause);
  };
  events.kernels_see_abort = [this, stored = std::shared_ptr<Event>()]() mutable { return kernels_see_abort(stored); };
  events.lost = [this](int peer, const std::string& reason) { lose(peer, reason); };
  return make_network_engine(*bootstrap, plan, std::move(events));
}

bool World::Implementation::kernels_see_abort(std::shared_ptr<Event>& stored) {
  if (!membership->device().is_gpu()) return true;
  bool is_over = true;
  try {
    if (stored == nullptr) {
      failures->notify_kernels();
      streams->with_copies([&](Stream& stream) {
        stored = stream.make_event();
        stream.record(*stored);
      });
    }
    is_over = stored == nullptr || stored->done();
  } catch (const Error&) {
    // A GPU with a fault runs no kernels.
  }
  if (is_over) stored.reset();
  return is_over;
}

void World::Implementation::lose(int peer, const std::string& reason) {
  if (has_left || is_left_out || bootstrap->health()[static_cast<std::size_t>(peer)].state != RankState::healthy)
    return;
  const std::string text = fmt::format("rank {} has lost its connection to rank {}: {}", rank(), peer, reason);
  failures->note_end(peer, text);
  failures->raise_with_cause(Status::peer_died, text, contexts->barrier());
}

EngineClient World::Implementation::engine_client() {
  AddressRange& range = memory->range();
  EngineClient client;
  client.rank = rank(), client.ranks = membership->size();
  client.device = membership->device();
  client.context = contexts->barrier();
  // Captured by value: threads call it for each command, and would otherwise wait for cache lines that others change.
  const auto in_slot = [base = range.base(), slot = SlotLayout{config.slot_shift}](std::uint32_t peer,
                                                                                   std::uint64_t offset) {
    return base + peer * slot.slot_bytes() + offset;
  };
  client.address_of = in_slot;
  if (memory->aliases().is_used())
    client.address_of = [in_slot, slot = SlotLayout{config.slot_shift}, &aliases = memory->aliases()](
                            std::uint32_t peer, std::uint64_t offset) {
      if (MemoryAliases::may_hold(slot, offset)) [[unlikely]]
        if (std::byte* const there = aliases.find(peer, offset)) return there;
      return in_slot(peer, offset);
    };
  client.piece_at = [&range](const void* address) { return range.piece_at(address); };
  client.unmaps = &range.unmaps();
  client.memory_users = &range.users();
  client.is_host_memory = [&range](const void* address) { return !range.is_gpu_memory(address); };
  client.cpu_changes_host_words = !kernels_have_host_atomics(membership->devices(), rank());
  client.network = membership->spans_nodes() ? engines->of_peers() : nullptr;
  client.is_remote = [this](std::uint32_t peer) { return !membership->is_local(static_cast<int>(peer)); };
  client.note_refusal = [this](const std::string& text) { failures->note_refusal(text); };
  client.fail = [this](const std::string& reason) {
    failures->note_end(rank(), reason);
    failures->raise_with_cause(Status::peer_died, fmt::format("rank {0}'s engine failed: {1}", rank(), reason),
                               contexts->barrier());
    bootstrap->abort(reason);
  };
  return client;
}

void World::Implementation::serve_engine() {
  if (engines->of_peers() == nullptr) return;
  EngineClient client = engine_client();
  for (auto& rings : memory->areas().host_header()->rings)
    for (CommandRing& ring : rings) client.rings.push_back(&ring);
  engines->of_peers()->serve(client);
}

void World::Implementation::make_streams() {
  StreamRoutes by_engine;
  by_engine.chunk_bytes = config.chunk_bytes;
  by_engine.copy_by_engine = [this](Stream& own, void* to, const void* from, std::size_t bytes) {
    if (routes->needs_engine(to)) to = memory->named_in_slot(to);
    if (routes->needs_engine(from)) from = memory->named_in_slot(const_cast<void*>(from));
    carry_copy(*world, own, to, from, bytes);
  };
  by_engine.fill_by_engine = [this](Stream& own, void* to, unsigned char value, std::size_t bytes) {
    carry_fill(*world, own, memory->named_in_slot(to), value, bytes);
  };
  by_engine.signal_by_engine = [this](Stream& own, std::uint64_t* signal, std::uint64_t value) {
    carry_signal(*world, own, signal, value);
  };
  streams =
      std::make_unique<Streams>(*membership, contexts->host(), *grids, *routes, is_gpu_memory(), std::move(by_engine));
}

void World::Implementation::seal_in_child() {
  // The memory is the child's own copy (AddressRange), so the abort words end only waits of the child.
  memory->checks().is_forked = true;
  for (std::uint64_t& word : memory->areas().host_header()->control.abort)
    word = abort_word(static_cast<std::uint32_t>(rank()));
}

}  // namespace beeline
