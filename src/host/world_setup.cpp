// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <thread>

#include "beeline/host/impl/launch.hpp"
#include "core/default_heap.hpp"
#include "host/repeated_signals.hpp"
#include "host/world_implementation.hpp"
#include "memory/agreement.hpp"
#include "memory/memory_limits.hpp"
#include "runtime/node.hpp"
#include "runtime/process_id.hpp"
#include "transport/host_stream.hpp"

namespace beeline {

namespace {

std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& mine, std::int64_t deadline_ns) {
  std::vector<std::string> all;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(mine)), deadline_ns))
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    found.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return found;
}

std::uint64_t agree_on_world_id(Bootstrap& bootstrap, std::int64_t deadline_ns) {
  std::uint64_t mine = 0;
  require(getrandom(&mine, sizeof mine, 0) == sizeof mine, Status::internal, "getrandom failed");
  const auto all = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), deadline_ns);
  std::uint64_t first = 0;
  std::memcpy(&first, all.front().data(), sizeof first);
  return first;
}

}  // namespace

World::Implementation::Implementation(const Config& settings, std::unique_ptr<Bootstrap> joined)
    : config(settings), bootstrap(std::make_unique<NamedBootstrap>(std::move(joined))), rank(bootstrap->rank()),
      size(bootstrap->size()) {
  set_log_level(config.log_level);
  try {
    choose_device();
    make_memory();
    publish_cores();
    make_engine();
    make_contexts();
    load_kernels();
    make_gpu_reach();
    copy_stream = make_stream();
    stream = make_stream();
    // Later a kernel may spin on the GPU, beside which no stream can be made where ranks share it.
    if (device().is_gpu()) blocking_streams.add(make_stream());
    zero(heap_header(rank), sizeof(HeapHeader));
    serve_engine();
    watch_for_deaths();
    bootstrap->barrier(config.deadline_ns);
    count_cores();
    fork_handler_.emplace([this] { seal_in_child(); });
  } catch (const std::exception& error) {
    bootstrap->on_abort(nullptr);    // what the handler uses goes before the bootstrap does
    bootstrap->abort(error.what());  // the others shall know why this rank does not come
    throw;
  }
}

void World::Implementation::choose_device() {
  const std::string choice = devices_of_ranks(config.device, size)[static_cast<std::size_t>(rank)];
  const std::vector<Device> gpus = config.device == "cpu" ? std::vector<Device>{} : visible_gpus();
  std::string mine = fmt::format("{}\n{}\n", detail::process_id(), choice);
  for (const Device& gpu : gpus) mine += gpu.uuid + "\n";
  std::vector<DeviceInventory> inventories;
  for (const std::string& text : allgather_text(*bootstrap, mine, config.deadline_ns)) {
    auto parts = lines(text);
    inventories.push_back({std::stoull(parts[0]), {parts.begin() + 2, parts.end()}, parts[1]});
  }
  const int index = choose_gpu(rank, inventories, mps_runs());
  const Device chosen = index < 0 ? host_device() : gpus[static_cast<std::size_t>(index)];
  learn_devices(chosen, inventories);
  ranks_on_device = 0;
  for (const Member& member : members)
    if (!chosen.is_gpu() ? &member == &members[static_cast<std::size_t>(rank)] : member.device.uuid == chosen.uuid)
      ++ranks_on_device;
  const int reaching = members[static_cast<std::size_t>(rank)].reaching_gpu;
  if (const int used = chosen.is_gpu() ? chosen.index : reaching; used >= 0) use_gpu(used);
  log(LogLevel::info,
      fmt::format("device {}{}{}", chosen.is_gpu() ? fmt::format("cuda:{} ", chosen.index) : "cpu ", chosen.name,
                  reaching < 0 ? "" : fmt::format(", reaching GPU memory with cuda:{}", reaching)),
      rank);
}

void World::Implementation::learn_devices(const Device& mine, const std::vector<DeviceInventory>& inventories) {
  const std::string description =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{:d}\n{}\n", mine.index, mine.uuid, mine.name, mine.multiprocessors,
                  mine.memory_bytes, mine.host_atomics, detail::node_of(config));
  std::vector<std::string> owned, nodes;
  for (const std::string& text : allgather_text(*bootstrap, description, config.deadline_ns)) {
    const auto parts = lines(text);
    const int gpu = std::stoi(parts[0]);
    members.push_back({inventories[members.size()].process,
                       {gpu < 0 ? DeviceKind::host : DeviceKind::gpu, gpu, parts[1], parts[2], std::stoi(parts[3]),
                        std::stoull(parts[4]), parts[5] == "1"}});
    owned.push_back(parts[1]);
    nodes.push_back(parts[6]);
  }
  learn_nodes(nodes);
  for (std::size_t each = 0; each < members.size(); ++each) {
    if (members[each].device.is_gpu()) continue;
    std::vector<std::string> near = owned;
    for (std::size_t other = 0; other < members.size(); ++other)
      if (members[other].node != members[each].node) near[other].clear();
    members[each].reaching_gpu = choose_reaching_gpu(static_cast<int>(each), inventories, near);
  }
}

bool World::Implementation::mixes_kinds(const std::vector<int>& ranks) const {
  const auto kind = [this](int each) { return members[static_cast<std::size_t>(each)].device.kind; };
  return std::any_of(ranks.begin(), ranks.end(), [&](int each) { return kind(each) != kind(ranks.front()); });
}

bool World::Implementation::has_gpus() const {
  return std::any_of(members.begin(), members.end(), [](const Member& member) { return member.device.is_gpu(); });
}

void World::Implementation::make_gpu_reach() {
  if (device().is_gpu() || !has_gpus()) return;
  const int gpu = members[static_cast<std::size_t>(rank)].reaching_gpu;
  Device copier;
  copier.kind = DeviceKind::gpu, copier.index = gpu;
  std::unique_ptr<Stream> copying;
  if (gpu >= 0) copying = make_gpu_stream(copier, host_context, nullptr);
  const auto is_gpu_memory = [this](const void* address) {
    if (!memory->range().is_gpu_memory(address)) return false;
    static_cast<void>(is_far_gpu_memory(address));  // refuses what this rank's GPU does not reach
    return true;
  };
  gpu_reach = std::make_unique<GpuReach>(is_gpu_memory, std::move(copying));
}

void World::Implementation::make_memory() {
  const bool all_gpus = std::all_of(members.begin(), members.end(), [](const Member& m) { return m.device.is_gpu(); });
  const bool is_chosen = config.heap_bytes != 0;  // the default heap need not fit as a whole
  if (!is_chosen) config.heap_bytes = all_gpus ? default_gpu_heap_bytes : default_host_heap_bytes;
  fit_slots();
  const std::string mine = fmt::format("{} {} {}", config.heap_bytes, config.pinned_heap_bytes, config.slot_shift);
  const auto all = allgather_text(*bootstrap, mine, config.deadline_ns);
  for (std::size_t other = 0; other < all.size(); ++other)
    require(all[other] == mine, Status::invalid_argument,
            fmt::format("rank {} has heap, pinned heap, slot shift {}, rank {} has {}: they must agree", rank, mine,
                        other, all[other]));
  fail_together(*bootstrap, problem_of([&] { check_host_memory(is_chosen); }), config.deadline_ns);
  routes = find_routes();
  world_secret = agree_on_world_id(*bootstrap, config.deadline_ns);
  memory = std::make_unique<NodeMemory>(*bootstrap, world_secret, routes,
                                        MemorySizes{config.slot_shift, config.heap_bytes + aligned(sizeof(HeapHeader)),
                                                    config.pinned_heap_bytes + aligned(sizeof(HostAreaHeader))},
                                        config.deadline_ns);
  distributed = std::make_unique<DistributedMemory>(*bootstrap, memory->range(), routes, config.deadline_ns);
  registration = std::make_unique<Registration>(*bootstrap, memory->range(), routes, config.deadline_ns);
  addresses.open(memory->range().base(), config.slot_shift, static_cast<std::uint32_t>(size));
  heap = std::make_unique<OffsetAllocator>(config.heap_bytes, allocation_alignment);
  pinned_heap = std::make_unique<OffsetAllocator>(config.pinned_heap_bytes, allocation_alignment);
  const std::byte* const slot = memory->range().slot(rank);
  if (!device().is_gpu())
    checks.allocations.add_heap(static_cast<std::uint64_t>(heap_start(rank) - slot), config.heap_bytes);
  checks.allocations.add_heap(static_cast<std::uint64_t>(pinned_start(rank) - slot), config.pinned_heap_bytes);
  for (const int other : near_ranks()) checks.mapped.set(static_cast<std::size_t>(other));
  if (config.check) {
    repeated_signals = std::make_unique<RepeatedSignalLog>(*this);
    checks.repeated_signals = repeated_signals.get();
  }
  for (std::uint32_t grid = max_streams; grid-- > 0;) free_grids->indices.push_back(grid);
}

/// Slots of the chosen size, or smaller ones, if those of many ranks would not fit the address space.
void World::Implementation::fit_slots() {
  constexpr std::uint32_t range_shift = 46;  // half of what a process has
  const auto most = range_shift - static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(size - 1)));
  if (config.slot_shift <= most || config.slot_shift > max_slot_shift) return;  // the latter is refused
  log(LogLevel::info,
      fmt::format("slots of 2^{} bytes: {} of 2^{} do not fit the address space", most, size, config.slot_shift), rank);
  config.slot_shift = most;
}

/// Host memory is taken when it is first touched, and a process that may have no more is killed then: what could never
/// fit is refused before.
void World::Implementation::check_host_memory(bool has_chosen_heaps) const {
  const MemoryLimit limit = host_memory_limit();
  const auto on_host =
      static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](const Member& member) {
        return !member.device.is_gpu() && member.node == members[static_cast<std::size_t>(rank)].node;
      }));
  require(!has_chosen_heaps || on_host == 0 || config.heap_bytes <= limit.bytes / on_host, Status::no_resource,
          fmt::format("symmetric heaps of {} bytes for {} host ranks are more than {}, {} bytes: lower "
                      "BEELINE_HEAP_BYTES, or start fewer ranks",
                      config.heap_bytes, on_host, limit.name, limit.bytes));
  require(config.pinned_heap_bytes <= limit.bytes, Status::no_resource,
          fmt::format("a pinned heap of {} bytes is more than {}, {} bytes: lower BEELINE_PINNED_HEAP_BYTES",
                      config.pinned_heap_bytes, limit.name, limit.bytes));
}

std::uint64_t World::Implementation::guarded_offsets(bool mixed) const {
  std::vector<Device> devices;
  for (const Member& member : members) devices.push_back(member.device);
  if (kernels_have_host_atomics(devices, rank)) return 0;
  return mixed ? ~std::uint64_t{0} : std::uint64_t{1} << (config.slot_shift - 1);
}

namespace {

///   ranks  of this machine: nodes that are one machine share its cores
Polling polling_of(const Config& config, int ranks) {
  if (config.wait_policy >= WaitPolicy::sleep)
    return {config.wait_policy, static_cast<std::uint32_t>(config.wait_period_us)};
  // Spinning helps only if every rank has a core of its own; otherwise it takes the core from the rank that is waited
  // for. A running rank answers within a microsecond, and a microsecond is lost if the scheduler puts two on one core.
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return {config.wait_policy, static_cast<unsigned>(ranks) <= cores ? 64u : 2u};
}

}  // namespace

Context World::Implementation::make_context(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const {
  const bool gpu = device().is_gpu() && !for_host;
  Context made{};
  made.range = memory->range().base();
  made.resident = true;
  made.mixed = mixes_kinds(ranks);
  made.guarded_offsets = gpu ? guarded_offsets(made.mixed) : 0;
  // What GPUs and CPUs both write and poll lies in host memory: a word for each writer, and no atomics.
  made.abort_words = gpu && !made.mixed ? heap_header(rank)->abort : host_header(rank)->control.abort;
  made.host_abort_words = host_header(rank)->control.abort;
  made.waits = gpu ? host_header(rank)->control.device_waits.records : host_header(rank)->control.host_waits.records;
  made.wait_claims = gpu ? &heap_header(rank)->wait_claims : &host_header(rank)->wait_claims;
  made.sync = for_host     ? &host_header(rank)->teams[team]
              : made.mixed ? &host_header(rank)->kernel_teams[team]
                           : &heap_header(rank)->teams[team];
  made.deadline_ns = static_cast<std::uint64_t>(config.deadline_ns);
  made.slot_shift = config.slot_shift;
  made.slots = static_cast<std::uint32_t>(size);
  if (!gpu) made.checks = &checks;
  made.heap_end = memory->sizes().heap_bytes;
  made.pinned_heap_end = memory->range().layout().host_area_offset() + memory->sizes().host_area_bytes;
  made.polling = polling_of(config, ranks_on_machine);
  made.team = team;
  made.size = static_cast<std::uint32_t>(ranks.size());
  made.own_world_rank = static_cast<std::uint32_t>(rank);
  made.rank = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const std::vector<std::uint32_t> places = places_of(ranks);
  made.first_place = made.rank - places[made.rank];
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    const std::uint32_t place = places[member];
    if (place == no_place) continue;
    made.places = std::max(made.places, place + 1);
    // None to other nodes, where nothing is mapped: what goes to all places stays here.
    if (is_near(ranks[member]))
      made.distances[place] = (ranks[member] - rank) * (1 << (config.slot_shift - min_slot_shift));
    if (members[static_cast<std::size_t>(ranks[member])].device.is_gpu()) made.gpu_members |= std::uint64_t{1} << place;
  }
  add_routes(made, ranks, places, for_host);
  return made;
}

/// Each member's place in this rank's contexts: of a few members all have one, in their order. Of many only those on
/// this node have; in their order from the first on, if they are neighbours.
std::vector<std::uint32_t> World::Implementation::places_of(const std::vector<int>& ranks) const {
  std::vector<std::uint32_t> places(ranks.size(), no_place);
  if (ranks.size() <= max_node_ranks) {
    std::iota(places.begin(), places.end(), 0u);
    return places;
  }
  std::uint32_t next = 0;
  for (std::size_t member = 0; member < ranks.size(); ++member)
    if (is_near(ranks[member])) places[member] = next++;
  return places;
}

void World::Implementation::make_contexts() {
  std::vector<int> everyone;
  for (int each = 0; each < size; ++each) everyone.push_back(each);
  teams[world_id] = everyone;
  barrier_context = host_context = make_context(world_id, everyone, true);
}

void World::Implementation::publish_cores() {
  cpu_set_t mine;
  static_assert(sizeof mine == sizeof(HostAreaHeader::cores));
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::memcpy(host_header(rank)->cores, &mine, sizeof mine);
}

void World::Implementation::count_cores() {
  double share = 0;
  for (std::size_t core = 0; core < max_cores; ++core) {
    const auto runs = [&](int each) { return (host_header(each)->cores[core / 64] >> core % 64 & 1u) != 0; };
    if (!runs(rank)) continue;
    int ranks = 0;
    for (const int other : near_ranks())
      if (!members[static_cast<std::size_t>(other)].device.is_gpu() && runs(other)) ++ranks;
    share += 1.0 / ranks;
  }
  cores = std::max(1u, static_cast<unsigned>(share + 1e-6));
}

void World::Implementation::load_kernels() {
  if (!device().is_gpu()) return;
  for (const KernelCode& kernel : detail::registered_kernels()) load_kernel(kernel, device().index);
}

void World::Implementation::watch_for_deaths() {
  bootstrap->on_abort([this](int culprit, const std::string& reason) { note_end(culprit, reason); });
}

}  // namespace beeline
