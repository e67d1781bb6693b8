// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the service threads of all ranks have made together: memory of segments, teams of groups. A plan is carried out
/// in two steps: `execute` makes collective calls and shows segments of other ranks, `apply` does the rest of what
/// application threads see. Between them all ranks agree that every rank has executed the plan, so that a failure
/// leaves no rank ahead of another.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/beeline.h"
#include "gaspi/round.hpp"

namespace beeline::gaspi {

class Process;
struct Group;

/// Ranks were lost: the world is aborted, and goes on by `beeline_world_survivors`.
struct Lost {
  std::string text;
};
/// Throws Lost for a status that says so. Returns whether `status` is BEELINE_OK; else all ranks of the call have it.
[[nodiscard]] bool is_done(beeline_status status);

/// The same; throws Failure for all other statuses than BEELINE_OK.
void require_done(beeline_status status);

/// The result of a request of this rank.
struct Outcome {
  std::size_t index;  ///< in the contribution
  std::int32_t value = 0;
  std::string text;  ///< of a failure; empty: success
};

/// Used by the service thread alone.
class Objects {
 public:
  explicit Objects(Process& process) : process_(process) {}
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects();

  /// Collective. Makes the team of the group of all ranks.
  void make_first_team(const std::shared_ptr<Group>& group, const std::vector<int>& ranks);
  /// Collective. Carries out a plan. Throws Lost; then the ranks have done different parts of it.
  ///   requests  this rank's, as it has contributed them
  void execute(const Plan& plan, const std::vector<RequestBook::Numbered>& requests);
  /// Makes the effects of the executed plan visible, and returns the outcomes of this rank's requests.
  std::vector<Outcome> apply();
  /// Forgets an executed plan that other ranks have not executed. Its requests are still pending.
  void discard();
  [[nodiscard]] bool has_executed() const { return execution_.has_value(); }

  /// The serial numbers of all objects, for `keep`.
  [[nodiscard]] std::vector<std::uint64_t> serials() const;
  /// After a failure: forgets the objects that some ranks no longer have. `common`: ascending.
  void keep(const std::vector<std::uint64_t>& common);
  [[nodiscard]] const TeamMembers& teams() const { return team_members_; }
  /// Numbers of objects that the ranks will make next; after a failure all take the largest.
  [[nodiscard]] std::uint64_t next_serial() const { return next_serial_; }
  void set_next_serial(std::uint64_t next) { next_serial_ = next; }

  /// Collective over the members of each team and over the world, before the world is closed.
  void end_all();

 private:
  using Clock = std::chrono::steady_clock;
  /// Memory made by one collective call, with the parts of segments that lie in it.
  struct Block {
    std::uint64_t serial;
    beeline_segment *data = nullptr, *flags = nullptr;
    beeline_registered* registered = nullptr;
    std::vector<std::pair<int, std::uint32_t>> parts;  ///< rank, id
    bool is_ended = false;                             ///< its memory is being freed, or was
  };
  struct NamedPart {
    std::uint32_t id;
    int rank;
    Part part;
  };
  struct Execution {
    std::vector<Block> blocks;
    std::vector<NamedPart> parts;
    std::vector<std::pair<int, std::uint32_t>> removed, announced;  ///< rank, id; announced: to this rank
    std::vector<std::pair<std::uint64_t, std::vector<int>>> teams;
    std::vector<std::shared_ptr<Group>> committed;  ///< this rank's
    std::vector<Outcome> outcomes;
  };

  [[nodiscard]] int rank() const;
  void make_team(Group& group, const std::vector<int>& ranks);
  void note(const ItemPlace& place, std::int32_t value = 0, const std::string& text = {});
  void remove(const std::vector<Plan::Removal>& removals);
  /// Waits until no call of this rank uses memory of a segment that it no longer finds. Throws Failure at `end`.
  void await_readers(std::uint32_t segment, Clock::time_point end) const;
  void destroy(Block& block);
  void make(const std::vector<Plan::Part>& batch);
  void make_together(const std::vector<Plan::Part>& batch);
  void add_existing(const Plan::Part& part, void* pointer);
  [[nodiscard]] NamedPart describe(const Plan::Part& made, const Block& block) const;
  void commit(const std::vector<Plan::Team>& together, const std::vector<RequestBook::Numbered>& requests);
  void end_team(const Plan::End& end);
  void show_parts_of_others();
  [[nodiscard]] std::shared_ptr<Group> group_of(std::uint64_t serial) const;

  Process& process_;
  std::uint64_t next_serial_ = 1;
  std::vector<Block> blocks_;
  TeamMembers team_members_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Group>>> groups_;  ///< this rank's teams
  std::optional<Execution> execution_;
};

}  // namespace beeline::gaspi
