// SPDX-License-Identifier: Apache-2.0
// Calls that a unit compiled with BEELINE_CHECKED refuses, on GPUs if there are any and otherwise on CPUs: every
// operation with every bad argument. A unit compiled without it is part of the program.
#ifndef BEELINE_CHECKED
#define BEELINE_CHECKED
#endif
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/collectives/messages.hpp"
#include "beeline/host/messages.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/caller_check_mode.hpp"

namespace beeline_test {

UnitMode checked_unit() { return mode_of_this_unit(); }

namespace {

using namespace beeline;

enum class Call : std::uint32_t {
  put,
  get,
  put_value,
  put_signal_data,
  put_signal_signal,
  put_word,
  put_strided,
  get_strided,
  bulk_put,
  bulk_get,
  bulk_put_signal,
  signal,
  signal_add,
  atomic_add,
  atomic_and,
  atomic_or,
  atomic_xor,
  fetch_add,
  fetch_and,
  fetch_or,
  fetch_xor,
  fetch_min,
  fetch_max,
  atomic_exchange,
  compare_swap,
  wait,
  wait_for_word,
  wait_any,
  exchange,
  batch_put,
  batch_signal,
  batch_begun_twice,
  batch_not_begun
};

struct Arguments {
  std::uint64_t* words;  ///< [words_each] symmetric: other memory that an operation needs
  std::uint64_t* given;  ///< the argument that may be bad
  std::uint32_t peer;
  std::uint64_t* returned;  ///< status
  StridedShape shape = {2, 1, 1, 1};
  std::uint32_t signals = 2;  ///< number of signals of wait_any
};
constexpr std::size_t words_each = 16;
constexpr std::uint64_t before = 33, unset = 99;

/// Calls one operation, with two elements if it takes elements.
struct CallKernel {
  Call call;
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Arguments a) const {
    const auto& block = grid.block();
    const Status status = is_of_one_thread() && block.thread_rank() != 0 ? Status::ok : by_call(block, ctx, a);
    if (block.thread_rank() == 0) *a.returned = static_cast<std::uint64_t>(status);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_of_one_thread() const {
    switch (call) {
      case Call::put:
      case Call::get:
      case Call::put_signal_data:
      case Call::put_signal_signal:
      case Call::put_strided:
      case Call::get_strided:
      case Call::bulk_put:
      case Call::bulk_get:
      case Call::bulk_put_signal:
      case Call::signal:
      case Call::signal_add:
      case Call::wait:
      case Call::batch_put:
      case Call::batch_signal:
      case Call::batch_begun_twice:
      case Call::batch_not_begun:
        return false;
      default:
        return true;
    }
  }

  template <class Block>
  BEELINE_HOST_DEVICE Status by_call(const Block& block, const Context& ctx, const Arguments& a) const {
    if (call >= Call::fetch_add && call <= Call::compare_swap) return by_atomic(ctx, a);
    if (call == Call::bulk_put || call == Call::bulk_get || call == Call::bulk_put_signal)
      return by_port(block, ctx, a);
    return call >= Call::batch_put ? by_batch(block, ctx, a) : by_operation(block, ctx, a);
  }

  /// After a refused call of a batch, its other calls do nothing.
  template <class Block>
  BEELINE_HOST_DEVICE Status by_batch(const Block& block, const Context& ctx, const Arguments& a) const {
    PutBatch batch(ctx);
    if (call == Call::batch_not_begun) return batch.put(block, a.words, a.words + 4, 2);
    batch.begin(block, a.peer);
    if (call == Call::batch_begun_twice) return batch.begin(block, a.peer);
    if (call == Call::batch_put) batch.put(block, a.given, a.words, 2);
    if (call == Call::batch_signal) batch.signal(block, a.given, 1);
    batch.put(block, a.words, a.words + 4, 2);
    batch.signal(block, a.words + 8, 1);
    return batch.end(block);
  }

  template <class Block>
  BEELINE_HOST_DEVICE Status by_port(const Block& block, const Context& ctx, const Arguments& a) const {
    BulkPort<Block> port(block, ctx, bulk_buffer());
    if (call == Call::bulk_put) return port.put(a.given, a.words, 2, a.peer);
    if (call == Call::bulk_get) return port.get(a.words, a.given, 2, a.peer);
    return port.put_signal(a.words, a.words + 4, 2, a.given, 1, a.peer);
  }

  template <class Block>
  BEELINE_HOST_DEVICE Status by_operation(const Block& block, const Context& ctx, const Arguments& a) const {
    std::uint32_t index = 0;
    std::uint64_t value = 0;
    switch (call) {
      case Call::put:
        return beeline::put(block, ctx, a.given, a.words, 2, a.peer);
      case Call::get:
        return beeline::get(block, ctx, a.words, a.given, 2, a.peer);
      case Call::put_value:
        return beeline::put_value(ctx, a.given, std::uint64_t{1}, a.peer);
      case Call::put_signal_data:
        return beeline::put_signal(block, ctx, a.given, a.words, 2, a.words + 8, 1, a.peer);
      case Call::put_signal_signal:
        return beeline::put_signal(block, ctx, a.words, a.words + 4, 2, a.given, 1, a.peer);
      case Call::put_word:
        return beeline::put_signal(ctx, reinterpret_cast<SignaledWord*>(a.given), 1, 1, a.peer);
      case Call::put_strided:
        return beeline::put_strided(block, ctx, a.given, a.words, a.shape, a.peer);
      case Call::get_strided:
        return beeline::get_strided(block, ctx, a.words, a.given, a.shape, a.peer);
      case Call::signal:
        return beeline::signal(block, ctx, a.given, 1, a.peer);
      case Call::signal_add:
        return beeline::signal_add(block, ctx, a.given, 1, a.peer);
      case Call::atomic_add:
        return beeline::atomic_add(ctx, a.given, 1, a.peer);
      case Call::atomic_and:
        return beeline::atomic_and(ctx, a.given, 1, a.peer);
      case Call::atomic_or:
        return beeline::atomic_or(ctx, a.given, 4, a.peer);
      case Call::atomic_xor:
        return beeline::atomic_xor(ctx, a.given, 1, a.peer);
      case Call::wait:
        return beeline::wait(block, ctx, a.given, Compare::not_equal, 0, a.peer);
      case Call::wait_for_word:
        return beeline::wait(ctx, reinterpret_cast<const SignaledWord*>(a.given), Compare::not_equal, 0, value, a.peer);
      case Call::wait_any:
        return beeline::wait_any(ctx, a.given, a.signals, index);
      case Call::exchange:
        return beeline::exchange(ctx, a.given, 1, value);
      default:
        return Status::internal;
    }
  }

  BEELINE_HOST_DEVICE Status by_atomic(const Context& ctx, const Arguments& a) const {
    std::uint64_t found = 0;
    switch (call) {
      case Call::fetch_add:
        return atomic_fetch_add(ctx, a.given, 1, a.peer, found);
      case Call::fetch_and:
        return atomic_fetch_and(ctx, a.given, 1, a.peer, found);
      case Call::fetch_or:
        return atomic_fetch_or(ctx, a.given, 4, a.peer, found);
      case Call::fetch_xor:
        return atomic_fetch_xor(ctx, a.given, 1, a.peer, found);
      case Call::fetch_min:
        return atomic_fetch_min(ctx, a.given, 1, a.peer, found);
      case Call::fetch_max:
        return atomic_fetch_max(ctx, a.given, 99, a.peer, found);
      case Call::atomic_exchange:
        return beeline::atomic_exchange(ctx, a.given, 1, a.peer, found);
      default:
        return atomic_compare_swap(ctx, a.given, before, 1, a.peer, found);
    }
  }
};

/// The rule that a call breaks. An extent may end with its rank's slot or with a heap.
enum class Rule { peer, symmetric, extent, heap_extent, pinned_extent, alignment, null, overlap, span, none };
constexpr Rule rules[] = {Rule::peer,      Rule::symmetric, Rule::extent,  Rule::heap_extent, Rule::pinned_extent,
                          Rule::alignment, Rule::null,      Rule::overlap, Rule::span,        Rule::none};

struct Operand {
  Call call;
  Operation named;
  std::size_t bytes, alignment;  ///< of the memory that it is given; alignment 1: any
  bool at_peer = true;           ///< false: a local word
};

const std::vector<Operand>& operands() {
  static const std::vector<Operand> all = [] {
    std::vector<Operand> some = {{Call::put, Operation::put, 16, 1},
                                 {Call::get, Operation::get, 16, 1},
                                 {Call::put_value, Operation::put, 8, 8},
                                 {Call::put_signal_data, Operation::put, 16, 1},
                                 {Call::put_signal_signal, Operation::signal, 8, 8},
                                 {Call::put_word, Operation::signal, 16, 16},
                                 {Call::put_strided, Operation::put, 16, 1},
                                 {Call::get_strided, Operation::get, 16, 1},
                                 {Call::bulk_put, Operation::put, 16, 1},
                                 {Call::bulk_get, Operation::get, 16, 1},
                                 {Call::bulk_put_signal, Operation::signal, 8, 8},
                                 {Call::signal, Operation::signal, 8, 8},
                                 {Call::signal_add, Operation::signal_add, 8, 8},
                                 {Call::wait, Operation::wait, 8, 8, false},
                                 {Call::wait_for_word, Operation::wait, 16, 16, false},
                                 {Call::wait_any, Operation::wait_any, 8, 8, false},
                                 {Call::exchange, Operation::exchange, 8, 8, false},
                                 {Call::batch_put, Operation::put, 16, 1},
                                 {Call::batch_signal, Operation::signal, 8, 8},
                                 {Call::batch_begun_twice, Operation::batch, 8, 1, false},
                                 {Call::batch_not_begun, Operation::put, 8, 1, false}};
    for (auto call = static_cast<std::uint32_t>(Call::atomic_add);
         call <= static_cast<std::uint32_t>(Call::compare_swap); ++call)
      some.push_back({static_cast<Call>(call), Operation::atomic, 8, 8});
    return some;
  }();
  return all;
}

/// Whether the call is wrong with any arguments.
bool is_misused(const Operand& operand) {
  return operand.call == Call::batch_begun_twice || operand.call == Call::batch_not_begun;
}

bool can_break(const Operand& operand, Rule rule) {
  if (is_misused(operand)) return rule == Rule::none;
  const bool takes_peer = operand.call != Call::wait_any && operand.call != Call::exchange;
  const bool is_strided = operand.call == Call::put_strided || operand.call == Call::get_strided;
  switch (rule) {
    case Rule::peer:
      return takes_peer;
    case Rule::symmetric:
      return operand.at_peer;
    case Rule::extent:
    case Rule::heap_extent:
    case Rule::pinned_extent:
      return operand.at_peer && operand.bytes > 8;
    case Rule::alignment:
      return operand.alignment > 1;
    case Rule::null:
      return !operand.at_peer;
    case Rule::overlap:
    case Rule::span:
      return is_strided;
    case Rule::none:
      return operand.call == Call::wait_any;
  }
  return false;
}

const std::string in_kernel = " in kernel beeline_test::CallKernel";

/// The name of an operand in errors.
const char* argument_of(const Operand& operand) {
  if (operand.call == Call::wait_any) return "signals: ";
  if (operand.named == Operation::put) return "destination: ";
  if (operand.named == Operation::get) return "source: ";
  return operand.named == Operation::atomic ? "target: " : "signal: ";
}

/// A call that breaks a given rule, and the error text that it causes.
struct BadCall {
  Arguments arguments;
  std::string why;
};

BadCall bad_call(const Context& ctx, const Operand& operand, Rule rule, const Arguments& good) {
  const auto address = [](const std::uint64_t* at) {
    std::ostringstream text;
    text << std::hex << "0x" << reinterpret_cast<std::uintptr_t>(at);
    return text.str();
  };
  BadCall bad{good, ""};
  std::uint64_t*& given = bad.arguments.given;
  const bool names_peer = operand.call != Call::wait_any && operand.call != Call::exchange;
  const std::string refused = join(names_peer ? " on rank 1" : "", in_kernel, " refused: ");
  const std::string on = refused + argument_of(operand);
  const auto end_at = [&](std::uint64_t offset) {  // of rank 0's slot; the memory given starts one word earlier
    given = reinterpret_cast<std::uint64_t*>(ctx.range + offset) - 1;
    bad.why = operand.alignment > 8 ? join(on, "address ", address(given), " is not aligned")
                                    : join(on, operand.bytes, " bytes at ", address(given),
                                           " are not wholly in this rank's symmetric memory");
  };
  switch (rule) {
    case Rule::peer:
      bad.arguments.peer = ctx.size;
      bad.why = in_kernel + " refused: peer 2 is no rank of the team: these are 0 to 1";
      break;
    case Rule::symmetric:
      given = reinterpret_cast<std::uint64_t*>(std::uintptr_t{4096});
      bad.why = join(on, operand.bytes, " bytes at 0x1000 are not wholly in this rank's symmetric memory");
      break;
    case Rule::extent:
      end_at(std::size_t{1} << ctx.slot_shift);
      break;
    case Rule::heap_extent:
      end_at(ctx.heap_end);
      break;
    case Rule::pinned_extent:
      end_at(ctx.pinned_heap_end);
      break;
    case Rule::alignment:
      given = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(given) + operand.alignment / 2);
      bad.why = join(on, "address ", address(given), " is not aligned to ", operand.alignment, " bytes");
      break;
    case Rule::null:
      given = nullptr;
      bad.why = join(on, operand.bytes, " bytes at a null address: pass that of a signal");
      break;
    case Rule::overlap:
      bad.arguments.shape = {2, 2, 1, 2};
      bad.why = refused + "blocks of 2 elements overlap in the destination, where they are 1 apart";
      break;
    case Rule::span:
      bad.arguments.shape = {3, 1, std::size_t{1} << 62, 1};
      bad.why = refused + "3 blocks, 4611686018427387904 elements apart, reach beyond the end of the address space";
      break;
    case Rule::none:
      if (is_misused(operand)) {
        const bool is_open = operand.call == Call::batch_begun_twice;
        bad.why = join(is_open ? " on rank 1" : "", in_kernel, " refused: the batch has ",
                       is_open ? "begun and not ended" : "not begun");
        break;
      }
      bad.arguments.signals = 0;
      bad.why = refused + "a wait for any of 0 signals";
      break;
  }
  return bad;
}

constexpr LaunchOptions one_block{.threads = 64};

/// Rank 0 makes the call; both ranks get the error, and no memory has changed.
void refuse_one(World& world, const Operand& operand, Rule rule) {
  const SymmetricArray<std::uint64_t> words(world, words_each), returned(world, 1);
  const std::vector<std::uint64_t> start(words_each, before);
  world.copy(words.data(), start.data(), words.bytes());
  world.copy(returned.data(), &unset, sizeof unset);
  const std::unique_ptr<Team> team = world.make_team({0, 1});  // its abort leaves the world alone
  std::uint64_t* const of_doer = words.at(0);
  const BadCall bad = bad_call(team->context(), operand, rule, {of_doer, of_doer, 1, returned.data()});
  const bool is_put_first = operand.call == Call::put_signal_signal || operand.call == Call::bulk_put_signal;
  const bool is_of_batch = operand.call == Call::batch_put || operand.call == Call::batch_signal;
  const Operation of_peer = is_of_batch ? Operation::batch : is_put_first ? Operation::put : operand.named;
  const Operation named = rule == Rule::peer ? of_peer : operand.named;
  const std::string words_of_error = join("rank 0: ", name(named), bad.why);
  if (world.rank() == 0) {
    check_error(Status::invalid_argument, {words_of_error}, [&] {
      launch(*team, one_block, CallKernel{operand.call}, bad.arguments);
      world.synchronize();
    });
    std::uint64_t status = 0;
    world.copy(&status, returned.data(), sizeof status);
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>(Status::invalid_argument), status);
  }
  world.barrier();
  if (world.rank() == 1) check_error(Status::aborted, {words_of_error}, [&] { team->barrier(); });
  std::vector<std::uint64_t> now(words_each);
  world.copy(now.data(), words.data(), words.bytes());
  BEELINE_CHECK(now == start);
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

/// Each operation with each argument that it must refuse.
TEST(CallerCheck, RefusesEachBadArgumentOfEachOperation) {
  expect_all_passed(run_ranks(WorldKind::threads, 2, [](World& world) {
    for (const Operand& operand : operands())
      for (const Rule rule : rules) {
        if (!can_break(operand, rule)) continue;
        try {
          refuse_one(world, operand, rule);
        } catch (const std::exception& error) {
          throw CheckFailure(
              join("call ", static_cast<int>(operand.call), ", rule ", static_cast<int>(rule), ": ", error.what()));
        }
      }
  }));
}

/// An empty put may come from any address and go to any, and the last bytes of a heap are part of it.
struct GoodKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Arguments a) const {
    const auto& block = grid.block();
    Status status = put<>(block, ctx, static_cast<std::uint64_t*>(nullptr), a.words, 0, a.peer);
    if (status == Status::ok) status = put(block, ctx, a.words + 8, a.words, 2, a.peer);
    if (status == Status::ok) status = put(block, ctx, a.words + 10, a.words, 2, ctx.rank);
    std::byte* const slot = ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
    for (const std::uint64_t end : {ctx.heap_end, ctx.pinned_heap_end})
      if (status == Status::ok)
        status = put(block, ctx, reinterpret_cast<std::uint64_t*>(slot + end) - 2, a.words, 2, a.peer);
    if (block.thread_rank() == 0) *a.returned = static_cast<std::uint64_t>(status);
  }
};

TEST(CallerCheck, LetsGoodCallsPass) {
  expect_all_passed(run_ranks(WorldKind::threads, 2, [](World& world) {
    const SymmetricArray<std::uint64_t> words(world, words_each), returned(world, 1);
    const Context& ctx = world.host_context();
    for (const auto& [heap, end] :
         {std::pair(Heap::symmetric, ctx.heap_end), std::pair(Heap::pinned, ctx.pinned_heap_end)}) {
      void* const next = world.allocate(1, heap);
      const std::uint64_t rest = end - ctx.offset_in_slot(next);
      world.free(next);
      static_cast<void>(world.allocate(rest, heap));  // up to the heap's end
    }
    launch(world, one_block, GoodKernel{},
           Arguments{words.data(), nullptr, static_cast<std::uint32_t>(1 - world.rank()), returned.data()});
    world.synchronize();
    std::uint64_t status = unset;
    world.copy(&status, returned.data(), sizeof status);
    BEELINE_CHECK_EQ(std::uint64_t{0}, status);
    world.barrier();
  }));
}

enum class Stopped { at_peer, at_address, packet_port, message_sender, message_receiver };

struct StoppedArguments {
  std::uint64_t* words;
  PacketChannel packets;
  MessageChannel messages;
};

/// Operations that return no status. A bad call stops the kernel, so that the store after it is not made.
struct StoppedKernel {
  Stopped which;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, StoppedArguments a) const {
    const auto& block = grid.block();
    if (which == Stopped::at_peer) *ctx.at(a.words, ctx.size) = 1;
    if (which == Stopped::at_address) *ctx.at(reinterpret_cast<std::uint64_t*>(std::uintptr_t{4096}), 1) = 1;
    if (which == Stopped::packet_port) static_cast<void>(PacketPort(block, ctx, a.packets, 7).send(a.words, 8));
    if (which == Stopped::message_sender)
      static_cast<void>(send(MessageSession(block, ctx, a.messages), a.words, 8, 8));
    if (which == Stopped::message_receiver)
      static_cast<void>(receive(MessageSession(block, ctx, a.messages), a.words, 8, 9));
    if (grid.thread_rank() == 0) a.words[1] = 1;
  }
};

struct StoppedCase {
  Stopped which;
  const char* words;
};
constexpr StoppedCase stopped_cases[] = {
    {Stopped::at_peer, "at in kernel beeline_test::StoppedKernel refused: peer 2 is no rank of the team"},
    {Stopped::at_address,
     "at on rank 1 in kernel beeline_test::StoppedKernel refused: local: 1 bytes at 0x1000 are not wholly in this "
     "rank's symmetric memory"},
    {Stopped::packet_port, "packet_send in kernel beeline_test::StoppedKernel refused: peer 7 is no rank of the team"},
    {Stopped::message_sender, "send in kernel beeline_test::StoppedKernel refused: peer 8 is no rank of the team"},
    {Stopped::message_receiver,
     "receive in kernel beeline_test::StoppedKernel refused: peer 9 is no rank of the team"}};

/// Throws in any case: on a GPU the kernel's fault ends the process.
void stop_one(World& world, const StoppedCase& each) {
  const SymmetricArray<std::uint64_t> words(world, 2);
  const PacketRings packets(world, 64);
  Messages messages(world);
  if (world.rank() == 0) {
    const bool gpu = world.device().is_gpu();
    check_error(gpu ? Status::internal : Status::invalid_argument, {"rank 0: ", each.words}, [&] {
      launch(world, {}, StoppedKernel{each.which},
             StoppedArguments{words.data(), packets.channel(), messages.channel()});
      world.synchronize();
    });
    if (!gpu) BEELINE_CHECK_EQ(std::uint64_t{0}, words.data()[1]);
    throw CheckFailure("as it should");  // the world cannot be used any more
  }
  check_error(Status::aborted, {each.words}, [&] { world.barrier(); });
  throw CheckFailure("as it should");
}

TEST(CallerCheck, StopsWhatReturnsNoStatus) {
  for (const StoppedCase& each : stopped_cases) {
    SCOPED_TRACE(each.words);
    for (const RankOutcome& outcome : run_ranks(WorldKind::processes, 2, [&](World& world) { stop_one(world, each); }))
      EXPECT_EQ("as it should", outcome.failure);
  }
}

TEST(CallerCheck, EachUnitOfAProgramKeepsItsOwn) {
  const UnitMode checked = checked_unit(), unchecked = unchecked_unit();
  EXPECT_TRUE(checked.checks_all);
  EXPECT_FALSE(unchecked.checks_all);
  EXPECT_NE(checked.put, unchecked.put) << "the linker took one for the other";
  EXPECT_NE(checked.signal_add, unchecked.signal_add);
  EXPECT_NE(checked.atomic_add, unchecked.atomic_add);
  Config config = test_config();
  config.device = "cpu";
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [&](World& world) {
        const SymmetricArray<std::uint64_t> words(world, 2);
        const Context& ctx = world.host_context();
        for (const UnitMode& mode : {checked, unchecked}) BEELINE_CHECK(mode.at(ctx, words.data(), 0) == words.data());
        static_cast<void>(unchecked.at(ctx, words.data(), 1));  // an address, of nothing
        BEELINE_CHECK(!world.failed());
        check_error(Status::invalid_argument, {"rank 0: at refused: peer 1 is no rank of the team: these are 0 to 0"},
                    [&] { checked.at(ctx, words.data(), 1); });
        check_error(Status::invalid_argument, {"rank 0: at refused"}, [&] { world.check(); });
      },
      config));
}

}  // namespace

}  // namespace beeline_test
