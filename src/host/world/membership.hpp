// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ranks of a world: their processes, devices and nodes.

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/host/team.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/device.hpp"
#include "host/node_map.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// A rank's data that all ranks know.
struct Member {
  std::uint64_t process = 0;
  Device device;
  int node = 0;           ///< number of its node, from 0 on in the order of ranks
  int host = 0;           ///< number of its host, in the same order; --split-nodes makes several nodes of a host
  int reaching_gpu = -1;  ///< of a host rank beside GPU ranks: the GPU that copies for it; -1: its process sees none
};

/// The ranks of a world, and what this rank shares with the others: node, process, device. Constant.
class Membership {
 public:
  ///   ranks_on_machine  ranks that share this rank's cores, this rank included
  Membership(int rank, std::vector<Member> members, int ranks_on_machine = 1);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] const std::vector<Member>& all() const { return members_; }
  [[nodiscard]] const Member& of(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Member& own() const { return of(rank_); }
  [[nodiscard]] const Device& device() const { return own().device; }
  [[nodiscard]] std::vector<Device> devices() const;
  [[nodiscard]] std::vector<int> everyone() const;

  /// Whether a rank is on this rank's node: then its memory is mapped here.
  [[nodiscard]] bool is_local(int other) const { return of(other).node == own().node; }
  /// Ranks on this rank's node.
  [[nodiscard]] const std::vector<int>& local_ranks() const { return local_ranks_; }
  /// Whether the world has ranks on other nodes.
  [[nodiscard]] bool spans_nodes() const { return local_ranks_.size() < members_.size(); }
  /// Whether the team has members on other nodes.
  [[nodiscard]] bool spans_nodes(const Team& team) const;
  /// The ranks in `ranks` that are on other nodes.
  [[nodiscard]] std::vector<int> remote_among(const std::vector<int>& ranks) const;
  /// The nodes of a context's members.
  [[nodiscard]] detail::NodeMap node_map(const Context& among) const;
  /// Members that this rank notifies: in a team with many members on other nodes, one on each node; otherwise all.
  [[nodiscard]] std::vector<int> members_to_notify(const std::vector<int>& ranks) const;

  [[nodiscard]] bool shares_process(int other) const { return of(other).process == own().process; }
  [[nodiscard]] bool has_gpus() const { return has_gpus_; }                      ///< whether any rank has a GPU
  [[nodiscard]] bool has_both_kinds() const { return has_gpus_ && has_hosts_; }  ///< GPU ranks and host ranks
  /// Whether some of `ranks` have GPUs and others do not.
  [[nodiscard]] bool mixes_kinds(const std::vector<int>& ranks) const;
  /// The ranks that share this rank's GPU, this one included; 1 on a host rank.
  [[nodiscard]] const DeviceSharers& sharers() const { return sharers_; }
  [[nodiscard]] int ranks_on_machine() const { return ranks_on_machine_; }

 private:
  const int rank_;
  const std::vector<Member> members_;
  const int ranks_on_machine_;
  std::vector<int> local_ranks_;
  bool has_gpus_ = false, has_hosts_ = false;
  DeviceSharers sharers_{};
};

/// Collective. Chooses each rank's device, and makes this rank's device the current one.
[[nodiscard]] Membership discover_members(Bootstrap& bootstrap, const Config& config);

/// Collective. The texts of all ranks, by rank.
[[nodiscard]] std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& mine,
                                                      std::int64_t deadline_ns);

}  // namespace beeline
