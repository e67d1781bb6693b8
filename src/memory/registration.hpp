// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registered memory: what ranks publish about it, and how each rank reaches the parts of the other ranks.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "beeline/memory/address_map.hpp"
#include "beeline/memory/registered_memory.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "memory/gpu_pointers.hpp"
#include "memory/memory_aliases.hpp"
#include "memory/node_memory.hpp"
#include "memory/process_memory.hpp"

namespace beeline {

/// Owned by one rank's world. Collective functions are called by one thread; `reach` by any.
class Registration {
 public:
  Registration(Bootstrap& bootstrap, AddressRange& range, MemoryAliases& aliases, std::vector<MemoryMember> members,
               std::int64_t deadline_ns);
  ~Registration();

  /// Collective. See World::register_memory.
  [[nodiscard]] const RegisteredMemory& add(void* pointer, std::size_t bytes);
  /// Collective. See World::deregister_memory.
  void remove(std::uint32_t id);

  /// How a registered address is reached: by an address in this process, by an alias, which only this rank's engine
  /// reaches, or through the owner's process.
  struct Address {
    std::byte* address = nullptr;
    std::shared_ptr<const ProcessMemory> process;
    std::uintptr_t there = 0;  ///< address in that process
  };
  /// Throws invalid_argument for memory that is not registered, unreachable with the reason.
  [[nodiscard]] Address reach(const RegisteredPlace& place, std::size_t bytes) const;
  /// The parts that have an address in this process, sorted by address.
  [[nodiscard]] std::vector<AddressInterval> intervals() const;

 private:
  /// What a rank publishes about its part before any rank attaches it.
  struct Offer {
    std::uint8_t calls = 0;  ///< 0: the rank has failed or left
    bool device = false;
    bool is_for_engines = true;  ///< whether the rank's engine reads and writes the part for ranks of other nodes
    std::uint32_t next_id = 0;
    std::uintptr_t pointer = 0;
    std::uint64_t bytes = 0;
    gpu_memory::IpcHandle handle{};
    ProcessProof proof;
  };
  /// How this rank reaches one part.
  struct Access {
    std::byte* address = nullptr;    ///< usable at least for copies
    std::byte* alias = nullptr;      ///< address in the slot of an owner on another node
    std::byte* ipc_start = nullptr;  ///< start of the allocation that contains the part, mapped for `ipc_gpu`
    int ipc_gpu = -1;
    std::shared_ptr<const ProcessMemory> process;
    std::uintptr_t there = 0;  ///< address in that process
  };
  struct Entry {
    RegisteredMemory memory;
    std::vector<Access> access;  ///< [ranks]
    std::uint64_t alias = 0;     ///< offset in slots; 0: none
  };
  [[nodiscard]] Offer offer(void* pointer, std::size_t bytes) const;
  void describe_part(Offer& mine, void* pointer, std::size_t bytes) const;
  void check_conflicts(const std::vector<Offer>& all) const;
  void attach(Entry& entry, const std::vector<Offer>& all);
  /// Makes this rank's part reachable from other nodes.
  void open_alias(Entry& entry, const std::vector<Offer>& all);
  /// Undoes `open_alias`: other ranks give back their keys.
  void close_alias(Entry& entry);
  void attach_device(RegisteredPart& part, Access& access, const Offer& theirs, int owner) const;
  void attach_host(RegisteredPart& part, Access& access, const Offer& theirs, int owner);
  void check_intervals(const Entry& entry) const;
  void detach(Entry& entry);
  [[nodiscard]] static bool is_pinned(const std::byte* start, std::size_t bytes);
  [[nodiscard]] bool same_process(int rank) const;
  [[nodiscard]] bool is_local(int rank) const { return members_[static_cast<std::size_t>(rank)].is_local; }
  [[nodiscard]] const MemoryMember& own() const;

  Bootstrap& bootstrap_;  ///< ends before this object
  const int rank_;
  AddressRange& range_;
  MemoryAliases& aliases_;
  const std::vector<MemoryMember> members_;
  const std::int64_t deadline_ns_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Entry>> entries_;
  std::map<int, std::shared_ptr<const ProcessMemory>> processes_;  ///< by rank
  std::uint32_t next_id_ = 0;
};

}  // namespace beeline
