// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The calls of the library from the C++ part of the torch back end, as a table of C functions. torch_native.cpp is
/// compiled for the installed torch, and gets the table from beeline._beeline.
///
/// The functions neither need Python's lock nor throw. Functions that return an int return 0 on success; after an
/// error, `raise` on the same thread turns the error into a Python exception.

#include <cstddef>
#include <cstdint>

namespace beeline::torch_table {

/// Version of everything below: to be increased with each change.
constexpr std::uint32_t current_version = 1;
/// The names of the table's capsule and of the groups' capsules, which hold a `Calls`.
constexpr const char* table_capsule = "beeline.torch_table";
constexpr const char* calls_capsule = "beeline.torch_calls";

/// The calls of one process group.
struct Calls;
/// The end of an asynchronous call.
struct End;

/// In the order of the library's table (`collective_shapes`).
enum class Collective : std::uint32_t {
  allreduce,
  broadcast,
  scatter,
  gather,
  allgather,
  reduce,
  reduce_scatter,
  alltoall
};

/// A tensor of a call. If the call ends after it returned, the library keeps the owner until the end.
struct Operand {
  const void* tensor = nullptr;  ///< DLPack's DLTensor; nullptr: this rank has none
  void* owner = nullptr;
  void* (*keep)(void* owner) = nullptr;  ///< returns the argument for `let_go`
  void (*let_go)(void* kept) = nullptr;
};

/// The options of a call.
struct Manner {
  bool is_async = false;
  void* current_stream = nullptr;  ///< torch's current CUDA stream; nullptr on a host rank
};

struct Table {
  std::uint32_t version;

  /// Makes a collective call. `*end` becomes the end of an asynchronous call, and nullptr for a call in the order of
  /// the current stream.
  ///   source     may be the same as `output`: in place
  ///   reduction  the library's number
  ///   root       -1 if there is none
  int (*call)(Calls* calls, Collective collective, const Operand* output, const Operand* source,
              std::uint32_t reduction, int root, const Manner* manner, End** end);
  /// An all-to-all with consecutive pieces; `send_bytes` and `receive_bytes` hold their lengths by rank.
  int (*alltoallv)(Calls* calls, const Operand* output, const Operand* source, const std::size_t* send_bytes,
                   const std::size_t* receive_bytes, const Manner* manner, End** end);
  int (*barrier)(Calls* calls, const Manner* manner, End** end);
  /// Gets the end of the current stream's earlier work.
  int (*record)(Calls* calls, void* current_stream, End** end);
  /// Blocks until the group's earlier calls have ended, or (second function) until the current stream's earlier work
  /// has.
  int (*synchronize)(Calls* calls);
  int (*synchronize_current)(Calls* calls, void* current_stream);

  /// Makes the current stream wait for the end; on a host rank the caller waits, at most `timeout_s` seconds (negative:
  /// no limit).
  int (*wait)(const End* end, double timeout_s, void* current_stream);
  bool (*is_reached)(const End* end);
  void (*let_go)(End* end);

  /// Called under Python's lock: sets Python's error to that of this thread's latest failed call.
  void (*raise)();
};

}  // namespace beeline::torch_table
