// SPDX-License-Identifier: Apache-2.0
#include "collectives/in_python.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collectives/operation.hpp"

namespace beeline::bench {

namespace {

using Type = CommandOption::Type;

std::vector<Case> allreduces(std::initializer_list<const char*> methods) {
  std::vector<Case> all;
  for (const char* method : methods) all.push_back({"allreduce", method, true, nullptr});
  return all;
}

std::vector<std::string> type_names() {
  std::vector<std::string> all;
  for (std::uint32_t type = 0; type < element_types; ++type) all.push_back(name(static_cast<ElementType>(type)));
  return all;
}

}  // namespace

std::vector<Case> torch_cases() {
  return allreduces({"torch/one_shot/stream", "torch/two_shot/stream", "torch/one_shot/graph", "torch/two_shot/graph"});
}

Measuring accuracy_command() {
  return {
      .command = Command::accuracy,
      .summary = "Errors of all-reduces of random vectors, in units in the last place, by every algorithm and peer",
      .options = {{"types", Type::names, fmt::format("{}, or all", fmt::join(type_names(), ", ")), "all", type_names()},
                  {"reductions", Type::names, "sum, average, product, or all", "all", {"sum", "average", "product"}},
                  {"elements", Type::integer, "Elements of a vector", "65536", {}, 1, 1 << 26},
                  {"seed", Type::integer, "Seed of the data", "1", {}, 0, ~std::uint64_t{0}}},
      .in_python = true};
}

std::vector<Case> accuracy_cases() {
  std::vector<Case> all;
  for (const MeasuredAlgorithm& one : measured_algorithms(Operation::allreduce))
    if (one.algorithm != Algorithm::automatic && !one.symmetric)
      all.push_back({"allreduce", std::string("stream/") + name(one.algorithm), true, nullptr});
  for (Case& peer :
       allreduces({"gloo/host", "nccl/stream", "torch/one_shot/stream", "torch/two_shot/stream", "mpi/host"}))
    all.push_back(std::move(peer));
  return all;
}

Measuring overlap_command() {
  return {
      .command = Command::overlap,
      .summary = "Slowdown of a product of matrices (torch) beside all-reduces by each method and NCCL, and theirs",
      .options = {{"size", Type::size, "Vector of the all-reduce, like 256M", "256M", {}, 16, largest_size, 16},
                  {"matrix", Type::integer, "Rows and columns of the bfloat16 matrices", "8192", {}, 64, 65536},
                  {"type",
                   Type::name,
                   "Type of the vector's elements: float32 or bfloat16",
                   "bfloat16",
                   {"float32", "bfloat16"}},
                  {"blocks", Type::integers, "Blocks of two_shot and bulk: each is measured", "8,16,32", {}, 1, 1024},
                  {"rounds", Type::integer, "Samples of each method, in turns", "5", {}, 1, 100}},
      .in_python = true};
}

std::vector<Case> overlap_cases() {
  return allreduces({"stream/automatic", "stream/two_shot", "stream/bulk", "stream/copy_engine", "nccl/stream"});
}

}  // namespace beeline::bench
