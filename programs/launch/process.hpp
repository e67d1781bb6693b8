// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starting one process of the job.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::launcher {

/// Path of the executable named `name`, searched for in PATH as a shell does. Throws invalid_argument with the reason.
[[nodiscard]] std::string find_program(const std::string& name);

struct Pipe {
  FileDescriptor reader, writer;
};

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed, so that no other file gets its number.
void open_standard_descriptors();

/// Creates a pipe. Throws no_resource with a message that names `purpose`.
[[nodiscard]] Pipe make_pipe(const std::string& purpose);

/// Calls fork(). Throws no_resource with a message that names `purpose`.
[[nodiscard]] pid_t fork_process(const std::string& purpose);

/// A running process that leads a process group of its own, with the launcher's ends of its output.
struct Process {
  pid_t pid = -1;
  FileDescriptor standard_output, standard_error;
  FileDescriptor standard_input;  ///< the launcher's end, non-blocking; closed if the process gets no input
};

/// Variables to set (with a value) in addition to the launcher's own environment, or to remove (empty).
using Environment = std::map<std::string, std::string>;

/// Starts `path` as a process that ends when the launcher ends.
///   input  beginning of its standard input, a few bytes; the launcher sends the rest. None: standard input is empty
/// Throws invalid_argument when the system cannot execute `path`, no_resource when it has no process or pipe left.
[[nodiscard]] Process start(const std::string& path, const std::vector<std::string>& command,
                            const Environment& changes, const std::optional<std::string>& input);

}  // namespace beeline::launcher
