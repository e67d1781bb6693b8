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

namespace beeline::launch {

/// Path of the executable that `name` means, searched in PATH like a shell does. Throws invalid_argument with the
/// reason.
[[nodiscard]] std::string find_program(const std::string& name);

struct Pipe {
  FileDescriptor reader, writer;
};

/// Opens /dev/null in place of what is closed of 0, 1 and 2, so that no other descriptor gets these numbers.
void open_standard_descriptors();

/// Throws no_resource, which names what the pipe is for.
[[nodiscard]] Pipe make_pipe(const std::string& purpose);

/// fork(); throws no_resource, which names what the process is for.
[[nodiscard]] pid_t fork_process(const std::string& purpose);

/// A running process that leads a process group of its own, with the launcher's ends of its output.
struct Process {
  pid_t pid = -1;
  FileDescriptor standard_output, standard_error;
  FileDescriptor standard_input;  ///< the launcher's end, non-blocking, if the process is given any
};

/// Variables to set (with a value) in addition to the launcher's own environment, or to remove (empty).
using Environment = std::map<std::string, std::string>;

/// Starts `path`. It dies with the launcher.
///   input  what its standard input begins with, a few bytes; the rest comes from the launcher. None: it is empty
/// Throws invalid_argument when the system cannot execute it, no_resource when there is no process or pipe for it.
[[nodiscard]] Process start(const std::string& path, const std::vector<std::string>& command,
                            const Environment& changes, const std::optional<std::string>& input);

}  // namespace beeline::launch
