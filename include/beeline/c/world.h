// SPDX-License-Identifier: Apache-2.0
/// @file
/// The world, its ranks and devices, teams, barriers, failures. Collective: all ranks of the world, or all members of
/// the team, call these functions in the same order.
#ifndef BEELINE_C_WORLD_H
#define BEELINE_C_WORLD_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// The device on which a rank runs.
typedef struct beeline_device {
  uint32_t struct_bytes;    ///< sizeof(beeline_device), set by the caller
  int32_t kind;             ///< BEELINE_HOST, BEELINE_GPU
  int32_t index;            ///< CUDA's number in the rank's process; -1: host
  int32_t multiprocessors;  ///< number of a GPU's multiprocessors
  uint64_t memory_bytes;
  int32_t host_atomics;  ///< whether a GPU's atomics on host memory are atomic towards CPUs
  int32_t node;          ///< number of the rank's node, from 0 on in the order of ranks
  char uuid[64];         ///< GPU-...; empty: host
  char name[128];
} beeline_device;

/// The state of a rank, as known to the calling rank.
typedef struct beeline_health {
  uint32_t struct_bytes;  ///< sizeof(beeline_health), set by the caller
  int32_t state;          ///< BEELINE_HEALTHY, ...
  int32_t noticed_by;     ///< of a failed rank: the rank that noticed the failure; -1: the launcher
  char reason[244];       ///< of a failed rank: the reason, one line, truncated to this size
} beeline_health;

/// Makes settings for worlds of this process, with the values of the environment (BEELINE_*, docs/settings.md).
///   config  ended by `beeline_config_destroy`; it may end before the worlds
/// BEELINE_INVALID_ARGUMENT for a variable that is not valid. Threads: any.
beeline_status beeline_config_create(beeline_config** config) BEELINE_NOEXCEPT;
/// Changes a setting in place of its variable.
///   name   name of the variable, with or without BEELINE_: "DEADLINE_S". Set SIZE before RANK
///   value  the value as text, as in the variable: "5"
/// BEELINE_INVALID_ARGUMENT for an unknown name, and for a value that is not valid, with the valid values in the text.
/// Threads: one for each config.
beeline_status beeline_config_set(beeline_config* config, const char* name, const char* value) BEELINE_NOEXCEPT;
/// Threads: one for each config.
beeline_status beeline_config_destroy(beeline_config* config) BEELINE_NOEXCEPT;

/// The function behind `beeline_world_create`, for callers that have no C header: they pass the version for which they
/// were written.
///   version  BEELINE_VERSION of the caller
beeline_status beeline_world_create_as(int32_t version, const beeline_config* config,
                                       beeline_world** world) BEELINE_NOEXCEPT;
/// The function behind `beeline_run`.
beeline_status beeline_run_as(int32_t version, const beeline_config* config,
                              int32_t (*body)(beeline_world* world, void* argument), void* argument,
                              int32_t* exit_status) BEELINE_NOEXCEPT;

/// Collective. Joins the world that the environment describes (a launcher's: `beeline run`, torchrun, mpirun, srun), or
/// makes a world of one rank if it describes none. Blocks up to the deadline.
///   config  NULL: as the environment says
///   world   ended by `beeline_world_close`
/// BEELINE_UNAVAILABLE if the header and the library differ in version, with both in the text; BEELINE_INVALID_ARGUMENT
/// for a setting that is not valid; BEELINE_DEADLINE, BEELINE_PEER_DIED if ranks are missing. Threads: any, each for a
/// world of its own.
static inline beeline_status beeline_world_create(const beeline_config* config, beeline_world** world) {
  return beeline_world_create_as(BEELINE_VERSION, config, world);
}

/// Runs `body` once for each rank of this process: once, or, if ranks are threads (`beeline run --threads`, or setting
/// THREADS), SIZE times, on threads. `body` returns 0, or another number to abort the world with it. The world ends
/// when `body` returns: do not close it.
///   argument     passed to `body`
///   exit_status  for `main`: 0, or 1 after the errors of the ranks were printed
/// Blocks until all ranks of this process have ended. BEELINE_OK also if a rank failed: see `exit_status`. Threads: one
/// call at a time in a process.
static inline beeline_status beeline_run(const beeline_config* config,
                                         int32_t (*body)(beeline_world* world, void* argument), void* argument,
                                         int32_t* exit_status) {
  return beeline_run_as(BEELINE_VERSION, config, body, argument, exit_status);
}

/// Collective. Waits for the default stream and until every rank leaves, then ends the world and frees its handle, with
/// any status: BEELINE_OK, or the failure of the world or of its streams. Blocks up to the deadline of streams.
/// Afterwards handles of the world must not be used, except to destroy them. Threads: one.
beeline_status beeline_world_close(beeline_world* world) BEELINE_NOEXCEPT;

/// The team of all ranks, which the functions for teams take. It ends with the world. NULL for a null handle. Threads:
/// any.
beeline_team* beeline_world_team(beeline_world* world) BEELINE_NOEXCEPT;
/// The device on which `rank` of the world runs, and its node. Does not block. Threads: any.
beeline_status beeline_world_device(const beeline_world* world, int32_t rank, beeline_device* device) BEELINE_NOEXCEPT;
/// The state of `rank` of the world. Does not block. Threads: any.
beeline_status beeline_world_health(const beeline_world* world, int32_t rank, beeline_health* health) BEELINE_NOEXCEPT;
/// BEELINE_OK, or the failure of the world, of this rank's teams or of their waits; the text names operation, rank,
/// peer, expected and observed value. Does not block without a failure; with a failure it blocks for at most 50 ms.
/// Threads: any.
beeline_status beeline_world_check(beeline_world* world) BEELINE_NOEXCEPT;
/// Aborts the world: this rank counts as failed, and every wait of every rank ends.
///   reason  text whose first line is in the error texts of the other ranks
/// Threads: any.
beeline_status beeline_world_abort(beeline_world* world, const char* reason) BEELINE_NOEXCEPT;
/// Collective over the ranks that have neither failed nor left. They agree on the remaining ranks, clear the abort, and
/// go on. Blocks up to the deadline.
///   team  the team of the remaining ranks; valid until the next call; ended by `beeline_team_destroy`
/// Threads: one.
beeline_status beeline_world_survivors(beeline_world* world, beeline_team** team) BEELINE_NOEXCEPT;

/// Collective over the world. Makes a team of some of its ranks; one call may make several teams if no rank is in two.
///   ranks, count  world ranks, ascending, this one among them; count 0: this rank joins none, and `team` gets NULL
///   team          ended by `beeline_team_destroy`
/// Blocks. BEELINE_INVALID_ARGUMENT if members disagree, BEELINE_NO_RESOURCE beyond 64 teams. Threads: one.
beeline_status beeline_team_create(beeline_world* world, const int32_t* ranks, int32_t count,
                                   beeline_team** team) BEELINE_NOEXCEPT;
/// Ends a team, and frees its handle. Memory and handles that were made with it must have been freed. Not for the
/// world's team. Threads: one.
beeline_status beeline_team_destroy(beeline_team* team) BEELINE_NOEXCEPT;
/// This rank in the team, from 0 on; -1 for a null handle. Threads: any.
int32_t beeline_team_rank(const beeline_team* team) BEELINE_NOEXCEPT;
/// Members of the team; -1 for a null handle. Threads: any.
int32_t beeline_team_size(const beeline_team* team) BEELINE_NOEXCEPT;
/// World rank of the member `rank`; -1 for a null handle or a rank outside the team. Threads: any.
int32_t beeline_team_world_rank(const beeline_team* team, int32_t rank) BEELINE_NOEXCEPT;
/// How this rank reaches the member `rank`: BEELINE_ROUTE_DIRECT, ...; -1 for a null handle or a rank outside the team.
/// Threads: any.
int32_t beeline_team_route(const beeline_team* team, int32_t rank) BEELINE_NOEXCEPT;
/// 1 if the team is aborted, 0 if it is not; -1 for a null handle. Threads: any.
int32_t beeline_team_failed(const beeline_team* team) BEELINE_NOEXCEPT;
/// Collective. Barrier of the members' CPU threads: a member's earlier writes are visible to all members afterwards.
///   timeout_ns  after BEELINE_TIMEOUT the same call continues; other collective functions are refused until then
/// Blocks. Threads: one.
beeline_status beeline_barrier(beeline_team* team, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Collective. Gathers bytes of the members' CPU threads, such as parameters on which members have to agree. Sizes may
/// differ.
///   mine, bytes  this member's bytes: at most 120, in the world's team at most 256 MiB
///   all          [members][most_bytes]; the bytes of member m begin at m * most_bytes
///   sizes        [members] bytes of each member; 0 for ranks of the world that have failed or left
/// Blocks. BEELINE_INVALID_ARGUMENT for too many bytes, also if another member passes more than `most_bytes`; then the
/// members have exchanged their bytes, and `all` and `sizes` are unchanged. Threads: one.
beeline_status beeline_allgather_bytes(beeline_team* team, const void* mine, size_t bytes, void* all, size_t most_bytes,
                                       size_t* sizes) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
