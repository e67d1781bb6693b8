// SPDX-License-Identifier: Apache-2.0
// A shared object of its own, so that programs load MPI only where ranks were started by it.
#include "peers/mpi/module.hpp"

#include <mpi.h>

#include <climits>

namespace {

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
  if (const char* failed = text_of(MPI_Comm_rank(MPI_COMM_WORLD, rank))) return failed;
  return text_of(MPI_Comm_size(MPI_COMM_WORLD, size));
}

const char* version() {
  int length = 0;
  if (MPI_Get_library_version(library, &length) != MPI_SUCCESS) return "unknown";
  for (char* at = library; *at != '\0'; ++at)
    if (*at == ',' || *at == '\n') *at = '\0';
  return library;
}

const char* allreduce(const void* source, void* destination, std::size_t count) {
  if (count > INT_MAX) return "more elements than MPI's counts hold";
  return text_of(MPI_Allreduce(source, destination, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

void stop() { MPI_Finalize(); }

constexpr BeelineMpiModule functions = {start, version, allreduce, stop};

}  // namespace

const BeelineMpiModule* beeline_mpi_module() { return &functions; }
