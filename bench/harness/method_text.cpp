// SPDX-License-Identifier: Apache-2.0
#include "harness/method_text.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "beeline/core/error.hpp"
#include "beeline/core/registry.hpp"

namespace beeline::bench {

namespace {

/// A part of an identifier.
struct Part {
  std::string_view name, summary, needs = {};
};

constexpr Part first_parts[] = {
    {"stream", "calls on a stream"},
    {"graph", "calls in a CUDA graph", "GPUs"},
    {"device", "a loop inside one kernel"},
    {"device_launched", "kernels that a kernel launches", "GPUs"},
    {"blocking", "calls that the CPU waits for"},
    {"bare", "the hardware without a library"},
    {"nccl", "NCCL", "GPUs, libnccl.so.2 or the file that BEELINE_NCCL names"},
    {"nvshmem", "NVSHMEM", "GPUs, a build with NVSHMEM"},
    {"mpi", "MPI", "mpirun, a build with MPI"},
    {"mpi4py", "MPI from Python", "mpirun, mpi4py"},
    {"python", "calls from Python that it waits for", "the extension module, numpy"},
    {"gloo", "gloo, of torch.distributed", "host ranks, torch"},
    {"torch", "symmetric memory of torch", "GPUs, torch"},
};

/// Those that are no algorithm of the registry.
constexpr Part second_parts[] = {
    {"automatic", "the algorithm that the library chooses"},
    {"one_shot", "every rank reads and reduces everything"},
    {"eager", "packets into a ring at the receiver"},
    {"rendezvous", "the receiver reads where the sender's message lies, once both are there"},
    {"staged", "through staging buffers"},
    {"messages", "send and receive of Messages"},
    {"collectives", "of Collectives"},
    {"world", "of World"},
    {"signals", "put with signal, and wait"},
    {"call", "a call that does nothing"},
    {"launch", "an empty grid that may wait, launched and waited for"},
    {"stream", "calls on a stream"},
    {"graph", "calls in a CUDA graph"},
    {"device", "a loop inside one kernel"},
    {"host", "calls that block the CPU"},
    {"copies", "all pairs' copies, where no rank waits for another"},
    {"empty_kernel", "a kernel that does nothing, in a CUDA graph", "GPUs"},
    {"put_signal", "put with signal"},
    {"signal", "a signal"},
    {"two_flags", "a flag to a thread of the host, and its answer"},
    {"barrier", "a barrier inside a kernel"},
    {"put", "put by blocks"},
    {"atomic", "atomics"},
};

const char* machine_for(const AlgorithmInfo& info) {
  if ((info.needs & needs::whole_lines) != 0) return "GPUs that store lines of 128 bytes whole";
  return (info.needs & needs::bulk_copies) != 0 ? "GPUs of compute capability 9.0, or host ranks" : "";
}

template <std::size_t count>
const Part& part_of(const Part (&parts)[count], std::string_view name, const std::string& method) {
  const Part* found = std::find_if(parts, parts + count, [&](const Part& one) { return one.name == name; });
  require(found != parts + count, Status::internal, "nobody says what the method " + method + " means");
  return *found;
}

const char* issued_by(Control control) {
  if (control == Control::device) return "in a kernel";
  if (control == Control::proxy) return "posted by a kernel to its rank's engine";
  return control == Control::stream ? "on a stream, where the receiver's waits" : "by the CPU, which awaits its end";
}

Part second_part(std::string_view name, const std::string& method) {
  for (const AlgorithmInfo& info : algorithm_infos)
    if (info.name == name) return {info.name, info.summary, machine_for(info)};
  return part_of(second_parts, name, method);
}

MethodText both(MethodText text, const Part& part) {
  text.summary += (text.summary.empty() ? "" : "; ") + std::string(part.summary);
  if (!part.needs.empty() && text.needs.find(part.needs) == std::string::npos)
    text.needs += (text.needs.empty() ? "" : "; ") + std::string(part.needs);
  return text;
}

}  // namespace

MethodText text_of(const std::string& method) {
  for (const MethodRow& row : method_rows)
    for (const Control control : {Control::device, Control::stream, Control::host, Control::proxy})
      if (row.operation == Operation::put && row.is_by(control) && row.method(control).id() == method) {
        const AlgorithmInfo& info = info_of(row.algorithm);
        return both({info.summary, needs_of(info)}, {"", issued_by(control)});
      }
  constexpr std::string_view symmetric = "_symmetric";
  const bool is_symmetric = method.ends_with(symmetric);
  std::string_view rest(method);
  if (is_symmetric) rest.remove_suffix(symmetric.size());
  std::size_t slash = rest.find('/');
  MethodText text = both({}, part_of(first_parts, rest.substr(0, slash), method));
  while (slash != std::string_view::npos) {
    rest.remove_prefix(slash + 1);
    slash = rest.find('/');
    text = both(text, second_part(rest.substr(0, slash), method));
  }
  return is_symmetric ? both(text, {"", "the caller asserts that vectors are symmetric", "GPUs"}) : text;
}

}  // namespace beeline::bench
