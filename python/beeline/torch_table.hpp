// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The calls of the library that the C++ part of the torch back end makes, as a table of C functions. torch_native.cpp
/// is compiled for the torch that is installed, and gets the table from beeline._beeline.
///
/// The functions neither need Python's lock nor throw. Those that return an int return 0, or another number after an
/// error, which `raise` of the same thread turns into Python's.

#include <cstddef>
#include <cstdint>

namespace beeline::torch_table {

/// Of all that follows: to be raised with each change.
constexpr std::uint32_t current_version = 1;
/// The name of the table's capsule, and of those of groups, which hold a `Calls`.
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

/// A tensor of a call. If the call ends later than it returns, the library keeps the owner until then.
struct Operand {
  const void* tensor = nullptr;  ///< DLPack's DLTensor; nullptr: this rank has none
  void* owner = nullptr;
  void* (*keep)(void* owner) = nullptr;  ///< returns what `let_go` takes
  void (*let_go)(void* kept) = nullptr;
};

/// How a call is made.
struct Manner {
  bool is_async = false;
  void* current_stream = nullptr;  ///< torch's, of CUDA; nullptr on a host rank
};

struct Table {
  std::uint32_t version;

  /// `*end`: of an asynchronous call; nullptr for one in the order of the current stream.
  ///   source     may be the output's: in place
  ///   reduction  the library's number
  ///   root       -1 without one
  int (*call)(Calls* calls, Collective collective, const Operand* output, const Operand* source,
              std::uint32_t reduction, int root, const Manner* manner, End** end);
  /// Pieces of so many bytes for each rank, one after the other.
  int (*alltoallv)(Calls* calls, const Operand* output, const Operand* source, const std::size_t* send_bytes,
                   const std::size_t* receive_bytes, const Manner* manner, End** end);
  int (*barrier)(Calls* calls, const Manner* manner, End** end);
  /// The end of what the current stream has been given so far.
  int (*record)(Calls* calls, void* current_stream, End** end);
  /// Blocks until the calls so far have ended, or until the current stream's work so far has.
  int (*synchronize)(Calls* calls);
  int (*synchronize_current)(Calls* calls, void* current_stream);

  /// Holds the current stream until the end; on a host rank the caller, so many seconds at most (below 0: no limit).
  int (*wait)(const End* end, double timeout_s, void* current_stream);
  bool (*is_reached)(const End* end);
  void (*let_go)(End* end);

  /// Under Python's lock: sets Python's error, that of this thread's latest call which has failed.
  void (*raise)();
};

}  // namespace beeline::torch_table
