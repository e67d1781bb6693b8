// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/on_gpu_stream.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "hpe/awaited_word.hpp"
#include "hpe/files/file_threads.hpp"
#include "hpe/files/lane.hpp"
#include "hpe/stream_state.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

namespace {

/// The stream, its transfer and the thread share this.
struct HeldTransfer {
  std::unique_ptr<UnusedBuffers::Kept> kept = std::make_unique<UnusedBuffers::Kept>();  ///< while the stream waits
  std::shared_ptr<FileTransfer> transfer;
  std::shared_ptr<Event> earlier;     ///< work of the stream before the transfer
  std::shared_ptr<AwaitedWord> word;  ///< of all transfers of the stream, which follow one another
  std::uint64_t value = 0;
  std::exception_ptr failure;  ///< written before the word, read by the stream's callback behind it

  void await_earlier() const {
    static const std::int64_t longest_ns = Config::from_environment().stream_deadline_ns;
    const beeline::detail::Deadline deadline(longest_ns);
    while (!earlier->done()) {
      require(!deadline.passed(), Status::deadline, "a file's transfer waited for earlier work of its stream");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void run() {
    try {
      await_earlier();
      transfer->run();
    } catch (...) {
      failure = std::current_exception();
    }
    transfer.reset();
    earlier.reset();  // here: the stream's callback, which may be the last owner, must not call CUDA
    word->store(value);
    kept.reset();
  }
};

}  // namespace

void run_on_gpu_stream(std::shared_ptr<FileTransfer> transfer, Stream& stream) {
  const auto held = std::make_shared<HeldTransfer>();
  transfer->prepare();
  held->transfer = std::move(transfer);
  held->word = stream.state().word_of(&stream.state());
  stream.state().enqueue_own([&](beeline::Stream& own) {
    held->earlier = stream.state().take_event();
    own.record(*held->earlier);
    held->value = held->word->next_value();
    run_on_file_thread([held] { held->run(); });
    own.wait_signal(held->word->address(), held->value);
    own.enqueue([held] {
      if (held->failure) std::rethrow_exception(held->failure);
    });
  });
}

}  // namespace beeline::hpe::detail
