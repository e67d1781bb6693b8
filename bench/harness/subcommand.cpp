// SPDX-License-Identifier: Apache-2.0
#include "harness/subcommand.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "beeline/core/error.hpp"
#include "beeline/core/registry.hpp"
#include "harness/case_choice.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;
using Type = CommandOption::Type;

/// The meaning of a method's identifier.
struct MethodText {
  std::string summary;  ///< one line
  std::string needs;    ///< requirements on the machine and the build
};

/// The meaning of a part of an identifier.
struct Part {
  std::string_view name, summary, needs = {};
};

constexpr Part first_parts[] = {
    {"stream", "calls on a stream"},
    {"graph", "calls in a CUDA graph", "GPUs"},
    {"device", "a loop inside one kernel"},
    {"device_launched", "kernels that a kernel launches", "GPUs"},
    {"blocking", "calls that the CPU waits for"},
    {"proxy", "posted by a kernel to its rank's engine"},
    {"task", "active messages, which a worker of the target runs"},
    {"bare", "the hardware without a library"},
    {"resident", "posted by a kernel to a resident block of its device"},
    {"proxy", "posted by a kernel to threads of the host"},
    {"host", "posted by CPU threads"},
    {"assisted", "posted by CPU threads when a kernel asks for it"},
    {"nccl", "NCCL", "GPUs, libnccl.so.2 or the file that BEELINE_NCCL names"},
    {"nvshmem", "NVSHMEM", "GPUs, a build with NVSHMEM"},
    {"network", "operations of CPU threads that the network carries", "ranks 0 and 1 on two nodes"},
    {"ucx", "UCX without Beeline", "ranks 0 and 1 on two nodes, a build with UCX's headers"},
    {"mpi", "MPI", "mpirun, a build with MPI"},
    {"mpi4py", "MPI from Python", "mpirun, mpi4py"},
    {"python", "calls from Python that it waits for", "the extension module, numpy"},
    {"gloo", "gloo, of torch.distributed", "host ranks, torch"},
    {"torch", "symmetric memory of torch", "GPUs, torch"},
    {"torch_eager", "eager collectives of torch.distributed", "the extension module, torch"},
};

/// Second parts of identifiers that are not algorithms of the registry.
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
    {"kernel", "a kernel of one block, launched and waited for"},
    {"beeline", "the back end beeline"},
    {"beeline_pool", "the back end beeline, tensors in its memory pool", "GPUs"},
    {"nccl", "the back end nccl", "GPUs"},
    {"gloo", "the back end gloo"},
    {"stream", "calls on a stream"},
    {"graph", "calls in a CUDA graph"},
    {"device", "a loop inside one kernel"},
    {"host", "calls that block the CPU"},
    {"copies", "all pairs' copies, where no rank waits for another"},
    {"empty_kernel", "a kernel that does nothing, in a CUDA graph", "GPUs"},
    {"put_signal", "put with signal"},
    {"start", "the start of a kernel behind others that wait in the same stream"},
    {"signal", "a signal"},
    {"payload_and_flag", "64 bytes and a flag to the peer's kernel"},
    {"payload_and_two_flags", "64 bytes and a flag to the peer's kernel, and its answer"},
    {"two_flags", "a flag to a thread of the host, and its answer"},
    {"stream_wait", "a stream that waits for a count, copies and signals"},
    {"barrier", "a barrier inside a kernel"},
    {"put", "put by blocks"},
    {"puts", "puts, and a wait for a window of them"},
    {"get", "a get, and the wait for its data"},
    {"batch", "many puts with one signal"},
    {"reads", "loads whose values are dropped"},
    {"list", "a list of buffers, searched from its start"},
    {"interval_map", "a map of buffers by their first byte"},
    {"atomic", "atomics"},
    {"rma", "a three-word descriptor in a requester page"},
    {"verbs", "a work request of 64 bytes in a ring"},
    {"command", "a command in a command queue"},
    {"notification", "units of the adapter notify both ranks"},
    {"flag", "a second put sets a flag"},
    {"immediate", "the receiver polls a completion queue"},
    {"completion", "the poster polls a completion queue"},
    {"quiet", "the poster waits for the queue"},
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
  if (control == Control::triggered) return "armed by the host, started by a kernel's trigger";
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

/// The text of a method of the library, `control/algorithm`, or of a peer, `peer/how`.
MethodText text_of(const std::string& method) {
  for (const MethodRow& row : method_rows)
    for (const Control control : {Control::device, Control::stream, Control::host, Control::proxy, Control::triggered})
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

std::vector<CommandOption> options_of(const Measuring& measuring, const std::vector<Case>& cases) {
  std::vector<CommandOption> all;
  if (!cases.empty())
    all.push_back(
        {"methods", Type::names, "Methods, with commas between them, or all", "all", names_of(cases, &Case::method)});
  const std::vector<std::string> operations = names_of(cases, &Case::operation);
  if (operations.size() > 1)
    all.push_back({"operations", Type::names,
                   fmt::format("{}, with commas between them, or all", fmt::join(operations, ", ")),
                   measuring.operations, operations});
  all.insert(all.end(), measuring.options.begin(), measuring.options.end());
  if (measuring.in_python) return all;
  all.push_back(
      integer_option("iterations", "Operations in a timed batch (default: about 2 ms worth)", 1, 1'000'000'000));
  all.push_back(integer_option("energy",
                               "Milliseconds for which the quickest setting of each method is metered, too, three to "
                               "five times, in turns: joules",
                               100, 60'000));
  all.push_back(integer_option(
      "energy-budget", "Seconds for all that --energy meters: windows get shorter, and what does not fit is named", 1,
      100'000));
  all.push_back(integer_option("seed", "Seed of the data that is verified (default: drawn, and printed)", 1,
                               std::numeric_limits<std::uint64_t>::max()));
  all.push_back({"no-verify", Type::flag, "Skip the transfer of fresh data after each timed loop"});
  return all;
}

/// The methods of each operation.
Json operations_of(const std::vector<Case>& cases) {
  Json all = Json::array();
  for (const std::string& operation : names_of(cases, &Case::operation)) {
    Json methods = Json::array();
    for (const Case& one : cases)
      if (one.operation == operation) methods.push_back(one.method);
    all.push_back({{"name", operation}, {"methods", methods}});
  }
  return all;
}

Json methods_of(const std::vector<Case>& cases) {
  Json all = Json::array();
  for (const std::string& method : names_of(cases, &Case::method)) {
    const MethodText text = text_of(method);
    all.push_back({{"name", method}, {"summary", text.summary}, {"needs", text.needs}});
  }
  return all;
}

}  // namespace

Subcommand::Subcommand(CLI::App& app, const Measuring& measuring, std::vector<Case> cases)
    : measuring_(measuring), cases_(std::move(cases)), options_(options_of(measuring, cases_)),
      parser_(app.add_subcommand(name(measuring.command), measuring.summary)) {
  for (const CommandOption& option : options_) {
    GivenText& text = texts_[option.name];
    const auto take = [&text](const std::string& given) { text = given; };
    if (option.type == Type::flag)
      parser_->add_flag_callback(
          "--" + option.name, [take] { take("true"); }, option.help);
    else
      parser_->add_option_function<std::string>("--" + option.name, take, option.help)->default_str(option.initial);
  }
  parser_->add_flag("--describe", describe_, "Print this command with its options' values as JSON, and do nothing");
  std::string methods = cases_.empty() ? "" : "Methods:";
  for (const std::string& method : names_of(cases_, &Case::method))
    methods += fmt::format("\n  {}: {}", method, text_of(method).summary);
  parser_->footer(methods);
}

Json Subcommand::description() const {
  Json options = Json::array();
  for (const CommandOption& option : options_) options.push_back(described(option, texts_.at(option.name)));
  return {{"name", name(measuring_.command)},    {"summary", measuring_.summary}, {"reason", nullptr},
          {"operations", operations_of(cases_)}, {"methods", methods_of(cases_)}, {"options", options}};
}

Options Subcommand::options() const {
  Json values;
  for (const CommandOption& option : options_) values[option.name] = value_of(option, texts_.at(option.name));
  if (!values.contains("operations")) values["operations"] = names_of(cases_, &Case::operation);
  Options options = options_from(measuring_.command, values);
  options.methods_are_named = options.methods.size() < names_of(cases_, &Case::method).size();
  static_cast<void>(chosen(cases_, options));
  return options;
}

}  // namespace beeline::bench
