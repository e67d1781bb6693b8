// SPDX-License-Identifier: Apache-2.0
// A separate shared object, so that programs load MPI only if MPI started the ranks.
#include "peers/mpi/module.hpp"

#include <mpi.h>

#include <climits>
#include <cstring>
#include <vector>

namespace {

using beeline::Operation;

constexpr int root = 0;
int ranks = 0, own_rank = 0;
char message[MPI_MAX_ERROR_STRING];
char library[MPI_MAX_LIBRARY_VERSION_STRING];

const char* text_of(int result) {
  if (result == MPI_SUCCESS) return nullptr;
  int length = 0;
  if (MPI_Error_string(result, message, &length) != MPI_SUCCESS) return "MPI failed";
  return message;
}

const char* start(int* rank, int* size) {
  if (const char* failed = text_of(MPI_Init(nullptr, nullptr))) return failed;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const char* failed = text_of(MPI_Comm_rank(MPI_COMM_WORLD, &own_rank))) return failed;
  if (const char* failed = text_of(MPI_Comm_size(MPI_COMM_WORLD, &ranks))) return failed;
  *rank = own_rank, *size = ranks;
  return nullptr;
}

const char* version() {
  int length = 0;
  if (MPI_Get_library_version(library, &length) != MPI_SUCCESS) return "unknown";
  for (char* at = library; *at != '\0'; ++at)
    if (*at == ',' || *at == '\n') *at = '\0';
  return library;
}

const char* call(Operation operation, const void* source, void* destination, std::size_t count) {
  if (count > static_cast<std::size_t>(INT_MAX / ranks))
    return "more elements than MPI's counts hold";  // over all pieces
  const int each = static_cast<int>(count);
  const MPI_Datatype type = MPI_FLOAT;
  const MPI_Comm all = MPI_COMM_WORLD;
  std::vector<int> counts(static_cast<std::size_t>(ranks), each), offsets;
  switch (operation) {
    case Operation::broadcast:  // MPI has one buffer: the root's copy of its own vector is part of the call
      if (own_rank == root) std::memcpy(destination, source, count * sizeof(float));
      return text_of(MPI_Bcast(destination, each, type, root, all));
    case Operation::scatter:
      return text_of(MPI_Scatter(source, each, type, destination, each, type, root, all));
    case Operation::gather:
      return text_of(MPI_Gather(source, each, type, destination, each, type, root, all));
    case Operation::allgather:
      return text_of(MPI_Allgather(source, each, type, destination, each, type, all));
    case Operation::reduce:
      return text_of(MPI_Reduce(source, destination, each, type, MPI_SUM, root, all));
    case Operation::reduce_scatter:
      return text_of(MPI_Reduce_scatter_block(source, destination, each, type, MPI_SUM, all));
    case Operation::alltoall:
      return text_of(MPI_Alltoall(source, each, type, destination, each, type, all));
    case Operation::alltoallv:
      for (int rank = 0; rank < ranks; ++rank) offsets.push_back(rank * each);
      return text_of(MPI_Alltoallv(source, counts.data(), offsets.data(), type, destination, counts.data(),
                                   offsets.data(), type, all));
    case Operation::allreduce:
      return text_of(MPI_Allreduce(source, destination, each, type, MPI_SUM, all));
    default:
      return "MPI is not asked for this operation";
  }
}

const char* barrier() { return text_of(MPI_Barrier(MPI_COMM_WORLD)); }

const char* send(const void* source, std::size_t bytes, int peer) {
  if (bytes > INT_MAX) return "more bytes than MPI's counts hold";
  return text_of(MPI_Send(source, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD));
}

const char* receive(void* destination, std::size_t bytes, int peer) {
  if (bytes > INT_MAX) return "more bytes than MPI's counts hold";
  return text_of(MPI_Recv(destination, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void stop() { MPI_Finalize(); }

constexpr BeelineMpiModule functions = {start, version, call, barrier, send, receive, stop};

}  // namespace

const BeelineMpiModule* beeline_mpi_module() { return &functions; }
