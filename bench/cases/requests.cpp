// SPDX-License-Identifier: Apache-2.0
/// @file
/// The memory requests that one warp makes at the peer, against the number, the width and the distance of the values
/// that it stores or loads. Source: seed 000 section 6.6.3, table 6.1.
///
/// An instruction of a warp becomes a request for each line of 128 bytes that its threads touch; a request moves
/// sectors of 32 bytes. Both are counted from the addresses of the threads' accesses. Counters of the hardware count
/// the launch of `WarpAccess` that verifies a row: one launch for each row, in the order of the rows.

#include <set>
#include <utility>

#include "beeline/host/launch.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"

namespace beeline::bench::requests_cases {

namespace {

constexpr std::uint32_t lanes = 32, line_bytes = 128, sector_bytes = 32;

/// Values of `width` bytes: at the peer, one in every `stride` positions of that width; at this rank contiguous.
struct Values {
  std::uint32_t count, width, stride;
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t bytes() const { return std::uint64_t{count} * width; }
  [[nodiscard]] constexpr std::uint64_t span() const { return bytes() * stride; }
};

/// The accesses of one thread of the warp, as `access(instruction, value)`.
template <class Access>
BEELINE_HOST_DEVICE void for_each_access(std::uint32_t lane, const Values& values, const Access& access) {
  std::uint32_t instruction = 0;
  for (std::uint32_t i = lane; i < values.count; i += lanes) access(instruction++, i);
}

template <class Word>
BEELINE_HOST_DEVICE void move(std::uint32_t lane, const Values& values, bool stores, std::byte* there,
                              std::byte* here) {
  for_each_access(lane, values, [&](std::uint32_t, std::uint32_t i) {
    std::byte* const far = there + std::uint64_t{i} * values.stride * sizeof(Word);
    std::byte* const near = here + std::uint64_t{i} * sizeof(Word);
    machine::store_as(stores ? far : near, machine::load_as<Word>(stores ? near : far));
  });
}

struct WarpAccess {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Values values, bool stores, std::byte* remote,
                                      std::byte* local, std::uint32_t peer) const {
    std::byte* const there = ctx.at(remote, peer);
    for (std::uint32_t lane = grid.block().thread_rank(); lane < lanes; lane += grid.block().size()) {
      if (values.width == 4) move<std::uint32_t>(lane, values, stores, there, local);
      if (values.width == 8) move<std::uint64_t>(lane, values, stores, there, local);
      if (values.width == 16) move<machine::Word16>(lane, values, stores, there, local);
    }
  }
};

struct Counts {
  std::uint64_t instructions, requests, sectors;
};

/// The counts of a warp's accesses to memory that begins with a line.
Counts count_accesses(const Values& values) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> instructions, requests, sectors;
  for (std::uint32_t lane = 0; lane < lanes; ++lane)
    for_each_access(lane, values, [&](std::uint32_t instruction, std::uint32_t i) {
      const std::uint64_t offset = std::uint64_t{i} * values.stride * values.width;
      instructions.emplace(instruction, 0);
      requests.emplace(instruction, offset / line_bytes);
      sectors.emplace(instruction, offset / sector_bytes);
    });
  return {instructions.size(), requests.size(), sectors.size()};
}

class Transfers {
 public:
  /// Collective.
  Transfers(Bench& bench, const Values& values, bool stores)
      : bench_(bench), values_(values), stores_(stores), remote_(bench.world(), values.span()),
        local_(bench.world(), values.bytes()) {}

  /// Collective. Whether the accesses of rank 0 move fresh values to the right addresses.
  bool verify(std::uint64_t seed) {
    const std::vector<std::byte> sent = random_message(seed, 0, values_.bytes());
    std::vector<std::byte> others = sent;
    for (std::byte& byte : others) byte = ~byte;
    if (bench_.leads()) bench_.world().copy(local_.data(), (stores_ ? sent : others).data(), sent.size());
    if (is_target()) write_strided(stores_ ? others : sent);
    bench_.world().barrier();
    if (bench_.leads()) {
      launch(bench_.world(), {.threads = bench_.world().device().is_gpu() ? lanes : threads_of_host()}, WarpAccess{},
             values_, stores_, remote_.data(), local_.data(), bench_.peer());
      bench_.world().synchronize();
    }
    bench_.world().barrier();
    if (stores_) return !is_target() || read_strided() == sent;
    std::vector<std::byte> found(values_.bytes());
    if (bench_.leads()) bench_.world().copy(found.data(), local_.data(), found.size());
    return !bench_.leads() || found == sent;
  }

 private:
  [[nodiscard]] bool is_target() const { return bench_.world().rank() == 1; }
  [[nodiscard]] unsigned threads_of_host() const { return static_cast<unsigned>(bench_.world().config().host_threads); }
  void write_strided(const std::vector<std::byte>& values) {
    std::vector<std::byte> all(values_.span());
    for (std::size_t i = 0; i < values.size(); ++i) all[position(i)] = values[i];
    bench_.world().copy(remote_.data(), all.data(), all.size());
  }
  [[nodiscard]] std::vector<std::byte> read_strided() {
    std::vector<std::byte> all(values_.span()), values(values_.bytes());
    bench_.world().copy(all.data(), remote_.data(), all.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = all[position(i)];
    return values;
  }
  /// The position in the strided values of a byte of the contiguous values.
  [[nodiscard]] std::size_t position(std::size_t byte) const {
    return byte / values_.width * values_.width * values_.stride + byte % values_.width;
  }

  Bench& bench_;
  const Values values_;
  const bool stores_;
  SymmetricArray<std::byte> remote_, local_;
};

/// The numbers of values of table 6.1, contiguous and every second one. The other rows have 1,024 values, of all widths
/// and distances.
std::vector<Values> all_values() {
  std::vector<Values> all;
  for (const std::uint32_t stride : {1u, 2u})
    for (const std::uint32_t count : {1u, 16u, 64u, 256u, 1024u, 4096u}) all.push_back({count, 4, stride});
  for (const std::uint32_t width : {4u, 8u, 16u})
    for (const std::uint32_t stride : {1u, 2u, 4u, 8u, 16u, 32u})
      if (width != 4 || stride > 2) all.push_back({1024, width, stride});
  return all;
}

template <bool stores>
std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  bench.require_alike();
  bench.require_loads_and_stores();
  std::vector<Measurement> all;
  for (const Values& values : all_values()) {
    const Counts counts = count_accesses(values);
    Measurement measurement{.operation = stores ? "store_requests" : "load_requests", .method = "device/peer/signal"};
    measurement.bytes = values.bytes();
    measurement.unit = Unit::requests;
    measurement.settings = {{"values", std::uint64_t{values.count}},
                            {"width", std::uint64_t{values.width}},
                            {"stride", std::uint64_t{values.stride}},
                            {"instructions", counts.instructions},
                            {"sectors", counts.sectors}};
    measurement.time = [=](Rounds rounds) {  // the count in place of a time: it is the same in each iteration
      return time_batches(rounds, [&] { return static_cast<double>(counts.requests * rounds.iterations); });
    };
    const auto transfers = std::make_shared<Transfers>(bench, values, stores);
    measurement.verify = [=](std::uint64_t seed) { return transfers->verify(seed); };
    all.push_back(std::move(measurement));
  }
  return all;
}

const ListedCases cases(Command::address_space, {{"store_requests", "device/peer/signal", false, prepare<true>},
                                                 {"load_requests", "device/peer/signal", false, prepare<false>}});

}  // namespace

}  // namespace beeline::bench::requests_cases
