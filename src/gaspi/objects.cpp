// SPDX-License-Identifier: Apache-2.0
#include "gaspi/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "gaspi/process.hpp"

namespace beeline::gaspi {

namespace {

constexpr std::size_t flag_bytes = segment_notifications * sizeof(std::uint64_t);
constexpr std::int32_t no_memory = 28;  // GASPI_ERR_MEMALLOC
constexpr std::int32_t failed = static_cast<std::int32_t>(Result::error);

int kind_of(Memory memory) { return memory == Memory::device ? BEELINE_MEMORY_DEVICE : BEELINE_MEMORY_PINNED; }
Memory kind_of_flags(const Plan::Part& part) { return part.has_flags_on_device ? Memory::device : Memory::host; }
/// Whether flags and data of a part lie in one piece of memory, flags first.
bool is_in_one_piece(const Plan::Part& part) { return kind_of_flags(part) == part.kind; }

const Plan::Part* part_of(const std::vector<Plan::Part>& batch, int rank) {
  const auto found = std::find_if(batch.begin(), batch.end(), [=](const auto& part) { return part.of.rank == rank; });
  return found == batch.end() ? nullptr : &*found;
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

bool is_done(beeline_status status) {
  switch (status) {
    case BEELINE_DEADLINE:
    case BEELINE_ABORTED:
    case BEELINE_PEER_DIED:
      throw Lost{beeline_last_error()};
    default:
      return status == BEELINE_OK;
  }
}

void require_done(beeline_status status) {
  if (!is_done(status)) throw Failure(beeline_last_error());
}

Objects::~Objects() = default;

int Objects::rank() const { return process_.rank(); }

void Objects::note(const ItemPlace& place, std::int32_t value, const std::string& text) {
  if (place.rank == rank()) execution_->outcomes.push_back({place.index, value, text});
}

// --- Teams --------------------------------------------------------------------------------------------------------

void Objects::make_team(Group& group, const std::vector<int>& ranks) {
  const std::vector<std::int32_t> members(ranks.begin(), ranks.end());
  if (!is_done(beeline_team_create(process_.world(), members.data(), static_cast<std::int32_t>(members.size()),
                                   &group.team)))
    throw Failure(beeline_last_error());
  void* gathered = nullptr;
  const std::size_t rows_bytes = ranks.size() * reduced_row_bytes;
  if (!is_done(beeline_allocate(group.team, rows_bytes + sizeof *group.entered, BEELINE_HEAP_PINNED, &gathered))) {
    const std::string text = beeline_last_error();
    static_cast<void>(beeline_team_destroy(std::exchange(group.team, nullptr)));
    throw Failure(text);
  }
  group.gathered = static_cast<std::byte*>(gathered);
  group.entered = reinterpret_cast<std::uint64_t*>(group.gathered + rows_bytes);
  group.ranks = ranks;
}

void Objects::make_first_team(const std::shared_ptr<Group>& group, const std::vector<int>& ranks) {
  group->serial = next_serial_++;
  make_team(*group, ranks);
  team_members_.emplace_back(group->serial, ranks);
  groups_.emplace_back(group->serial, group);
  group->commit_is_taken = true;
  group->state = Group::State::committed;
}

void Objects::commit(const std::vector<Plan::Team>& together, const std::vector<RequestBook::Numbered>& requests) {
  const Plan::Team* mine = nullptr;
  for (const Plan::Team& team : together) {
    execution_->teams.emplace_back(next_serial_++, team.ranks);
    if (contains(team.ranks, rank())) mine = &team;
  }
  if (mine == nullptr) {
    beeline_team* none = nullptr;
    static_cast<void>(is_done(beeline_team_create(process_.world(), nullptr, 0, &none)));
    return;
  }
  const ItemPlace place =
      *std::find_if(mine->of.begin(), mine->of.end(), [this](const ItemPlace& each) { return each.rank == rank(); });
  const std::shared_ptr<Group> group = process_.groups().find(requests[place.index].request.id);
  Group scratch(0);  // of a group whose caller has given up and deleted it: the team is made all the same
  Group& made = group == nullptr ? scratch : *group;
  try {
    make_team(made, mine->ranks);
    made.serial =
        execution_->teams[static_cast<std::size_t>(mine - together.data()) + execution_->teams.size() - together.size()]
            .first;
    if (group != nullptr) execution_->committed.push_back(group);
    note(place);
  } catch (const Failure& failure) {
    note(place, failed, failure.what());
  }
}

void Objects::end_team(const Plan::End& end) {
  for (const ItemPlace& place : end.of) note(place);
  const std::shared_ptr<Group> group = group_of(end.serial);
  // Forgotten first: if a rank is lost meanwhile, all ranks forget the team (`keep`).
  std::erase_if(team_members_, [&](const auto& team) { return team.first == end.serial; });
  std::erase_if(groups_, [&](const auto& mine) { return mine.first == end.serial; });
  if (group == nullptr) return;
  if (beeline_team_failed(group->team) == 0)  // otherwise its memory is freed with the world
    static_cast<void>(is_done(beeline_free(group->team, group->gathered)));
  static_cast<void>(beeline_team_destroy(group->team));
}

std::shared_ptr<Group> Objects::group_of(std::uint64_t serial) const {
  for (const auto& [number, group] : groups_)
    if (number == serial) return group;
  return nullptr;
}

// --- Memory -------------------------------------------------------------------------------------------------------

void Objects::await_readers(std::uint32_t segment, Clock::time_point end) const {
  SegmentTable::EarlierReaders readers(process_.segments(), segment);
  while (!readers.have_ended()) {
    // A reader may wait for the end of the failure.
    if (beeline_team_failed(process_.world_team()) != 0) throw Lost{"ranks were lost while a segment was deleted"};
    if (Clock::now() >= end)  // this rank gives up: the memory must not be unmapped under a call
      throw Failure(fmt::format("a call of this rank still uses segment {} a deadline after its deletion", segment));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Objects::remove(const std::vector<Plan::Removal>& removals) {
  const auto end = Clock::now() + std::chrono::nanoseconds(process_.deadline_ns());
  for (const Plan::Removal& removal : removals) {
    process_.segments_->set(removal.id, removal.of.rank, {});
    execution_->removed.emplace_back(removal.of.rank, removal.id);
    note(removal.of);
  }
  for (const Plan::Removal& removal : removals) await_readers(removal.id, end);
  for (const std::unique_ptr<Extension>& extension : process_.extensions_) extension->drain(process_);
  const auto is_removed = [&](const std::pair<int, std::uint32_t>& part) {
    const auto& removed = execution_->removed;
    return std::find(removed.begin(), removed.end(), part) != removed.end();
  };
  for (Block& block : blocks_)
    if (std::all_of(block.parts.begin(), block.parts.end(), is_removed)) destroy(block);
}

void Objects::destroy(Block& block) {
  block.is_ended = true;
  if (block.flags != nullptr) static_cast<void>(is_done(beeline_segment_destroy(std::exchange(block.flags, nullptr))));
  if (block.data != nullptr) static_cast<void>(is_done(beeline_segment_destroy(std::exchange(block.data, nullptr))));
  if (block.registered != nullptr)
    static_cast<void>(is_done(beeline_deregister(std::exchange(block.registered, nullptr))));
}

void Objects::make(const std::vector<Plan::Part>& batch) {
  try {
    make_together(batch);
    return;
  } catch (const Failure& failure) {
    if (batch.size() == 1) return note(batch.front().of, no_memory, failure.what());
  }
  for (const Plan::Part& part : batch) make({part});  // so that only the ranks without memory fail
}

void Objects::make_together(const std::vector<Plan::Part>& batch) {
  const Plan::Part* const mine = part_of(batch, rank());
  const bool any_own_flags = !std::all_of(batch.begin(), batch.end(), is_in_one_piece);
  Block block{.serial = next_serial_++};
  const std::size_t data_bytes = mine == nullptr ? 0 : mine->bytes + (is_in_one_piece(*mine) ? flag_bytes : 0);
  if (!is_done(beeline_segment_create(process_.world(), kind_of(mine == nullptr ? Memory::host : mine->kind),
                                      data_bytes, &block.data)))
    throw Failure(beeline_last_error());
  const bool has_own_flags = mine != nullptr && !is_in_one_piece(*mine);
  if (any_own_flags &&
      !is_done(beeline_segment_create(process_.world(), kind_of(has_own_flags ? kind_of_flags(*mine) : Memory::host),
                                      has_own_flags ? flag_bytes : 0, &block.flags))) {
    const std::string text = beeline_last_error();
    destroy(block);
    throw Failure(text);
  }
  for (const Plan::Part& part : batch) {
    block.parts.emplace_back(part.of.rank, part.id);
    execution_->parts.push_back(describe(part, block));
    note(part.of);
  }
  execution_->blocks.push_back(std::move(block));
}

Objects::NamedPart Objects::describe(const Plan::Part& made, const Block& block) const {
  const int owner = made.of.rank;
  NamedPart named{.id = made.id, .rank = owner, .part = {}};
  Part& part = named.part;
  part.bytes = made.bytes, part.kind = made.kind, part.has_flags_on_device = made.has_flags_on_device;
  part.is_for_me = owner == rank() || contains(made.announced, rank());
  part.is_direct = owner == rank() || beeline_team_route(process_.world_team(), owner) == BEELINE_ROUTE_DIRECT;
  const auto locate = [&](const beeline_segment* segment, void** symmetric) {
    beeline_part found{};
    found.struct_bytes = sizeof found;
    if (!is_done(beeline_segment_part(segment, owner, &found)) ||
        !is_done(beeline_symmetric_address(process_.world(), found.address, symmetric)))
      throw Failure(beeline_last_error());
    return static_cast<std::byte*>(found.address);
  };
  void* symmetric = nullptr;
  if (block.flags != nullptr && (block.registered != nullptr || !is_in_one_piece(made))) {
    locate(block.flags, &symmetric);
    part.flags = static_cast<std::uint64_t*>(symmetric);
  }
  if (block.data != nullptr) {
    std::byte* const start = locate(block.data, &symmetric);
    const std::size_t offset = is_in_one_piece(made) ? flag_bytes : 0;
    if (offset != 0) part.flags = static_cast<std::uint64_t*>(symmetric);
    part.data = static_cast<std::byte*>(symmetric) + offset;
    part.address = start + offset;
  }
  return named;
}

void Objects::add_existing(const Plan::Part& made, void* pointer) {
  Block block{.serial = next_serial_++};
  const bool is_mine = made.of.rank == rank();
  std::byte* const start = is_mine ? static_cast<std::byte*>(pointer) - made.remainder : nullptr;
  try {
    if (!is_done(
            beeline_register(process_.world(), start, is_mine ? made.bytes + made.remainder : 0, &block.registered)))
      throw Failure(beeline_last_error());
    if (!is_done(beeline_segment_create(process_.world(), kind_of(is_mine ? kind_of_flags(made) : Memory::host),
                                        is_mine ? flag_bytes : 0, &block.flags))) {
      const std::string text = beeline_last_error();
      destroy(block);
      throw Failure(no_memory, text);
    }
  } catch (const Failure& failure) {
    return note(made.of, failure.value(), failure.what());
  }
  block.parts.emplace_back(made.of.rank, made.id);
  NamedPart named = describe(made, block);
  Part& part = named.part;
  beeline_part found{};
  found.struct_bytes = sizeof found;
  void* alias = nullptr;
  if (!is_done(beeline_registered_part(block.registered, made.of.rank, &found)) ||
      !is_done(beeline_registered_alias(block.registered, &alias)))
    throw Failure(beeline_last_error());
  part.kind = found.kind == BEELINE_MEMORY_DEVICE ? Memory::device : Memory::host;
  part.registered = block.registered, part.registered_offset = made.remainder;
  if (is_mine)
    part.address = static_cast<std::byte*>(pointer);
  else if (part.is_direct && found.address != nullptr)
    part.address = static_cast<std::byte*>(found.address) + made.remainder;
  if (!part.is_direct && alias != nullptr) part.data = static_cast<std::byte*>(alias) + made.remainder;
  execution_->parts.push_back(named);
  execution_->blocks.push_back(std::move(block));
  note(made.of);
}

// --- Plans --------------------------------------------------------------------------------------------------------

void Objects::execute(const Plan& plan, const std::vector<RequestBook::Numbered>& requests) {
  execution_.emplace();
  if (!plan.removals.empty()) remove(plan.removals);
  for (const std::vector<Plan::Part>& batch : plan.made) make(batch);
  for (const Plan::Part& part : plan.existing)
    add_existing(part, part.of.rank == rank() ? requests[part.of.index].request.existing : nullptr);
  for (const Plan::Announcement& announcement : plan.announcements) {
    if (contains(announcement.ranks, rank())) execution_->announced.emplace_back(announcement.of.rank, announcement.id);
    note(announcement.of);
  }
  for (const std::vector<Plan::Team>& together : plan.teams) commit(together, requests);
  for (const Plan::End& end : plan.ends) end_team(end);
  show_parts_of_others();
}

// Before the ranks agree that all have executed the plan: the owner's call returns after that, and the owner may then
// tell this rank of the segment, faster than this rank's service thread learns of the agreement.
void Objects::show_parts_of_others() {
  SegmentTable& table = *process_.segments_;
  for (const NamedPart& named : execution_->parts)
    if (named.rank != rank()) table.set(named.id, named.rank, named.part);
  for (const auto& [owner, id] : execution_->announced) {
    Part part = table.part(id, owner);
    if (part.kind == Memory::none) continue;
    part.is_for_me = true;
    table.set(id, owner, part);
  }
}

std::vector<Outcome> Objects::apply() {
  Execution done = std::move(*execution_);
  execution_.reset();
  SegmentTable& table = *process_.segments_;
  for (const auto& part : done.removed)
    for (Block& block : blocks_) std::erase(block.parts, part);
  std::erase_if(blocks_, [](const Block& block) { return block.parts.empty(); });
  for (Block& block : done.blocks) blocks_.push_back(std::move(block));
  for (const NamedPart& named : done.parts)
    if (named.rank == rank()) table.set(named.id, named.rank, named.part);
  for (auto& team : done.teams) team_members_.push_back(std::move(team));
  for (const std::shared_ptr<Group>& group : done.committed) {
    groups_.emplace_back(group->serial, group);
    group->state = Group::State::committed;
  }
  return std::move(done.outcomes);
}

void Objects::discard() {
  for (const NamedPart& named : execution_->parts)
    if (named.rank != rank()) process_.segments_->set(named.id, named.rank, {});
  execution_.reset();
}

std::vector<std::uint64_t> Objects::serials() const {
  std::vector<std::uint64_t> all;
  for (const Block& block : blocks_)
    if (!block.is_ended) all.push_back(block.serial);
  for (const auto& [serial, members] : team_members_) all.push_back(serial);
  std::sort(all.begin(), all.end());
  return all;
}

void Objects::keep(const std::vector<std::uint64_t>& common) {
  const auto is_lost = [&](std::uint64_t serial) { return !std::binary_search(common.begin(), common.end(), serial); };
  std::erase_if(blocks_, [&](const Block& block) { return is_lost(block.serial); });
  std::erase_if(team_members_, [&](const auto& team) { return is_lost(team.first); });
  std::erase_if(groups_, [&](const auto& group) { return is_lost(group.first); });
}

void Objects::end_all() {
  // Memory of groups ends with the world: freeing it would wait for members that have left a barrier by a time-out.
  for (const auto& [serial, group] : groups_) static_cast<void>(beeline_team_destroy(group->team));
  groups_.clear();
  for (Block& block : blocks_) destroy(block);
  blocks_.clear();
}

}  // namespace beeline::gaspi
