// SPDX-License-Identifier: Apache-2.0
/// @file
/// An iteration of a computation on many blocks and an exchange with the peer: launches by the CPU, launches by a
/// kernel, or one kernel for all iterations. The exchange follows the computation by the order of kernels, in the last
/// block of a kernel, or after a barrier of the grid. Source: seed 000, 5.8.

#include "device_launched/exchange.hpp"

#include <algorithm>

#include "beeline/host/launch.hpp"
#include "cases/cases.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench::exchange_cases {

namespace {

struct Compute {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Exchange exchange, std::uint64_t i) const {
    exchange.compute(grid, ctx, i);
  }
};
struct Communicate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Exchange exchange, std::uint64_t i) const {
    static_cast<void>(exchange.communicate(grid.block(), ctx, i));
  }
};
struct ComputeAndCommunicate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Exchange exchange, std::uint64_t i) const {
    exchange.compute(grid, ctx, i);
    if (exchange.is_last(grid)) static_cast<void>(exchange.communicate(grid.block(), ctx, i));
  }
};
/// All iterations. The second barrier keeps blocks from computing before the message is sent.
struct Persist {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Exchange exchange, std::uint64_t first,
                                      std::uint32_t count) const {
    for (std::uint64_t i = first; i < first + count; ++i) {
      exchange.compute(grid, ctx, i);
      if (grid.sync(ctx) != Status::ok) return;
      if (grid.block_rank() == 0 && !exchange.communicate(grid.block(), ctx, i)) return;
      if (grid.sync(ctx) != Status::ok) return;
    }
  }
};

enum class Launcher { cpu, kernel, once };

struct Form {
  Launcher launcher;
  Separation separation;
};
constexpr Form forms[] = {{Launcher::cpu, Separation::kernels},
                          {Launcher::cpu, Separation::last_block},
                          {Launcher::kernel, Separation::kernels},
                          {Launcher::kernel, Separation::last_block},
                          {Launcher::once, Separation::grid_barrier}};

constexpr const char* method_of(Launcher launcher) {
  return launcher == Launcher::cpu      ? "stream/peer/signal"
         : launcher == Launcher::kernel ? "device_launched/peer/signal"
                                        : "device/peer/signal";
}
constexpr const char* name_of(Separation separation) {
  return separation == Separation::kernels      ? "kernel_order"
         : separation == Separation::last_block ? "last_block"
                                                : "grid_barrier";
}

class Iterations {
 public:
  /// Collective.
  Iterations(Bench& bench, std::uint64_t bytes, unsigned blocks)
      : bench_(bench), blocks_(blocks), destination_(bench.world(), bytes / sizeof(std::uint64_t)),
        source_(bench.world(), destination_.count()), arrived_(bench.world(), 1), computed_(bench.world(), 1),
        error_(bench.world(), 1, Heap::pinned) {
    const std::uint32_t none = 0;
    bench.world().copy(computed_.data(), &none, sizeof none);
    *error_.data() = 0;
  }

  /// Collective. The CPU's time from the first launch until the end of the last iteration.
  std::vector<double> time(const Form& form, Rounds rounds) {
    return time_on_host(
        bench_, {1, rounds.batches, 1}, [&] { run(form, rounds.iterations); },
        [&] {
          bench_.world().synchronize();
          require(*error_.data() == 0, Status::internal,
                  "a kernel launched from a kernel: error " + std::to_string(*error_.data()) + " of CUDA");
        });
  }
  /// Whether the message of the last iteration is the peer's.
  bool verify(const Form& form, std::uint64_t seed) {
    seed_ = seed;
    static_cast<void>(time(form, {3, 1, 0}));
    bench_.world().barrier();
    if (!bench_.paired()) return true;
    std::vector<std::uint64_t> found(destination_.count()), expected(found.size());
    bench_.world().copy(found.data(), destination_.data(), found.size() * sizeof found[0]);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = exchange().word(last_, bench_.peer(), i);
    return found == expected;
  }

 private:
  [[nodiscard]] Exchange exchange() const {
    return {destination_.data(), source_.data(),   destination_.count(), seed_,
            arrived_.data(),     computed_.data(), bench_.peer()};
  }
  void run(const Form& form, std::uint32_t count) {
    World& world = bench_.world();
    const std::uint64_t first = last_ + 1;
    last_ += count;
    const LaunchOptions waiting{.blocks = blocks_, .threads = exchange_threads, .waits = true};
    if (form.launcher == Launcher::once) return launch(world, waiting, Persist{}, exchange(), first, count);
    if (form.launcher == Launcher::kernel)
      return launch_from_kernel(world, exchange(), form.separation, blocks_, first, count, error_.data());
    for (std::uint64_t i = first; i <= last_; ++i) {
      if (form.separation == Separation::last_block) {
        launch(world, waiting, ComputeAndCommunicate{}, exchange(), i);
        continue;
      }
      launch(world, {.blocks = blocks_, .threads = exchange_threads}, Compute{}, exchange(), i);
      launch(world, {.threads = exchange_threads, .waits = true}, Communicate{}, exchange(), i);
    }
  }

  Bench& bench_;
  const unsigned blocks_;
  SymmetricArray<std::uint64_t> destination_, source_, arrived_;
  SymmetricArray<std::uint32_t> computed_;
  SymmetricArray<int> error_;
  std::uint64_t seed_ = 0, last_ = 0;
};

unsigned blocks_of(const Bench& bench) {
  const Device& device = bench.world().device(0);
  if (!device.is_gpu()) return 1;
  const unsigned most =
      std::min(resident_everywhere<ComputeAndCommunicate, Exchange, std::uint64_t>(bench, exchange_threads),
               resident_everywhere<Persist, Exchange, std::uint64_t, std::uint32_t>(bench, exchange_threads));
  require(most > 0, Status::no_resource, "no block of 256 threads could be resident on every rank");
  return std::min(most, static_cast<unsigned>(device.multiprocessors));
}

std::vector<Measurement> prepare(Bench& bench, Launcher launcher) {
  bench.require_alike();
  require(launcher != Launcher::kernel || bench.world().device().is_gpu(), Status::unavailable,
          "kernels of GPUs alone launch kernels");
  const unsigned blocks = blocks_of(bench);
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{64} << 10})
    for (const Form& form : forms) {
      if (form.launcher != launcher) continue;
      const auto iterations = std::make_shared<Iterations>(bench, bytes, blocks);
      Measurement measurement{.operation = "exchange", .method = method_of(launcher), .bytes = bytes};
      measurement.most_iterations = launcher == Launcher::once ? 10'000 : most_launched_iterations;
      measurement.settings = {{"blocks", std::uint64_t{blocks}}, {"separated_by", name_of(form.separation)}};
      measurement.time = [=](Rounds rounds) { return iterations->time(form, rounds); };
      measurement.verify = [=](std::uint64_t seed) { return iterations->verify(form, seed); };
      all.push_back(std::move(measurement));
    }
  return all;
}

Case case_of(Launcher launcher) {
  return {"exchange", method_of(launcher), false,
          [=](Bench& bench, std::uint64_t) { return prepare(bench, launcher); }};
}

const ListedCases cases(Command::methods, {case_of(Launcher::cpu), case_of(Launcher::kernel), case_of(Launcher::once)});

}  // namespace

}  // namespace beeline::bench::exchange_cases
